package outbox

import (
	"context"
	"sync"
	"time"
)

func (r *Relay) newLine(tenant string) *line {
	return &line{r: r, tenant: tenant, done: make(chan struct{}, r.cfg.Parallel)}
}

// Deliver delivers a tenant's messages until none is due any more, and returns when the
// next one may be: a try that failed, or a message that another relay has, at the end of
// its claim. Zero: none is pending. Posted messages that are committed meanwhile may be
// among those delivered, or not.
//
// Any number of callers, on any node, may do so for one tenant at once: each takes other
// messages. When ctx ends nothing more is taken, and deliveries under way that do not end
// within the grace are cut off and given back. The error is ctx's cause, or that of the
// database; what had begun is through then.
func (r *Relay) Deliver(ctx context.Context, tenant string) (next time.Time, err error) {
	l := r.newLine(tenant)
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() {
		t := time.AfterFunc(r.cfg.Grace, cut)
		context.AfterFunc(work, func() { t.Stop() })
	})()
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	for {
		began, wait := 0, time.Duration(0)
		if l.busy < r.cfg.Parallel {
			asked := time.Now()
			if began, wait, err = l.take(ctx, work, &deliveries); err != nil {
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

// Next says when a tenant's next message is due, and reports whether one is pending at all. A
// message that is being delivered is due at the end of its claim.
func (r *Relay) Next(ctx context.Context, tenant string) (due time.Time, pending bool, err error) {
	box, err := r.cfg.Boxes.Box(ctx, tenant)
	if err != nil {
		return time.Time{}, false, err
	}
	asked := time.Now()
	_, wait, err := box.Claim(ctx, Claim{Name: r.cfg.Instance + "/look", Lease: r.cfg.Lease})
	if err != nil || wait < 0 {
		return time.Time{}, false, err
	}
	return asked.Add(wait), true, nil
}

// Sweep removes what a tenant's outbox and inbox need no more.
func (r *Relay) Sweep(ctx context.Context, tenant string) error {
	box, err := r.cfg.Boxes.Box(ctx, tenant)
	for more := true; err == nil && more; {
		more, err = box.Sweep(ctx, r.cfg.Keep, r.cfg.KeepSeen)
	}
	return err
}
