package lockwrap

import (
	"context"
	"time"
)

// Release gives the lock back. It returns nil when the backend says that the lock was this
// lease's until now: then nobody else can have been inside, and where nothing is to be
// committed that is the check after. It returns a *LostError when the lease had been lost,
// or when the backend did not answer within Config.Attempt; a clean-up of the Manager's own
// then goes on until the lock is surely gone. Every call returns the first one's answer.
// The end of ctx does not keep it from releasing.
func (l *Lease) Release(ctx context.Context) error {
	l.handBack(ctx, nil)
	return l.released
}

// Applies reports whether the backend can apply effects: whether ReleaseWith is of use.
func (l *Lease) Applies() bool {
	_, can := l.m.cfg.Backend.(Applier)
	return can
}

// ReleaseWith is Release, and applies e in the same step of the backend: as writes while the
// lock is still this lease's, else as removals. Between the question whether it is and the
// writes there is nothing.
//
// With a nil error and applied all was written; with a *LostError and applied all was
// removed. Without applied a write failed, an answer was lost and what the release wrote may
// be removed again, or nobody knows: the caller must undo e by other means. A lease that was
// lost by the local clock alone, while by the backend it was still held, returns nil here:
// what was written was the holder's. Only the first Release or ReleaseWith of a lease does
// anything.
func (l *Lease) ReleaseWith(ctx context.Context, e Effects) (applied bool, err error) {
	c := &cargo{effects: e}
	if c.applier, _ = l.m.cfg.Backend.(Applier); c.applier == nil {
		c = nil
	}
	l.handBack(ctx, c)
	return c != nil && c.applied && c.held == (l.released == nil), l.released
}

// cargo is what a release takes along; nil: nothing.
type cargo struct {
	applier Applier
	effects Effects
	applied bool // by the last attempt
	held    bool // by the last attempt the lock was the lease's until then
}

func (l *Lease) handBack(ctx context.Context, c *cargo) {
	l.once.Do(func() {
		l.m.calls.add()
		defer l.m.calls.done()
		l.m.renewals.end(l.renewal)
		l.finish(nil)
		l.released = l.release(ctx, c)
		l.m.lines.free(l.lock, l)
	})
}

func (l *Lease) release(ctx context.Context, c *cargo) error {
	before, _ := l.Err().(*LostError)
	if before != nil && before.Cause == TokenMismatch {
		return before // nothing is left to give back
	}
	lost := l.unlock(ctx, c)
	if l.doubt {
		l.sweep()
	}
	switch {
	case before != nil && lost == nil && c != nil && c.held:
		return nil // it has been told as lost
	case before != nil && lost != nil:
		known := *before
		known.Last = lost.Last // whether somebody has had the lock since
		return &known
	case before != nil:
		return before
	case lost != nil:
		l.lose(lost)
		l.m.note(Event{What: Lost, Key: l.key, Took: time.Since(l.sent), Err: lost})
		return lost
	}
	l.m.note(Event{What: Released, Key: l.key, Took: time.Since(l.sent)})
	return nil
}

// unlock asks for the release until there is an answer, at most for one attempt's time. The
// next in line on this node gets the lock in the same step.
func (l *Lease) unlock(ctx context.Context, c *cargo) *LostError {
	limit := l.m.attempt(l.plan.Lease)
	next, doubt := l.m.heir(l), false
	for try, until := 1, time.Now().Add(limit); ; try++ {
		sent := time.Now()
		a := l.m.ask(ctx, max(minAttempt/2, until.Sub(sent)), func(ctx context.Context, b Backend) (Reply, error) {
			return c.release(ctx, b, Handback{l.lock, l.owner, next.wish()})
		})
		c.note(a)
		now := time.Now()
		switch {
		case a.err == nil && a.reply.Held:
			next.settle(a.reply, sent)
			return nil
		case a.err == nil && doubt && a.reply.Token == l.owner.Token && now.Before(l.end()):
			next.tell(offer{sent: sent})
			return nil // an earlier attempt did it: it was ours, could not have run out, and nobody came after
		case a.err == nil:
			next.tell(offer{sent: sent})
			return l.notMine(a.reply, now)
		case notApplied(a.err) && next != nil: // a full memory lets nobody in, but everybody out
			next.tell(offer{doubt: doubt, sent: sent})
			next, until = nil, now.Add(limit) // that is another question
			continue
		}
		doubt = doubt || !notApplied(a.err)
		if !now.Before(until) || !rest(l.m.work, jitter(5*time.Millisecond, 50*time.Millisecond, try)) {
			next.tell(offer{doubt: true, sent: sent})
			l.sweep()
			return &LostError{Key: l.key, Token: l.owner.Token, Cause: ConfirmFailed, Err: a.err}
		}
	}
}

// release asks b for a release, with what there is to take along.
func (c *cargo) release(ctx context.Context, b Backend, h Handback) (Reply, error) {
	if c == nil {
		return b.Release(ctx, h.Lock, h.Owner, h.Next)
	}
	return c.applier.ReleaseWith(ctx, h, c.effects)
}

// note looks at an answer.
func (c *cargo) note(a answer) {
	if c != nil {
		c.applied = a.err == nil && a.reply.Failed == 0
		c.held = a.err == nil && a.reply.Held
	}
}

// sweep starts a clean-up behind the lease.
func (l *Lease) sweep() {
	l.m.sweep(leftover{key: l.key, lock: l.lock, owner: Owner{Holder: l.owner.Holder}, limit: l.m.attempt(l.plan.Lease), over: l.end(), doubt: true})
}

// leftover is a lock that may be, or may still become, that of a holder that is gone.
type leftover struct {
	key     Key
	lock    string
	owner   Owner
	limit   time.Duration // of one attempt
	over    time.Time     // then the backend has dropped the lock by itself
	pending <-chan answer // of an acquire under way; may be nil
	doubt   bool          // an acquire or release has been sent whose outcome is unknown
	queues  bool          // it may have put the node into the backend's line
}

// sweep releases s in a goroutine that Close waits for.
func (m *Manager) sweep(s leftover) {
	m.note(Event{What: CleanedUp, Key: s.key})
	m.calls.add()
	m.spawn(func() {
		defer m.calls.done()
		if s.pending != nil {
			a := <-s.pending
			if a.err != nil {
				s.doubt = s.doubt || !notApplied(a.err)
			} else if a.reply.Held {
				m.clean(&s)
			}
		}
		if s.doubt {
			m.clean(&s)
			// A request that was on its way when it was given up may be done only now.
			if rest(m.work, s.limit) {
				m.clean(&s)
			}
		}
		if s.queues {
			m.unwanted(s.lock)
		}
	})
}

// clean releases until there is an answer or the lock is gone by itself.
func (m *Manager) clean(s *leftover) {
	for try := 1; ; try++ {
		a := m.ask(context.Background(), s.limit, func(ctx context.Context, b Backend) (Reply, error) {
			return b.Release(ctx, s.lock, s.owner, nil)
		})
		if a.err == nil || time.Now().After(s.over) || !rest(m.work, jitter(25*time.Millisecond, time.Second, try)) {
			return
		}
	}
}
