package lockwrap_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kinds "apiengine/fault"
	"apiengine/lockwrap"
)

func TestWaitCapIsExact(t *testing.T) {
	for _, c := range []struct {
		name    string
		elsehow func(n *node) *lockwrap.Manager // who holds
	}{
		{"held by this node", func(n *node) *lockwrap.Manager { return n.Manager }},
		{"held by another", func(n *node) *lockwrap.Manager { return n.other }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{})
				defer end()
				l := acquire(t, c.elsehow(n), request(30*time.Second, 0))
				var all sync.WaitGroup
				for i := range 5 {
					all.Go(func() {
						time.Sleep(time.Duration(5-i) * time.Millisecond) // one try is last: it knows what the head heard
						began, wait := time.Now(), time.Duration(i)*time.Second
						left := 30*time.Second - wait - time.Since(l.Sent())
						_, err := n.Acquire(t.Context(), request(30*time.Second, wait))
						var busy *lockwrap.BusyError
						if !errors.As(err, &busy) || busy.Waited != wait || time.Since(began) != wait {
							t.Errorf("cap %v: got %v after %v", wait, err, time.Since(began))
						}
						if busy.Left != left || busy.Holder.API != "order_pay" {
							t.Errorf("cap %v: %v left, held by %q", wait, busy.Left, busy.Holder.API)
						}
					})
				}
				all.Wait()
				release(t, l)
			})
		})
	}
}

func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(time.Minute, 0))
		var order []int
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				err := n.Do(t.Context(), request(time.Minute, time.Minute), func(context.Context, *lockwrap.Lease) error {
					order = append(order, i) // the lock keeps it safe
					time.Sleep(time.Millisecond)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // this one stands in line now
		}
		began := time.Now()
		release(t, l)
		all.Wait()
		if !slices.IsSorted(order) || len(order) != 50 {
			t.Errorf("order %v", order)
		}
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Errorf("50 turns of 1 ms took %v: a release must wake the next at once", took)
		}
	})
}

// One that is told of its turn asks every second; one that hears nothing after pauses of half
// of 80 ms in the mean. Both times it does not matter how many wait.
func TestOnlyTheHeadAsks(t *testing.T) {
	for _, c := range []struct {
		name        string
		deaf        bool
		least, most int
	}{{"told", false, 10, 20}, {"deaf", true, 100, 600}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{}, func(f *faulty) {
					if c.deaf {
						f.set("notify", refused, forever)
					}
				})
				defer end()
				l := acquire(t, n.other, request(time.Minute, 0))
				var all sync.WaitGroup
				for range 200 {
					all.Go(func() {
						if _, err := n.Acquire(t.Context(), request(time.Minute, 10*time.Second)); kinds.Of(err) != kinds.LockBusy {
							t.Errorf("got %v", err)
						}
					})
				}
				all.Wait()
				if asks := n.line.count("acquire"); asks < c.least || asks > c.most {
					t.Errorf("200 waiters asked %d times in 10 s, want %d to %d", asks, c.least, c.most)
				}
				release(t, l)
			})
		})
	}
}

func TestNobodyAsksWhileThisNodeHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(time.Minute, 0))
		if _, err := n.Acquire(t.Context(), request(time.Minute, 10*time.Second)); kinds.Of(err) != kinds.LockBusy {
			t.Errorf("got %v", err)
		}
		release(t, l)
		if a, r, c := n.line.count("acquire"), n.line.count("release"), n.line.count("confirm"); a != 1 || r != 1 || c != 0 {
			t.Errorf("one locked call made %d acquires, %d releases, %d confirms, want 1, 1 and 0", a, r, c)
		}
	})
}

// Who stands behind one that leaves takes over its asking. A notice would wake it too, so
// one node hears none, nor that it is deaf.
func TestTheBatonIsPassedOn(t *testing.T) {
	for name, deaf := range map[string][]fault{"told": nil, "deaf": {blackHole}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{}, func(f *faulty) { f.set("notify", deaf...) })
				defer end()
				l := acquire(t, n.other, request(time.Minute, 0))
				cause := errors.New("gone")
				ctx, cancel := context.WithCancelCause(t.Context())
				results := make(chan error, 3)
				for _, c := range []context.Context{ctx, ctx, t.Context()} { // the head, one behind it, one that stays
					go func() {
						l, err := n.Acquire(c, request(time.Minute, time.Minute))
						if err == nil {
							err = l.Release(context.Background())
						}
						results <- err
					}()
					synctest.Wait()
				}
				cancel(cause)
				for range 2 {
					if err := <-results; !errors.Is(err, cause) {
						t.Errorf("got %v, want the context's cause", err)
					}
				}
				release(t, l)
				released := time.Now()
				if err := <-results; err != nil || time.Since(released) > 81*time.Millisecond {
					t.Errorf("the one that stayed: %v after %v", err, time.Since(released))
				}
			})
		})
	}
}

func TestALostLeaseLetsTheNextOneIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		stuck := acquire(t, n.Manager, request(10*time.Second, 0))
		began := time.Now()
		l := acquire(t, n.Manager, request(time.Minute, time.Minute)) // no release comes
		if took := time.Since(began); took < 10*time.Second || took > 10*time.Second+81*time.Millisecond {
			t.Errorf("entered after %v, the lease lasted 10 s", took)
		}
		wantLost(t, stuck.Release(t.Context()), lockwrap.MaxHoldReached)
		if err := l.Confirm(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, l)
	})
}

func TestMaxQueue(t *testing.T) {
	for _, c := range []struct{ most, tries, refused int }{{1, 5, 4}, {3, 5, 2}, {-1, 1500, 0}, {0, 1005, 5}} {
		t.Run(fmt.Sprint(c.most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{MaxQueue: c.most})
				defer end()
				l := acquire(t, n.Manager, request(time.Minute, 0))
				got := map[kinds.Kind]int{}
				var mu sync.Mutex
				var all sync.WaitGroup
				for range c.tries {
					all.Go(func() {
						_, err := n.Acquire(t.Context(), request(time.Minute, time.Second))
						mu.Lock()
						defer mu.Unlock()
						got[kinds.Of(err)]++
					})
				}
				all.Wait()
				if got[kinds.QueueFull] != c.refused || got[kinds.LockBusy] != c.tries-c.refused {
					t.Errorf("got %v, want %d refused", got, c.refused)
				}
				release(t, l)
			})
		})
	}
}

func TestJitter(t *testing.T) {
	const first, most = 4 * time.Millisecond, 80 * time.Millisecond
	for try, bound := range map[int]time.Duration{1: 4, 2: 8, 3: 16, 5: 64, 6: 80, 7: 80, 1000: 80} {
		bound *= time.Millisecond
		var longest time.Duration
		for range 1000 {
			d := lockwrap.Jitter(first, most, try)
			if d <= 0 || d > bound {
				t.Fatalf("try %d: %v, want within (0, %v]", try, d, bound)
			}
			longest = max(longest, d)
		}
		if longest < bound/2 {
			t.Errorf("try %d: the longest of 1000 pauses is %v of at most %v", try, longest, bound)
		}
	}
}
