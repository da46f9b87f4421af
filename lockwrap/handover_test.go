package lockwrap_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/lockwrap"
)

// waiter runs one locked call of a millisecond and says how it went.
func waiter(t *testing.T, ctx context.Context, m *lockwrap.Manager, r lockwrap.Request) <-chan error {
	done := make(chan error, 1)
	go func() {
		done <- m.Do(ctx, r, func(ctx context.Context, l *lockwrap.Lease) error {
			time.Sleep(time.Millisecond)
			return l.Confirm(ctx)
		})
	}()
	synctest.Wait() // it stands in line now
	return done
}

// A turn on one node costs one command: the release, which hands over.
func TestATurnIsOneCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(time.Minute, 0))
		var all []<-chan error
		for range 20 {
			all = append(all, waiter(t, t.Context(), n.Manager, request(time.Minute, time.Minute)))
		}
		release(t, l)
		for _, done := range all {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if a, r := n.line.count("acquire"), n.line.count("release"); a != 1 || r != 21 {
			t.Errorf("21 turns took %d acquires and %d releases", a, r)
		}
	})
}

// Whatever becomes of a release that hands over, each waiter gets its turn with a lease that
// the backend knows, nobody is inside twice, and nothing is left behind.
func TestHandOverUnderFaults(t *testing.T) {
	for name, faults := range map[string][]fault{
		"answer lost":             {lost},
		"answer lost, then dead":  {lost, refused, refused},
		"vanished":                {vanished},
		"refused":                 {refused},
		"no answer":               {blackHole},
		"no answer for long":      {blackHole, blackHole, blackHole},
		"answer late":             {late},
		"lost, late, lost, gone":  {lost, late, lost, blackHole},
		"every turn is different": {lost, none, refused, none, late, none, vanished, none, blackHole},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{})
				defer end()
				l := acquire(t, n.Manager, request(10*time.Second, 0))
				var all []<-chan error
				for range 10 {
					all = append(all, waiter(t, t.Context(), n.Manager, request(10*time.Second, time.Minute)))
				}
				n.line.set("release", faults...)
				began := time.Now()
				_ = l.Release(t.Context()) // it may not know; that is for others to test
				for i, done := range all {
					if err := <-done; err != nil {
						var lost *lockwrap.LostError // its own release had no answer
						if !errors.As(err, &lost) || lost.Cause != lockwrap.ConfirmFailed {
							t.Errorf("waiter %d: %v", i, err)
						}
					}
				}
				if took := time.Since(began); took > 25*time.Second {
					t.Errorf("it took %v", took)
				}
				release(t, acquire(t, n.other, request(time.Minute, 30*time.Second)))
			})
		})
	}
}

// full refuses every hand-over, as a Redis without memory does, each time in the next of its
// ways, but lets everybody out.
type full struct {
	*faulty
	ways []fault // before it says so: vanished, or blackHole for as long as an attempt takes
}

func (f *full) Release(ctx context.Context, lock string, o lockwrap.Owner, next *lockwrap.Claim) (lockwrap.Reply, error) {
	if next == nil {
		return f.faulty.Release(ctx, lock, o, nil)
	}
	if len(f.ways) > 0 {
		way := f.ways[0]
		f.ways = f.ways[1:]
		if way == vanished {
			return lockwrap.Reply{}, errFault
		}
		<-ctx.Done()
	}
	return lockwrap.Reply{}, &lockwrap.BackendError{Op: "release", Err: errFault}
}

// Where the next in line cannot be let in, the holder gets out all the same.
func TestARefusedHandOverIsARelease(t *testing.T) {
	for name, ways := range map[string][]fault{
		"at once":                   nil,
		"after a lost answer":       {vanished},
		"at the attempt's end":      {blackHole},
		"both, one after the other": {vanished, blackHole},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{})
				defer end()
				m, err := lockwrap.New(lockwrap.Config{Backend: &full{n.line, ways}, Instance: "n3"})
				if err != nil {
					t.Fatal(err)
				}
				l := acquire(t, m, request(10*time.Second, 0))
				done := waiter(t, t.Context(), m, request(10*time.Second, time.Minute))
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The heir hangs up, or its wait cap ends, while the lock is on its way to it: the lock goes
// on to the next in line, and to other nodes, at once.
func TestTheHeirLeavesMeanwhile(t *testing.T) {
	cause := errors.New("gone")
	for _, f := range []fault{none, lost, blackHole, late, vanished} {
		for _, end := range []string{"cancel", "cap"} {
			t.Run(fmt.Sprint(f, end), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n, stop := start(t, lockwrap.Config{})
					defer stop()
					l := acquire(t, n.Manager, request(time.Minute, 0))
					ctx, cancel := context.WithCancelCause(t.Context())
					wait := time.Minute
					if end == "cap" {
						wait = 100 * time.Millisecond
					}
					heir := waiter(t, ctx, n.Manager, request(time.Minute, wait))
					second := waiter(t, t.Context(), n.Manager, request(time.Minute, time.Minute))
					third := waiter(t, t.Context(), n.other, request(time.Minute, time.Minute))
					n.line.set("release", late, f) // the first answer takes 500 ms
					released := make(chan error, 1)
					go func() { released <- l.Release(t.Context()) }()
					time.Sleep(50 * time.Millisecond)
					if end == "cancel" {
						cancel(cause)
					}
					err := <-heir
					var busy *lockwrap.BusyError
					if !errors.Is(err, cause) && !errors.As(err, &busy) {
						t.Errorf("the heir: %v", err)
					}
					began := time.Now()
					for _, done := range []<-chan error{second, third} {
						if err := <-done; err != nil {
							t.Error(err)
						}
					}
					if took := time.Since(began); took > 5*time.Second {
						t.Errorf("the others waited %v more", took)
					}
					if err := <-released; err != nil {
						t.Error(err)
					}
					cancel(nil)
				})
			})
		}
	}
}

