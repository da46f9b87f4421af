package outbox

import (
	"context"
	"sync"
	"time"
)

// What may be done for one tenant at a time, by whoever knows that there is something to do.

func (r *Relay) newLine(tenant string) *line {
	return &line{r: r, tenant: tenant, woken: make(chan struct{}, 1), done: make(chan struct{}, r.cfg.Parallel)}
}

// Deliver delivers a tenant's messages until none is due any more, and returns when the
// next one may be: a try that failed, or a message that another relay has, at the end of
// its claim. Zero: none is pending. Posted messages that are committed meanwhile may be
// among those delivered, or not.
//
// Any number of callers, on any node, may do so for one tenant at once, beside Run too: each
// takes other messages. When ctx ends, deliveries under way are cut off and given back.
// The error is ctx's cause, or that of the database; what had begun is through then.
func (r *Relay) Deliver(ctx context.Context, tenant string) (next time.Time, err error) {
	l := r.newLine(tenant)
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	for {
		began, wait := 0, time.Duration(0)
		if l.busy < r.cfg.Parallel {
			asked := time.Now()
			if began, wait, err = l.take(ctx, ctx, &deliveries); err != nil {
				return time.Time{}, err
			}
			next = asked.Add(wait)
		}
		switch {
		case began > 0: // there may be more
			continue
		case l.busy == 0 && wait < 0:
			return time.Time{}, nil
		case l.busy == 0 && wait > 0:
			return next, nil
		case wait == 0:
			wait = jitter(othersPause)
		}
		if err := l.rest(ctx, wait); err != nil {
			return time.Time{}, err
		}
	}
}

// rest waits for the end of a delivery, as long as there is room for another at most for a pause.
func (l *line) rest(ctx context.Context, pause time.Duration) error {
	var over <-chan time.Time
	if l.busy < l.r.cfg.Parallel {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-over:
	case <-l.done:
		l.busy--
	}
	return nil
}

// Sweep removes what a tenant's outbox and inbox need no more. Run does so by itself.
func (r *Relay) Sweep(ctx context.Context, tenant string) error {
	box, err := r.cfg.Boxes.Box(ctx, tenant)
	for more := true; err == nil && more; {
		more, err = box.Sweep(ctx, r.cfg.Keep, r.cfg.KeepSeen)
	}
	return err
}
