package lockwrap

import (
	"context"
	"time"
)

// renewal keeps one lease alive in a goroutine that Release waits for.
type renewal struct {
	stop context.CancelFunc
	done chan struct{}
}

// keepAlive renews l every Plan.Renew until it is over. A renewal that fails is tried again
// every twelfth of the lease until the Deadline; then the lease is lost by its timer.
func (l *Lease) keepAlive() *renewal {
	ctx, stop := context.WithCancel(l.m.work)
	r := &renewal{stop: stop, done: make(chan struct{})}
	l.m.spawn(func() {
		defer close(r.done)
		unhook := context.AfterFunc(l.life, stop)
		defer unhook()
		for pause := l.plan.Renew; rest(ctx, pause); {
			pause = l.renew()
		}
	})
	return r
}

// end stops the renewal and waits for the one in flight.
func (r *renewal) end() {
	if r == nil {
		return
	}
	r.stop()
	<-r.done
}

// renew makes one attempt and returns the pause before the next.
func (l *Lease) renew() time.Duration {
	sent := time.Now()
	ttl := min(l.plan.Lease, l.sent.Add(l.plan.Hold).Sub(sent)) // the hold limit is absolute
	if ttl < time.Millisecond {
		return l.plan.Renew // the timer is about to end the lease
	}
	a := l.m.ask(context.Background(), l.m.attempt(l.plan.Lease), func(ctx context.Context, b Backend) (Reply, error) {
		return b.Renew(ctx, l.lock, l.owner, ttl)
	})
	switch {
	case a.err != nil: // whatever happened to it, the old deadline stands
		l.mu.Lock()
		l.trouble = a.err
		l.mu.Unlock()
		return l.plan.Lease / 12
	case !a.reply.Held:
		_ = l.fail(l.notMine(a.reply, time.Now())) // Lost tells
	default:
		l.mu.Lock()
		l.good, l.trouble = sent, nil
		l.mu.Unlock()
	}
	return l.plan.Renew
}
