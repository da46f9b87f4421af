package lockwrap

import (
	"context"
	"time"
)

// Fresh reports that the grant, or the last renewal, is so young that no question to the
// backend is worth its round trip: younger than a quarter of the lease, and the wall clock
// and the monotonic clock have moved in step since (Go's monotonic clock stands still while
// the machine sleeps). It is never true with Config.VerifyAlways.
func (l *Lease) Fresh() bool {
	if l.m.cfg.VerifyAlways {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	age := now.Sub(l.good)
	return !l.over && age < l.plan.Lease/4 && inStep(age, now.Round(0).Sub(l.good.Round(0)))
}

// inStep reports whether two clocks measured about the same.
func inStep(monotonic, wall time.Duration) bool {
	return (monotonic - wall).Abs() <= 100*time.Millisecond
}

// CheckBefore confirms the lease before the first effect: from its freshness if that will
// do, else like Confirm.
func (l *Lease) CheckBefore(ctx context.Context) error {
	if l.Fresh() {
		return nil
	}
	return l.Confirm(ctx)
}

// Confirm asks the backend whether the lock is still this lease's. It returns nil if so; a
// *LostError if not, or if the backend could not be asked within Config.Attempt, and the
// lease is lost then; ctx's cause if ctx ended first, which changes nothing. A lease that
// was released is not held: Confirm then returns a *LostError too.
func (l *Lease) Confirm(ctx context.Context) error {
	for try, until := 1, time.Now().Add(l.m.attempt(l.plan.Lease)); ; try++ {
		if err := l.ended(); err != nil {
			return err
		}
		sent := time.Now()
		out := l.m.send(ctx, max(minAttempt/2, until.Sub(sent)), func(ctx context.Context, b Backend) (Reply, error) {
			return b.Confirm(ctx, l.lock, l.owner)
		})
		var a answer
		select {
		case a = <-out:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		now := time.Now()
		switch {
		case a.err == nil && a.reply.Held && now.Sub(sent) < a.reply.Left:
			return l.ended()
		case a.err == nil:
			return l.fail(l.notMine(a.reply, now))
		}
		if !now.Before(until) || !rest(ctx, jitter(5*time.Millisecond, 50*time.Millisecond, try)) {
			return l.unconfirmed(ctx, a.err)
		}
	}
}

func (l *Lease) unconfirmed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return l.fail(&LostError{Cause: ConfirmFailed, Err: err})
}

// ended returns nil while the lease is neither lost nor released.
func (l *Lease) ended() error {
	if err := l.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return &LostError{Key: l.key, Token: l.owner.Token, Cause: TokenMismatch}
	}
	return nil
}

// notMine says why a lock is no longer this lease's.
func (l *Lease) notMine(r Reply, now time.Time) *LostError {
	cause := TokenMismatch
	if r.Held || r.Token <= l.owner.Token && !now.Before(l.end()) { // it ran out, and nobody has had it since
		cause = MaxHoldReached
	}
	return &LostError{Key: l.key, Token: l.owner.Token, Cause: cause, Last: r.Token}
}

// rest waits for d. It returns false when ctx ended first.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
