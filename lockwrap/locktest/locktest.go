// Package locktest is the contract of a lockwrap.Backend as a test suite. A package with a
// backend runs it so:
//
//	func TestContract(t *testing.T) {
//		locktest.Run(t, func(t testing.TB) lockwrap.Backend { ... })
//	}
package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"apiengine/budget"
	"apiengine/lockwrap"
)

// Open connects one more node to the store of locks under test: all backends that one Open
// returns share their locks. Each is closed by the suite.
type Open func(t testing.TB) lockwrap.Backend

// Run runs the whole suite, each test under names of its own.
func Run(t *testing.T, open Open) { run(t, open, false) }

// RunPolling runs the suite but for what needs Notify to work, for a backend that has no
// notices where it is, such as behind a connection pooler. Whoever waits asks instead.
func RunPolling(t *testing.T, open Open) { run(t, open, true) }

func run(t *testing.T, open Open, polling bool) {
	for _, group := range [][]test{portTests, lineTests, exclusionTests, waitingTests, leaseTests, keyTests, endTests, inspectTests} {
		for _, x := range group {
			t.Run(x.name, func(t *testing.T) { x.run(&suite{T: t, open: open, polling: polling, prefix: "t-" + rand.Text()}) })
		}
	}
}

type test struct {
	name string
	run  func(*suite)
}

// suite is one test with its backend.
type suite struct {
	*testing.T
	open    Open
	polling bool      // Notify does not work
	prefix  string    // of every lock of the test
	passed  time.Time // when a lock was last given back, which keeps it for Grace
}

// node returns a Manager of its own on the shared locks.
func (s *suite) node(name string) *lockwrap.Manager {
	s.Helper()
	return s.nodeWith(lockwrap.Config{Instance: name})
}

func (s *suite) nodeWith(cfg lockwrap.Config) *lockwrap.Manager {
	s.Helper()
	cfg.Backend, cfg.Prefix = s.open(s.T), s.prefix
	m, err := lockwrap.New(cfg)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			s.Errorf("Close of %s: %v", cfg.Instance, err)
		}
	})
	return m
}

// request is one for the test's lock of that name.
func request(name string, lease, wait time.Duration) lockwrap.Request {
	return lockwrap.Request{Key: lockwrap.Key{Tenant: "acme", Scope: "OrderId", Value: name}, API: "api_of_" + name,
		Plan: budget.Plan{Lease: lease, Hold: lease, Wait: wait, Run: lease, Margin: budget.Margin(lease)}}
}

// renewed makes it a lease that is kept alive for at most hold.
func renewed(r lockwrap.Request, hold time.Duration) lockwrap.Request {
	r.Plan.Renew, r.Plan.Hold = r.Plan.Lease/3, hold
	return r
}

func (s *suite) acquire(m *lockwrap.Manager, r lockwrap.Request) *lockwrap.Lease {
	s.Helper()
	l, err := m.Acquire(s.Context(), r)
	if err != nil {
		s.Fatalf("acquire: %v", err)
	}
	return l
}

func (s *suite) release(l *lockwrap.Lease) {
	s.Helper()
	if err := l.Release(s.Context()); err != nil {
		s.Fatalf("release: %v", err)
	}
}

// wantLost fails unless err is a *LostError of this cause.
func (s *suite) wantLost(what string, err error, cause lockwrap.LossCause) {
	s.Helper()
	var lost *lockwrap.LostError
	if !errors.As(err, &lost) || lost.Cause != cause {
		s.Fatalf("%s: got %v, want a lease lost by %s", what, err, cause)
	}
}

// wantFree fails unless somebody else gets the lock at the first try.
func (s *suite) wantFree(m *lockwrap.Manager, name string) {
	s.Helper()
	s.release(s.acquire(m, request(name, 5*time.Second, 0)))
}

// lock is the name under which a Manager with the test's prefix keeps the lock.
func (s *suite) lock(name string) string {
	return s.prefix + ":{" + request(name, time.Second, 0).Key.String() + "}"
}

func wait(s *suite, what string, done <-chan struct{}) {
	s.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		s.Fatalf("%s did not happen within 10 s", what)
	}
}
