package lockwrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config sets up a Manager. Backend and Instance are required; a zero field takes its default.
type Config struct {
	Backend      Backend       // the Manager closes it
	Instance     string        // this node's id among those that share the Backend; shows in Owner
	Prefix       string        // of every lock's name; default "apiengine"; without braces and spaces
	MaxQueue     int           // waiters per lock on this node; default 1000, -1 no limit
	VerifyAlways bool          // CheckBefore asks the backend also about a fresh grant
	Attempt      time.Duration // longest single request to the backend; default 500ms, at least 10ms
	Observe      func(Event)   // called where the event happens, so it must return at once; default nothing
	Patience     time.Duration // how long Acquire keeps trying a backend that does not answer; default 3s
}

// Manager takes locks for one node. It is safe for concurrent use; Close ends it.
type Manager struct {
	cfg      Config
	instance string // encoded
	node     string // see Claim
	hears    atomic.Bool
	lines    *lines
	renewals *renewals

	calls   *tally // acquires under way, leases held, clean-ups: what Close lets finish
	workers *tally // goroutines

	quit      chan struct{} // closed when Close begins: waiters go
	work      context.Context
	stopWork  context.CancelFunc // ends renewals and clean-ups
	closeOnce sync.Once
	closeErr  error
}

// New returns a Manager, or an *InvalidError that names the first unusable field of cfg.
func New(cfg Config) (*Manager, error) {
	cfg.Prefix = cmp.Or(cfg.Prefix, "apiengine")
	cfg.MaxQueue = cmp.Or(cfg.MaxQueue, 1000)
	cfg.Attempt = cmp.Or(cfg.Attempt, 500*time.Millisecond)
	cfg.Patience = cmp.Or(cfg.Patience, 3*time.Second)
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &Manager{cfg: cfg, instance: encode(cfg.Instance), lines: newLines(),
		calls: newTally(), workers: newTally(), quit: make(chan struct{})}
	m.renewals = newRenewals(m)
	m.node = m.nodes() + m.instance
	m.work, m.stopWork = context.WithCancel(context.Background())
	m.spawn(m.listen)
	return m, nil
}

func (c Config) check() error {
	switch {
	case c.Backend == nil:
		return &InvalidError{"Config.Backend", "is missing"}
	case c.Instance == "":
		return &InvalidError{"Config.Instance", "is missing"}
	case len(c.Prefix) > 100 || strings.ContainsFunc(c.Prefix, func(r rune) bool { return r <= ' ' || r == '{' || r == '}' }):
		return &InvalidError{"Config.Prefix", "must be at most 100 bytes without spaces, control characters and braces"}
	case c.MaxQueue < -1:
		return &InvalidError{"Config.MaxQueue", fmt.Sprintf("must be -1 or more, not %d", c.MaxQueue)}
	case c.Attempt < 10*time.Millisecond:
		return &InvalidError{"Config.Attempt", fmt.Sprintf("must be at least 10ms, not %v", c.Attempt)}
	case c.Patience < 0:
		return &InvalidError{"Config.Patience", fmt.Sprintf("must not be negative, not %v", c.Patience)}
	}
	return nil
}

// Do waits for the lock on r.Key, at most r.Plan.Wait, and runs fn while it holds it. fn's
// Lease carries a token greater than that of any earlier holder. When the lease is lost,
// or an unrenewed one reaches its Deadline, fn's context ends with a *LostError as its
// cause; fn must return soon, and what it wrote must be refused by its token.
//
// It returns what Acquire returned if that failed; a *LostError, joined with fn's error, if
// the lease was lost before fn's end was confirmed, whatever fn returned; else fn's error as
// it is. The lock is released on every path, also when fn panics, and the panic goes on.
func (m *Manager) Do(ctx context.Context, r Request, fn func(ctx context.Context, l *Lease) error) (err error) {
	l, err := m.Acquire(ctx, r)
	if err != nil {
		return err
	}
	defer func() {
		if lost := l.Release(ctx); lost != nil && err == nil {
			err = lost
		} else if lost != nil {
			err = errors.Join(lost, err)
		}
	}()
	if err := l.CheckBefore(ctx); err != nil {
		return noted(err, l)
	}
	fctx, cancel := l.bound(ctx)
	defer cancel()
	return noted(fn(fctx, l), l)
}

// noted drops err when Release is going to report it anyway.
func noted(err error, l *Lease) error {
	if lost := l.Err(); lost != nil && err == lost {
		return nil
	}
	return err
}

// Ready reports whether the backend can be reached: nil, a *ClosedError, or the backend's
// error. It takes at most Config.Attempt.
func (m *Manager) Ready(ctx context.Context) error {
	if m.closing() {
		return &ClosedError{}
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Attempt)
	defer cancel()
	return m.cfg.Backend.Ping(ctx)
}

// Close ends the Manager. Waiters fail at once with a *ClosedError, as does every later
// Acquire. Leases stay, with their renewal, and Close waits until each is released or over
// and every clean-up is done, or until ctx ends; then it closes the backend. It returns an
// error when ctx ended first, with ctx's cause, or when the backend cannot be closed.
// Every call returns the first one's result.
func (m *Manager) Close(ctx context.Context) error {
	m.closeOnce.Do(func() {
		close(m.quit)
		err := m.calls.wait(ctx)
		if err != nil {
			err = fmt.Errorf("lockwrap: closed with %d locks still held or being cleaned up: %w", m.calls.n.Load(), err)
		}
		m.stopWork()
		m.closeErr = errors.Join(err, m.cfg.Backend.Close())
		// Every goroutine's request ends by itself within Config.Attempt.
		_ = m.workers.wait(context.Background())
	})
	return m.closeErr
}

func (m *Manager) closing() bool {
	select {
	case <-m.quit:
		return true
	default:
		return false
	}
}

// attempt is the longest single request about a lease of this length: short enough that
// several fit in before the lease is over.
func (m *Manager) attempt(lease time.Duration) time.Duration {
	return min(m.cfg.Attempt, max(lease/6, min(lease, 50*time.Millisecond)))
}

type answer struct {
	reply Reply
	err   error
}

type question func(ctx context.Context, b Backend) (Reply, error)

// ask puts one question, with its own deadline and untouched by the end of ctx.
func (m *Manager) ask(ctx context.Context, limit time.Duration, q question) answer {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	reply, err := q(ctx, m.cfg.Backend)
	return answer{reply, err}
}

// send is ask for those who may have to turn away before the answer comes: a cancelled
// context does not interrupt a request in flight.
func (m *Manager) send(ctx context.Context, limit time.Duration, q question) <-chan answer {
	out := make(chan answer, 1)
	m.spawn(func() { out <- m.ask(ctx, limit, q) })
	return out
}

// spawn runs f in a goroutine that Close waits for.
func (m *Manager) spawn(f func()) {
	m.workers.add()
	go func() {
		defer m.workers.done()
		f()
	}()
}
