package lockwrap_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	kinds "apiengine/fault"
	"apiengine/lockwrap"
)

func TestErrorsClassifyThemselves(t *testing.T) {
	key := lockwrap.Key{Tenant: "acme", Scope: "OrderId", Value: "42"}
	secret := errors.New("dial tcp 10.0.0.1:6379: password hunter2")
	for _, c := range []struct {
		err    error
		kind   kinds.Kind
		public string
	}{
		{&lockwrap.BusyError{Key: key, Waited: 1500 * time.Millisecond}, kinds.LockBusy, "still taken by another call after a wait of 1.5s"},
		{&lockwrap.BusyError{Key: key}, kinds.LockBusy, "taken by another call"},
		{&lockwrap.QueueFullError{Key: key, Max: 7}, kinds.QueueFull, "7 waiters"},
		{&lockwrap.LostError{Key: key, Cause: lockwrap.ConfirmFailed, Err: secret}, kinds.LeaseLost, "分布式锁租约已丢失"},
		{&lockwrap.BackendError{Op: "acquire", Err: secret}, kinds.LockUnavailable, "cannot be reached"},
		{&lockwrap.UnknownError{Op: "acquire", Err: secret}, kinds.LockUnavailable, "cannot be reached"},
		{&lockwrap.ClosedError{}, kinds.Draining, "shutting down"},
		{&lockwrap.InvalidError{Field: "Floor", Msg: "is odd"}, kinds.BadRequest, "Floor is odd"},
	} {
		public := kinds.Public(c.err)
		if kinds.Of(c.err) != c.kind || !strings.Contains(public, c.public) || strings.Contains(public, "hunter2") {
			t.Errorf("%T: kind %q, public %q", c.err, kinds.Of(c.err), public)
		}
		if c.kind != kinds.BadRequest && c.kind != kinds.LeaseLost && kinds.Details(c.err)["RetryAfterMs"] == nil {
			t.Errorf("%T says nothing of when to try again: %v", c.err, kinds.Details(c.err))
		}
	}
	lost := &lockwrap.LostError{Key: key, Token: 7, Cause: lockwrap.TokenMismatch}
	if d := lost.Details(); d["Cause"] != "token_mismatch" {
		t.Errorf("details of a loss: %v", d)
	}
}

func TestRetryAfterIsSensible(t *testing.T) {
	for left, want := range map[time.Duration]int64{0: 100, time.Millisecond: 100, 2 * time.Second: 2000, 12 * time.Hour: 30_000} {
		if got := (&lockwrap.BusyError{Left: left}).Details()["RetryAfterMs"]; got != want {
			t.Errorf("with %v left: %v, want %d", left, got, want)
		}
	}
}