// Nodes take turns: each goes on for an acquire and four hand-overs, and one that is asked
// to yield does not ask again before its turn.
func TestNodesTakeTurnsWithoutAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(time.Minute, 0))
		var order []*lockwrap.Manager // the lock keeps it safe
		var all sync.WaitGroup
		for range 40 {
			for _, m := range []*lockwrap.Manager{n.Manager, n.other} {
				all.Go(func() {
					err := m.Do(t.Context(), request(time.Minute, time.Minute), func(ctx context.Context, l *lockwrap.Lease) error {
						order = append(order, m)
						time.Sleep(time.Millisecond)
						return l.Confirm(ctx)
					})
					if err != nil {
						t.Error(err)
					}
				})
				synctest.Wait() // it stands in line now
			}
		}
		began := time.Now()
		release(t, l)
		all.Wait()
		if took := time.Since(began); took > 81*time.Millisecond {
			t.Errorf("80 turns of 1 ms took %v", took)
		}
		run := 0
		for i, m := range order[:70] { // at the very end one may be alone
			if run++; i > 0 && order[i-1] != m {
				run = 1
			}
			if run > 5 {
				t.Fatalf("turn %d is the sixth of one node while the other waits", i)
			}
		}
		// 41 turns of this node: runs of five (an acquire and four hand-overs).
		if a, r := n.line.count("acquire"), n.line.count("release"); r != 41 || a > 11 {
			t.Errorf("41 turns took %d acquires and %d releases", a, r)
		}
	})
}

// A node in line whose waiters have all left does not hold the others up.
func TestALineWithoutWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.other, request(time.Minute, 0))
		for range 3 {
			if err := <-waiter(t, t.Context(), n.Manager, request(time.Minute, 10*time.Millisecond)); err == nil {
				t.Error("it got a lock that is held")
			}
		}
		synctest.Wait() // it has left the line
		release(t, l)
		release(t, acquire(t, n.other, request(time.Minute, 0))) // not even kept
		if n.line.count("leave") != 3 {
			t.Errorf("it left %d times", n.line.count("leave"))
		}
	})
}

// standIn puts a node that nobody lives on into the backend's line.
func standIn(t *testing.T, b lockwrap.Backend, instance string) {
	t.Helper()
	name := "apiengine:{" + request(time.Minute, 0).Key.String() + "}"
	r, err := b.Acquire(t.Context(), lockwrap.Claim{Lock: name, Holder: instance + ":aa", TTL: time.Minute, Keep: time.Hour,
		Node: "apiengine:w:" + instance, Queue: true})
	if err != nil || r.Held {
		t.Fatalf("%+v, %v", r, err)
	}
}

// A node that has died in line costs the others what the lock is kept for it.
func TestADeadNodeInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(time.Minute, 0))
		standIn(t, n.line, "dead")
		var all []<-chan error
		for range 20 {
			all = append(all, waiter(t, t.Context(), n.Manager, request(time.Minute, time.Minute)))
		}
		began := time.Now()
		release(t, l)
		for _, done := range all {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took < lockwrap.Grace || took > lockwrap.Grace+50*time.Millisecond {
			t.Errorf("20 turns of 1 ms took %v", took)
		}
	})
}

// A node that stands in line though nobody there waits any more passes its turn on.
func TestATurnThatNobodyWants(t *testing.T) {
	for name, come := range map[string]func(t *testing.T, n *node){
		"the acquire was on its way when its caller left": func(t *testing.T, n *node) {
			n.line.set("acquire", late)
			ctx, cancel := context.WithCancel(t.Context())
			done := waiter(t, ctx, n.Manager, request(time.Minute, time.Minute))
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			time.Sleep(time.Second) // the answer comes
			if n.line.count("leave") != 1 {
				t.Errorf("it left %d times", n.line.count("leave"))
			}
		},
		"nobody knows why": func(t *testing.T, n *node) { standIn(t, n.line, "n1") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{})
				defer end()
				l := acquire(t, n.other, request(time.Minute, 0))
				synctest.Wait() // both listen
				come(t, n)
				release(t, l)
				synctest.Wait()
				release(t, acquire(t, n.other, request(time.Minute, 0))) // it is not kept
			})
		})
	}
}

// Without notices the lock is still passed on, by asking.
func TestDeafNodesStillGetIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{}, func(f *faulty) { f.set("notify", refused, forever) })
		defer end()
		l := acquire(t, n.other, request(time.Minute, 0))
		done := waiter(t, t.Context(), n.Manager, request(time.Minute, time.Minute))
		time.Sleep(10 * time.Second)
		began := time.Now()
		release(t, l)
		if err := <-done; err != nil || time.Since(began) > 82*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
