package lockwrap_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	kinds "apiengine/fault"
	"apiengine/lockwrap"
)

// A backend that says nothing lengthens a wait by no more than the 100 ms that an attempt is
// given, whenever it falls silent, for the head of the line and for those behind it.
func TestABlackHoleKeepsTheWaitCap(t *testing.T) {
	for _, limit := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		for _, from := range []time.Duration{0, limit / 4, limit - time.Millisecond} {
			t.Run(fmt.Sprint(limit, " from ", from), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n, end := start(t, lockwrap.Config{}, func(f *faulty) { f.set("notify", refused, forever) }) // so that it asks often
					defer end()
					l := acquire(t, n.other, request(time.Minute, 0))
					time.AfterFunc(from, func() { n.line.set("acquire", blackHole, forever) })
					results := make(chan time.Duration, 3)
					for range cap(results) {
						go func() {
							began := time.Now()
							_, err := n.Acquire(t.Context(), request(time.Minute, limit))
							if kind := kinds.Of(err); kind != kinds.LockUnavailable && kind != kinds.LockBusy {
								t.Errorf("got %v", err)
							}
							results <- time.Since(began)
						}()
					}
					for range cap(results) {
						if took := <-results; took < limit || took > limit+100*time.Millisecond {
							t.Errorf("it took %v", took)
						}
					}
					n.line.set("acquire")
					release(t, l)
				})
			})
		}
	}
}

// A holder that is cut off knows it no later than one lease after it sent its last good renewal.
func TestACutOffHolderKnowsInTime(t *testing.T) {
	const life = 3 * time.Second
	for _, f := range []fault{blackHole, refused, lost, vanished, late} {
		for _, from := range []time.Duration{0, 900 * time.Millisecond, 1100 * time.Millisecond, 10 * time.Second} {
			t.Run(fmt.Sprint(f, " from ", from), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n, end := start(t, lockwrap.Config{})
					defer end()
					l := acquire(t, n.Manager, renewed(life, time.Hour))
					time.Sleep(from)
					n.line.set("renew", f, forever)
					good := l.Deadline() // no renewal is under way
					if f == late {       // it is slow, but it says yes: no loss
						time.Sleep(3 * life)
						if l.Err() != nil {
							t.Errorf("lost though it was renewed: %v", l.Err())
						}
						n.line.set("renew")
						release(t, l)
						return
					}
					<-l.Lost()
					if over := time.Since(good); over != 0 {
						t.Errorf("told %v after the deadline", over)
					}
					n.line.set("renew")
					wantLost(t, l.Release(t.Context()), lockwrap.ConfirmFailed)
				})
			})
		}
	}
}

// A caller that hangs up leaves the lock to others within 100 ms of its run's end, also when
// the release meets a fault.
func TestWhoHangsUpLeavesTheLockAtOnce(t *testing.T) {
	for _, f := range []fault{none, refused, lost, vanished} {
		t.Run(fmt.Sprint(f), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{})
				defer end()
				n.line.set("release", f)
				cause := errors.New("hung up")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				var ended time.Time
				err := n.Do(ctx, request(time.Minute, 0), func(ctx context.Context, _ *lockwrap.Lease) error {
					<-ctx.Done()
					ended = time.Now()
					go func() {
						time.Sleep(100 * time.Millisecond)
						if l, err := n.other.Acquire(context.Background(), request(time.Minute, 0)); err != nil {
							t.Errorf("100 ms after the run's end: %v", err)
						} else {
							release(t, l)
						}
					}()
					return context.Cause(ctx)
				})
				if !errors.Is(err, cause) || time.Since(ended) > 100*time.Millisecond {
					t.Errorf("got %v, %v after the run's end", err, time.Since(ended))
				}
				time.Sleep(time.Second)
			})
		})
	}
}
