package fault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"apiengine/fault"
)

func TestOf(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.1: password=hunter2")
	for _, c := range []struct {
		name string
		err  error
		want fault.Kind
	}{
		{"nil has none", nil, ""},
		{"an error names itself", fault.New(fault.LockBusy, "busy"), fault.LockBusy},
		{"through wrapping", fmt.Errorf("engine: %w", fault.New(fault.NotFound, "no")), fault.NotFound},
		{"through Join", errors.Join(secret, fault.New(fault.LeaseLost, "lost")), fault.LeaseLost},
		{"a deadline", fmt.Errorf("x: %w", context.DeadlineExceeded), fault.Timeout},
		{"a caller that left", context.Canceled, fault.Canceled},
		{"anything else is our defect", secret, fault.Internal},
	} {
		if got := fault.Of(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPublicNeverShowsTheCause(t *testing.T) {
	secret := errors.New("password=hunter2")
	for _, err := range []error{
		secret,
		fmt.Errorf("store: %w", secret),
		fault.Wrap(fault.StoreUnavailable, secret, "the database cannot be reached"),
		errors.Join(secret, fault.New(fault.LeaseLost, "lost")),
		fault.Wrap(fault.LeaseLost, secret, ""),
	} {
		if got := fault.Public(err); got == "" || strings.Contains(got, "hunter2") {
			t.Errorf("Public(%v) = %q", err, got)
		}
	}
	if got := fault.Public(fault.Wrap(fault.LeaseLost, secret, "")); !strings.Contains(got, "分布式锁租约已丢失") {
		t.Errorf("the lease-lost text lacks its Chinese term: %q", got)
	}
}
