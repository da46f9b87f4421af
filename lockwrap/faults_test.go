package lockwrap_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kinds "apiengine/fault"
	"apiengine/lockwrap"
)

// wantFree fails unless the other node gets the lock at the first try.
func (n *node) wantFree(t *testing.T) {
	t.Helper()
	release(t, acquire(t, n.other, request(time.Minute, 0)))
}

func TestAcquireFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []fault
		wait   time.Duration
		kind   kinds.Kind    // of the error; empty: granted
		asks   int           // acquires sent; 0 = any number
		within time.Duration // of virtual time
	}{
		{"the answer is lost: granted once", []fault{lost}, 0, "", 2, 0},
		{"the request is lost: sent again at once", []fault{vanished}, 0, "", 2, 0},
		{"two answers are lost: a try-once gives up", []fault{lost, lost}, 0, kinds.LockUnavailable, 2, 0},
		{"two answers are lost within the wait cap", []fault{lost, lost}, 5 * time.Second, "", 3, time.Second},
		{"refused, nobody may wait", []fault{refused}, 0, kinds.LockUnavailable, 1, 0},
		{"refused for a while: rides it out", []fault{refused, refused, vanished, refused}, 5 * time.Second, "", 5, time.Second},
		{"refused for ever: patience ends before the wait cap", []fault{refused, forever}, 30 * time.Second, kinds.LockUnavailable, 0, 4 * time.Second},
		{"no answer for ever, with a cap of 300 ms", []fault{blackHole, forever}, 300 * time.Millisecond, kinds.LockUnavailable, 0, 400 * time.Millisecond},
		{"no answer for ever, one try", []fault{blackHole, forever}, 0, kinds.LockUnavailable, 1, 500 * time.Millisecond},
		{"one black hole, then well", []fault{blackHole}, 5 * time.Second, "", 2, 500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{})
				defer end()
				n.line.set("acquire", c.faults...)
				began := time.Now()
				l, err := n.Acquire(t.Context(), request(time.Minute, c.wait))
				if kinds.Of(err) != c.kind || time.Since(began) > c.within {
					t.Errorf("got %v after %v, want %q within %v", err, time.Since(began), c.kind, c.within)
				}
				if asks := n.line.count("acquire"); c.asks > 0 && asks != c.asks {
					t.Errorf("asked %d times, want %d", asks, c.asks)
				}
				if l != nil {
					release(t, l)
				}
				n.line.set("acquire")
				synctest.Wait() // for clean-ups, which need no time where nothing is broken any more
				time.Sleep(time.Second)
				n.wantFree(t)
			})
		})
	}
}

func TestErrorsTellWhetherItWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		n.line.set("acquire", refused)
		_, err := n.Acquire(t.Context(), request(time.Minute, 0))
		var backend *lockwrap.BackendError
		if !errors.As(err, &backend) || !errors.Is(err, errFault) {
			t.Errorf("refused: %v, want a *BackendError", err)
		}
		n.line.set("acquire", vanished, vanished)
		_, err = n.Acquire(t.Context(), request(time.Minute, 0))
		var unknown *lockwrap.UnknownError
		if !errors.As(err, &unknown) || !errors.Is(err, errFault) {
			t.Errorf("vanished: %v, want an *UnknownError", err)
		}
	})
}

func TestQueuedWaitersHearThatTheBackendIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		n.line.set("acquire", refused, forever)
		results := make(chan error, 20)
		for range cap(results) {
			go func() {
				_, err := n.Acquire(t.Context(), request(time.Minute, 10*time.Second))
				results <- err
			}()
		}
		began := time.Now()
		for range cap(results) {
			if err := <-results; kinds.Of(err) != kinds.LockUnavailable {
				t.Errorf("got %v, want lock_unavailable", err)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("20 waiters needed %v to hear it", took)
		}
	})
}

func TestOneFailureDoesNotHideAHolder(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []fault
		kind   kinds.Kind
	}{
		{"only the last attempt, cut short by the cap, had no answer", []fault{blackHole}, kinds.LockBusy},
		{"no answer for half of the wait", []fault{blackHole, forever}, kinds.LockUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{}, func(f *faulty) { f.set("notify", refused, forever) }) // so that it asks often
				defer end()
				l := acquire(t, n.other, request(time.Minute, 0))
				wait := 2 * time.Second
				at := wait / 2
				if len(c.faults) == 1 {
					at = wait - 90*time.Millisecond
				}
				time.AfterFunc(at, func() { n.line.set("acquire", c.faults...) })
				results := make(chan error, 2)
				for range cap(results) { // the head, and one behind it
					go func() {
						_, err := n.Acquire(t.Context(), request(time.Minute, wait))
						results <- err
					}()
				}
				for range cap(results) {
					if err := <-results; kinds.Of(err) != c.kind {
						t.Errorf("got %v, want %s", err, c.kind)
					}
				}
				n.line.set("acquire")
				release(t, l)
			})
		})
	}
}

func TestACallerThatLeavesInFlightLeavesNothing(t *testing.T) {
	for _, f := range []fault{blackHole, late, lost} {
		synctest.Test(t, func(t *testing.T) {
			n, end := start(t, lockwrap.Config{})
			defer end()
			n.line.set("acquire", f, blackHole)
			cause := errors.New("gone")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
			began := time.Now()
			_, err := n.Acquire(ctx, request(time.Minute, time.Minute))
			if !errors.Is(err, cause) || time.Since(began) != 10*time.Millisecond {
				t.Errorf("fault %d: got %v after %v", f, err, time.Since(began))
			}
			time.Sleep(2 * time.Second) // two attempts' time and a bit
			n.wantFree(t)
		})
	}
}

func TestAGrantThatComesTooLateIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{Attempt: 10 * time.Second})
		defer end()
		n.line.set("acquire", late) // answers after a sixth of the lease
		l := acquire(t, n.Manager, request(3*time.Second, 0))
		if !l.Held() || l.Fresh() != (time.Since(l.Sent()) < 750*time.Millisecond) {
			t.Errorf("held %v, fresh %v after %v", l.Held(), l.Fresh(), time.Since(l.Sent()))
		}
		release(t, l)
		n.line.set("acquire", late)
		r := request(30*time.Millisecond, 5*time.Second) // here an attempt lasts for the whole lease
		l = acquire(t, n.Manager, r)
		if !l.Held() || n.line.count("acquire") < 3 {
			t.Errorf("held %v after %d acquires, want a second one", l.Held(), n.line.count("acquire"))
		}
		release(t, l)
	})
}

func TestReleaseFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []fault
		cause  lockwrap.LossCause // empty: nil
		within time.Duration
	}{
		{"refused once", []fault{refused}, "", 100 * time.Millisecond},
		// The embedded backend forgets a released lock's token, so nobody can tell (package
		// redis's test has the case where it is remembered).
		{"the answer is lost, and nobody remembers", []fault{lost}, lockwrap.TokenMismatch, 100 * time.Millisecond},
		{"the request is lost", []fault{vanished, vanished}, "", 200 * time.Millisecond},
		{"no answer in time", []fault{blackHole, blackHole}, lockwrap.ConfirmFailed, 500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{})
				defer end()
				n.line.set("release", c.faults...)
				l := acquire(t, n.Manager, request(time.Minute, 0))
				began := time.Now()
				err := l.Release(t.Context())
				if time.Since(began) > c.within {
					t.Errorf("took %v", time.Since(began))
				}
				if c.cause == "" && err != nil {
					t.Errorf("got %v", err)
				} else if c.cause != "" {
					wantLost(t, err, c.cause)
				}
				time.Sleep(2 * time.Second)
				n.wantFree(t)
			})
		})
	}
}

func TestAReleaseWhoseAnswerWasLostIsNotTrustedOnceAnotherCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(time.Minute, 0))
		n.line.set("release", lost, blackHole)
		done := make(chan error, 1)
		go func() { done <- l.Release(context.Background()) }()
		synctest.Wait()
		next := acquire(t, n.other, request(time.Minute, time.Second))
		wantLost(t, <-done, lockwrap.ConfirmFailed)
		time.Sleep(2 * time.Second) // the clean-up behind the first release
		if err := next.Confirm(t.Context()); err != nil {
			t.Errorf("the clean-up freed a newer holder's lock: %v", err)
		}
		release(t, next)
	})
}

func TestConfirmFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []fault
		cause  lockwrap.LossCause
	}{
		{"one failure is tried again", []fault{refused}, ""},
		{"one lost answer too", []fault{lost}, ""},
		{"unreachable", []fault{refused, forever}, lockwrap.ConfirmFailed},
		{"no answer", []fault{blackHole, forever}, lockwrap.ConfirmFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{})
				defer end()
				l := acquire(t, n.Manager, request(time.Minute, 0))
				n.line.set("confirm", c.faults...)
				err := l.Confirm(t.Context())
				if c.cause == "" {
					if err != nil || !l.Held() {
						t.Errorf("got %v, held %v", err, l.Held())
					}
					release(t, l)
					return
				}
				wantLost(t, err, c.cause)
				if l.Held() || !errors.Is(l.Err(), err) {
					t.Errorf("held %v, Err %v", l.Held(), l.Err())
				}
				wantLost(t, l.Release(t.Context()), c.cause)
				n.wantFree(t) // it was given back all the same
			})
		})
	}
}

func TestConfirmEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(time.Minute, 0))
		n.line.set("confirm", blackHole)
		cause := errors.New("gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
		defer cancel()
		if err := l.Confirm(ctx); !errors.Is(err, cause) || l.Err() != nil {
			t.Errorf("got %v, and the lease says %v", err, l.Err())
		}
		release(t, l)
	})
}

func TestConfirmBelievesTheBackendsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(time.Minute, 0))
		token, holder, _ := strings.Cut(l.Owner(), ":")
		if token != fmt.Sprint(l.Token()) {
			t.Errorf("owner %q of token %d", l.Owner(), l.Token())
		}
		_, err := n.line.Renew(t.Context(), "apiengine:{acme:OrderId:42}", lockwrap.Owner{Token: l.Token(), Holder: holder}, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		n.line.set("confirm", late) // "yours, for 50 ms", half a second ago
		wantLost(t, l.Confirm(t.Context()), lockwrap.MaxHoldReached)
		wantLost(t, l.Release(t.Context()), lockwrap.MaxHoldReached)
	})
}

func TestConfirmIsLateWhenItsAnswerIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(2*time.Second, 0))
		time.Sleep(1800 * time.Millisecond)
		n.line.set("confirm", late) // held when asked, over when heard
		wantLost(t, l.Confirm(t.Context()), lockwrap.MaxHoldReached)
		wantLost(t, l.Release(t.Context()), lockwrap.MaxHoldReached)
	})
}
