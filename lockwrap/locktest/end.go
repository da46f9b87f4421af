package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"apiengine/fault"
	"apiengine/lockwrap"
)

var endTests = []test{
	{"a panic in the callback releases and goes on", panics},
	{"the callback's error and the release's are both kept", bothErrors},
	{"a caller that hangs up in the callback leaves no lock", hangUp},
	{"Close: waiters fail at once, holders may release", closes},
}

func panics(s *suite) {
	m := s.node("n1")
	func() {
		defer func() {
			if got := recover(); got != "boom" {
				s.Errorf("recovered %v", got)
			}
		}()
		_ = m.Do(s.Context(), request("x", 20*time.Second, 0), func(context.Context, *lockwrap.Lease) error { panic("boom") })
	}()
	s.wantFree(m, "x")
}

func bothErrors(s *suite) {
	m := s.node("n1")
	own := errors.New("out of stock")
	err := m.Do(s.Context(), request("x", 20*time.Second, 0), func(context.Context, *lockwrap.Lease) error { return own })
	if err != own {
		s.Errorf("got %v, want the callback's error as it is", err)
	}
	err = m.Do(s.Context(), request("x", 60*time.Millisecond, 0), func(_ context.Context, l *lockwrap.Lease) error {
		wait(s, "the end of the lease", l.Lost())
		return own
	})
	s.wantLost("a lost lease", err, lockwrap.MaxHoldReached)
	if !errors.Is(err, own) || fault.Of(err) != fault.LeaseLost {
		s.Errorf("got %v, want the callback's error inside a lease_lost", err)
	}
}

func hangUp(s *suite) {
	a, b := s.node("n1"), s.node("n2")
	ctx, cancel := context.WithCancel(s.Context())
	err := a.Do(ctx, request("x", 20*time.Second, 0), func(ctx context.Context, l *lockwrap.Lease) error {
		cancel()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, context.Canceled) {
		s.Errorf("got %v", err)
	}
	s.wantFree(b, "x")
}

func closes(s *suite) {
	backend := s.open(s.T)
	m, err := lockwrap.New(lockwrap.Config{Backend: backend, Prefix: s.prefix, Instance: "n1"})
	if err != nil {
		s.Fatal(err)
	}
	b := s.node("n2")
	mine, theirs := s.acquire(m, request("mine", 20*time.Second, 0)), s.acquire(b, request("theirs", 20*time.Second, 0))
	var all sync.WaitGroup
	for i := range 6 {
		name := []string{"mine", "theirs"}[i%2]
		all.Go(func() {
			_, err := m.Acquire(s.Context(), request(name, 20*time.Second, 20*time.Second))
			var closed *lockwrap.ClosedError
			if !errors.As(err, &closed) || fault.Of(err) != fault.Draining {
				s.Errorf("a waiter got %v, want draining", err)
			}
		})
	}
	done := make(chan error, 1)
	go func() { done <- m.Close(s.Context()) }()
	all.Wait() // they come back while the holder still holds
	select {
	case err := <-done:
		s.Fatalf("Close came back before the holder released: %v", err)
	default:
	}
	if _, err := m.Acquire(s.Context(), request("new", time.Second, 0)); fault.Of(err) != fault.Draining {
		s.Errorf("an acquire while closing: %v", err)
	}
	s.release(mine)
	select {
	case err = <-done:
	case <-time.After(5 * time.Second):
		err = fmt.Errorf("not within 5 s")
	}
	if err != nil {
		s.Errorf("Close: %v", err)
	}
	s.release(theirs)
	s.wantFree(b, "mine")
}
