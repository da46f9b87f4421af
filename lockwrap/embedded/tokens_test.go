package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/fault"
	"apiengine/lockwrap"
	"apiengine/lockwrap/embedded"
)

// markIn keeps the mark in memory, as a database would beyond a process.
type markIn struct {
	mu    sync.Mutex
	v     int64
	saves int
	err   error
}

func (m *markIn) Load(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.v, m.err
}

func (m *markIn) Save(_ context.Context, v int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.v = v
		m.saves++
	}
	return m.err
}

func (m *markIn) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func boot(t *testing.T, m *markIn) *embedded.Backend {
	t.Helper()
	b, err := embedded.New(t.Context(), embedded.Config{Mark: m})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func take(t *testing.T, b *embedded.Backend, lock string) int64 {
	t.Helper()
	r, err := b.Acquire(t.Context(), lockwrap.Claim{Lock: lock, Holder: "n1:aa", TTL: time.Minute})
	if err != nil || !r.Held {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := b.Release(t.Context(), lock, lockwrap.Owner{Holder: "n1:aa"}, nil); err != nil {
		t.Fatal(err)
	}
	return r.Token
}

// A bubble's clock starts at the same instant each time: two bubbles in a row are a process
// that restarts under a clock that was set back.
func TestTokensRiseAcrossRestartsUnderAClockThatWasSetBack(t *testing.T) {
	for _, orderly := range []bool{true, false} {
		t.Run(fmt.Sprint("orderly ", orderly), func(t *testing.T) {
			m, last := &markIn{}, int64(0)
			for process := range 5 {
				synctest.Test(t, func(t *testing.T) {
					b := boot(t, m)
					for i := range 200 {
						got := take(t, b, "x")
						if got <= last {
							t.Fatalf("process %d, grant %d: token %d after %d", process, i, got, last)
						}
						last = got
						time.Sleep(time.Second)
					}
					if orderly {
						if err := b.Close(); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
			ahead := time.Duration(m.v-time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()) * time.Microsecond // a bubble's first instant
			if ahead > time.Hour {
				t.Errorf("five restarts carried the mark %v ahead", ahead)
			}
		})
	}
}

func TestTheMarkIsSavedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &markIn{}
		b := boot(t, m)
		for range 6000 { // ten minutes
			take(t, b, "x")
			time.Sleep(100 * time.Millisecond)
		}
		if m.saves < 10 || m.saves > 12 {
			t.Errorf("%d saves in ten minutes of grants, want about one a minute", m.saves)
		}
	})
}

func TestNoTokenAboveTheSavedMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &markIn{}
		b := boot(t, m)
		first := take(t, b, "x")
		m.fail(errors.New("disk full"))
		time.Sleep(2 * time.Minute)
		_, err := b.Acquire(t.Context(), lockwrap.Claim{Lock: "x", Holder: "n1:aa", TTL: time.Minute})
		var refused *lockwrap.BackendError
		if !errors.As(err, &refused) || fault.Of(err) != fault.LockUnavailable {
			t.Errorf("a token that no mark covers was given out: %v", err)
		}
		m.fail(nil)
		if got := take(t, b, "x"); got <= first || got > m.v {
			t.Errorf("token %d after %d with the mark at %d", got, first, m.v)
		}
	})
}

func TestNewNeedsItsMark(t *testing.T) {
	cause := errors.New("no such table")
	if _, err := embedded.New(t.Context(), embedded.Config{Mark: &markIn{err: cause}}); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestAFloorRaisesItsOwnLockOnly(t *testing.T) {
	b, err := embedded.New(t.Context(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := lockwrap.Claim{Lock: "x", Holder: "n1:aa", TTL: time.Minute, Floor: 1 << 52}
	if r, err := b.Acquire(t.Context(), c); err != nil || r.Token != 1<<52+1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := b.Release(t.Context(), "x", lockwrap.Owner{Holder: c.Holder}, nil); err != nil {
		t.Fatal(err)
	}
	if got := take(t, b, "y"); got >= 1<<52 {
		t.Errorf("another lock got token %d", got)
	}
	if got := take(t, b, "x"); got != 1<<52+2 {
		t.Errorf("the lock itself got token %d: its last was forgotten", got)
	}
}

func TestAbandonedLocksAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := embedded.New(t.Context(), embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100_000 {
			c := lockwrap.Claim{Lock: fmt.Sprint(i), Holder: "n1:aa", TTL: time.Millisecond}
			if _, err := b.Acquire(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if i%1000 == 0 {
				time.Sleep(time.Second)
			}
		}
		if n := embedded.Slots(b); n > 20_000 {
			t.Errorf("%d of 100000 abandoned locks are still in memory", n)
		}
	})
}

func TestClosedRefuses(t *testing.T) {
	b, err := embedded.New(t.Context(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	_, err = b.Acquire(t.Context(), lockwrap.Claim{Lock: "x", Holder: "n1:aa", TTL: time.Minute})
	if fault.Of(err) != fault.LockUnavailable || fault.Of(b.Ping(t.Context())) != fault.LockUnavailable {
		t.Errorf("after Close: %v, %v", err, b.Ping(t.Context()))
	}
}
