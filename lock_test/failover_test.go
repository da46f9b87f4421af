package lock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

// F13: a replica that lagged is promoted. The lock may be given again, but with a larger
// token, and the old holder hears of its loss.
func TestFailoverToALaggingReplica(t *testing.T) {
	t.Parallel()
	s := testserver.NewSentinel(t)
	m, other := node(t, s.URL()), node(t, s.URL())
	var last int64
	for range 3 {
		l := acquire(t, m, request(lease, 10*time.Second))
		last = l.Token()
		release(t, l)
	}
	s.StopReplication(t)
	for range 20 { // the counter goes far beyond what the replica knows
		l := acquire(t, m, request(lease, 0))
		last = l.Token()
		release(t, l)
	}
	held := acquire(t, m, renewed(lease))
	if held.Token() <= last {
		t.Errorf("token %d after %d", held.Token(), last)
	}
	s.Failover(t)
	// The replica has never heard of held.
	eventually(t, "the new primary to be found", func() bool { return other.Ready(t.Context()) == nil })
	next := acquire(t, other, request(lease, 20*time.Second))
	if next.Token() <= held.Token() {
		t.Errorf("token %d after %d: the promoted replica gave an old one", next.Token(), held.Token())
	}
	eventually(t, "the old holder's node to find the new primary", func() bool { return m.Ready(t.Context()) == nil })
	wantLost(t, held.Release(t.Context()), lockwrap.TokenMismatch)
	if err := next.Confirm(t.Context()); err != nil {
		t.Error(err)
	}
	release(t, next)
}

// F13: a slot moves to another server again and again while its lock is in use, and held.
func TestASlotMovesUnderLoad(t *testing.T) {
	c := testserver.NewCluster(t)
	nodes := []*lockwrap.Manager{node(t, c.URL()), node(t, c.URL())}
	quit := make(chan struct{})
	inside, runs := 0, 0 // the race detector would see two holders
	var last int64
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				err := nodes[i%2].Do(context.Background(), request(lease, lease), func(_ context.Context, l *lockwrap.Lease) error {
					inside++
					runs++
					if inside != 1 || l.Token() <= last {
						t.Errorf("%d inside, token %d after %d", inside, l.Token(), last)
					}
					last = l.Token()
					inside--
					return nil
				})
				if err != nil && fault.Of(err) != fault.LockUnavailable { // refused for longer than its patience: no run
					t.Error(err)
				}
			}
		})
	}
	r := renewed(3 * time.Second)
	r.Key.Value = "43"
	held := acquire(t, nodes[0], r)
	for range either(4, 60) {
		c.MoveSlot(t, lockKey(), func() {
			if err := held.Confirm(t.Context()); err != nil { // another slot's lock is not touched
				t.Error(err)
			}
		})
		c.MoveSlot(t, prefix+":{"+r.Key.String()+"}:l", nil)
		if err := held.Confirm(t.Context()); err != nil {
			t.Errorf("a held lock whose slot has moved: %v", err)
		}
	}
	close(quit)
	all.Wait()
	release(t, held)
	t.Logf("%d runs", runs)
	if runs == 0 {
		t.Error("the test is void: nothing ran")
	}
}

// F13: Redis is killed and started again. With an AOF that is synced at every write the
// lock is still held; without one it is a loss. Tokens rise in both cases.
func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		args  []string
		keeps bool
	}{
		{"with AOF", []string{"--appendonly", "yes", "--appendfsync", "always"}, true},
		{"without AOF", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := testserver.NewRedis(t, c.args...)
			m, other := node(t, s.URL()), node(t, s.URL())
			warm(t, m)
			var last int64
			for i := range 3 {
				l := acquire(t, m, request(lease, 10*time.Second))
				if l.Token() <= last {
					t.Errorf("restart %d: token %d after %d", i, l.Token(), last)
				}
				last = l.Token()
				s.Restart(t)
				eventually(t, "both nodes to be connected", func() bool {
					return m.Ready(t.Context()) == nil && other.Ready(t.Context()) == nil
				})
				if c.keeps {
					if _, err := other.Acquire(t.Context(), request(lease, 0)); fault.Of(err) != fault.LockBusy {
						t.Errorf("a second holder: %v", err)
					}
					if err := l.Confirm(t.Context()); err != nil {
						t.Error(err)
					}
					release(t, l)
					continue
				}
				next := acquire(t, other, request(lease, 10*time.Second))
				if next.Token() <= last {
					t.Errorf("token %d after %d", next.Token(), last)
				}
				last = next.Token()
				wantLost(t, l.Release(t.Context()), lockwrap.TokenMismatch)
				release(t, next)
			}
		})
	}
}

// Many locks in many slots, each with its two or three keys in one.
func TestAClusterHasAllLocks(t *testing.T) {
	t.Parallel()
	m := node(t, testserver.NewCluster(t).URL())
	for i := range 60 {
		r := request(lease, 10*time.Second)
		r.Key.Value = fmt.Sprintf("{%d}", i)
		l := acquire(t, m, r)
		if err := l.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		release(t, l)
	}
}
