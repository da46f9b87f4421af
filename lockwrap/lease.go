package lockwrap

import (
	"context"
	"sync"
	"time"

	"apiengine/budget"
)

// Lease is a lock that this process holds. Its methods may be called from any goroutine.
// Whoever got it must call Release.
type Lease struct {
	m      *Manager
	key    Key
	lock   string
	owner  Owner
	api    string
	plan   budget.Plan
	sent   time.Time
	waited time.Duration
	handed bool // by the node's last holder
	doubt  bool // an attempt of this acquisition never got its answer

	life context.Context // ends when the lease is lost, with the *LostError as its cause
	lose context.CancelCauseFunc

	mu      sync.Mutex
	good    time.Time // when the request was sent that last began the lease's life
	over    bool      // lost or released
	trouble error     // of the last renewal; nil: it succeeded
	timer   *time.Timer

	renewal  *renewal // nil: never renewed
	once     sync.Once
	released error // Release's answer
}

// grant makes a lease of what h has got by asking, and gives it its place in the line.
func (m *Manager) grant(h *hunt, token int64) *Lease {
	l := m.newLease(h, h.holder, token, h.sent)
	m.lines.enter(h.w, l)
	l.begin()
	return l
}

func (m *Manager) newLease(h *hunt, holder string, token int64, sent time.Time) *Lease {
	l := &Lease{m: m, key: h.r.Key, lock: h.lock, owner: Owner{token, holder}, api: h.api, plan: h.r.Plan,
		sent: sent, good: sent, waited: time.Since(h.began), doubt: h.doubt}
	l.life, l.lose = context.WithCancelCause(context.Background())
	return l
}

// begin starts what ends the lease, and what keeps it alive.
func (l *Lease) begin() {
	l.mu.Lock() // the timer may fire before it is stored
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(time.Until(l.limit()), l.expire)
	if l.plan.Renew > 0 {
		l.renewal = l.m.renewals.keep(l)
	}
}

// Key is the lock's identity as it was asked for.
func (l *Lease) Key() Key { return l.key }

// Token is the fencing token: greater than that of every earlier holder, below 2^53.
func (l *Lease) Token() int64 { return l.owner.Token }

// Owner is "<token>:<instance>:<nonce>", what the backend knows this holder by. It is a
// secret: whoever has it can release the lock.
func (l *Lease) Owner() string { return l.owner.String() }

// Sent is when the acquire was sent that got the lock (with a monotonic reading).
func (l *Lease) Sent() time.Time { return l.sent }

// Waited is how long Acquire took, the line included.
func (l *Lease) Waited() time.Duration { return l.waited }

// Deadline is until when the lease may be trusted without asking: by the local monotonic
// clock, counted from before the request was sent, less the margin. A renewal moves it.
func (l *Lease) Deadline() time.Time { return l.end().Add(-l.plan.Margin) }

// Remaining is the time to Deadline; 0 when that has passed or the lease is over.
func (l *Lease) Remaining() time.Duration {
	if !l.Held() {
		return 0
	}
	return max(0, time.Until(l.Deadline()))
}

// Held reports whether the lease was neither released nor lost and its Deadline has not
// passed. It asks nobody.
func (l *Lease) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.over && time.Now().Before(l.endsAt().Add(-l.plan.Margin))
}

// Lost is closed when the lease is lost: when the backend said so or could not be asked
// (Confirm, a renewal), when the Deadline of a renewed lease passed because no renewal
// succeeded or its longest hold was reached, and when an unrenewed lease came to its end:
// the margin after its Deadline, so that a run that is stopped at the Deadline ends by that
// and not as a loss. It stays open when the lease is released in time.
func (l *Lease) Lost() <-chan struct{} { return l.life.Done() }

// AfterLost arranges for f to be called in a goroutine of its own when the lease is lost, or
// at once if it has been. The returned function takes that back; it returns false when f
// has been called or was taken back already.
func (l *Lease) AfterLost(f func()) (stop func() bool) { return context.AfterFunc(l.life, f) }

// Err is a *LostError once the lease is lost, else nil.
func (l *Lease) Err() error { return context.Cause(l.life) }

// end is when the backend may drop the lock at the earliest.
func (l *Lease) end() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endsAt()
}

func (l *Lease) endsAt() time.Time {
	end, hold := l.good.Add(l.plan.Lease), l.sent.Add(l.plan.Hold)
	if hold.Before(end) {
		return hold
	}
	return end
}

// limit is when the lease counts as lost if nothing prolongs it. See Lost.
func (l *Lease) limit() time.Time {
	if l.plan.Renew == 0 {
		return l.endsAt()
	}
	return l.endsAt().Add(-l.plan.Margin)
}

func (l *Lease) by() Holder { return Holder{API: l.api, Since: l.sent}.apart() }

// expire is the timer's function: it waits on when a renewal has moved the limit.
func (l *Lease) expire() {
	l.mu.Lock()
	if wait := time.Until(l.limit()); wait > 0 && !l.over {
		l.timer.Reset(wait)
		l.mu.Unlock()
		return
	}
	lost := &LostError{Cause: MaxHoldReached}
	if l.plan.Renew > 0 && l.endsAt().Before(l.sent.Add(l.plan.Hold)) {
		lost = &LostError{Cause: ConfirmFailed, Err: l.trouble}
	}
	l.mu.Unlock()
	l.fail(lost)
}

// fail marks the lease as lost, unless it is over already, and returns why it is not held.
func (l *Lease) fail(lost *LostError) error {
	lost.Key, lost.Token = l.key, l.owner.Token
	if l.finish(lost) {
		l.m.note(Event{What: Lost, Key: l.key, Took: time.Since(l.sent), Err: lost})
		l.m.renewals.drop(l.renewal)
		l.m.lines.free(l.lock, l)
	}
	if err := l.Err(); err != nil {
		return err
	}
	return lost // it was released in the meantime
}

// finish ends the lease once; lost is nil when it is released.
func (l *Lease) finish(lost *LostError) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.over = true
	l.timer.Stop()
	if lost != nil {
		l.lose(lost) // under the lock: whoever sees over sees the cause too
	}
	l.m.calls.done()
	return true
}

// bound returns a context that ends when the lease is lost, or when an unrenewed one
// reaches its Deadline.
func (l *Lease) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.life, func() { cancel(l.Err()) })
	undo := func() { stop(); cancel(nil) }
	if l.plan.Renew > 0 {
		return ctx, undo
	}
	over := &LostError{Key: l.key, Token: l.owner.Token, Cause: MaxHoldReached}
	ctx, cancelTimer := context.WithDeadlineCause(ctx, l.Deadline(), over)
	return ctx, func() { cancelTimer(); undo() }
}
