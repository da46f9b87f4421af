package locktest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"apiengine/budget"
	"apiengine/lockwrap"
)

// What tests of a backend beside the suite need.

// Node returns a Manager that the end of the test closes; nothing may be left of it then.
func Node(t testing.TB, cfg lockwrap.Config) *lockwrap.Manager {
	t.Helper()
	m, err := lockwrap.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Errorf("Close of %s: %v", cfg.Instance, err)
		}
	})
	return m
}

// Request is one for the lock acme:OrderId:42 that is not renewed.
func Request(lease, wait time.Duration) lockwrap.Request {
	return lockwrap.Request{Key: lockwrap.Key{Tenant: "acme", Scope: "OrderId", Value: "42"}, API: "order_pay",
		Plan: budget.Plan{Lease: lease, Hold: lease, Wait: wait, Run: lease, Margin: budget.Margin(lease)}}
}

// Acquire fails the test when it gets no lease.
func Acquire(t testing.TB, m *lockwrap.Manager, r lockwrap.Request) *lockwrap.Lease {
	t.Helper()
	l, err := m.Acquire(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Release fails the test when the lock was not the lease's until then.
func Release(t testing.TB, l *lockwrap.Lease) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// WantLost fails the test unless err is a *LostError of one of these causes.
func WantLost(t testing.TB, err error, causes ...lockwrap.LossCause) {
	t.Helper()
	var l *lockwrap.LostError
	if !errors.As(err, &l) || !slices.Contains(causes, l.Cause) {
		t.Errorf("got %v, want lost by one of %v", err, causes)
	}
}
