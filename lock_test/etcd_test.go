package lock_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

// load is runs under one lock, by two goroutines of each node, until it is ended.
type load struct {
	runs atomic.Int64
	quit chan struct{}
	all  sync.WaitGroup
}

// newLoad checks that runs exclude each other and that their tokens rise. A run may fail with
// one of kinds, and then has not run.
func newLoad(t *testing.T, nodes []*lockwrap.Manager, kinds ...fault.Kind) *load {
	l := &load{quit: make(chan struct{})}
	inside := 0 // not atomic: the race detector would see two
	var last int64
	for i := range 2 * len(nodes) {
		l.all.Go(func() {
			for {
				select {
				case <-l.quit:
					return
				default:
				}
				err := nodes[i/2].Do(context.Background(), request(lease, lease), func(_ context.Context, lease *lockwrap.Lease) error {
					inside++
					if inside != 1 || lease.Token() <= last {
						t.Errorf("%d inside, token %d after %d", inside, lease.Token(), last)
					}
					last = lease.Token()
					inside--
					l.runs.Add(1)
					return nil
				})
				if err != nil && !slices.Contains(kinds, fault.Of(err)) {
					t.Error(err)
				}
			}
		})
	}
	return l
}

// more waits until so many more runs have begun.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	want := l.runs.Load() + n
	eventually(t, "more runs", func() bool { return l.runs.Load() >= want })
}

func (l *load) end() {
	close(l.quit)
	l.all.Wait()
}

// etcd's leader is killed under load, again and again: no update is lost, tokens rise, waits
// end, and a renewed lease outlives it.
func TestEtcdLosesItsLeaderUnderLoad(t *testing.T) {
	c := testserver.NewEtcdCluster(t)
	nodes := []*lockwrap.Manager{node(t, c.URL()), node(t, c.URL()), node(t, c.URL())}
	r := renewed(15 * time.Second)
	r.Key.Value = "43"
	held := acquire(t, nodes[0], r)
	l := newLoad(t, nodes, fault.LockUnavailable, fault.LeaseLost) // a release without an answer, and the next holder is in already
	for range either(2, 20) {
		l.more(t, 20)
		leader := c.Leader(t)
		leader.Kill()
		began := time.Now()
		l.more(t, 20)
		t.Logf("20 runs %v after the leader's end", time.Since(began).Round(time.Millisecond))
		leader.Restart(t)
	}
	l.end()
	if err := held.Confirm(t.Context()); err != nil {
		t.Error(err)
	}
	release(t, held)
}

// A member of etcd that is silent, but whose connections stand, costs no renewed lease, and
// each node no more than an attempt.
func TestASilentMemberOfEtcd(t *testing.T) {
	for name, leads := range map[string]bool{"the leader": true, "another": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testserver.NewEtcdCluster(t)
			leader := c.Leader(t)
			silent := c.Servers[slices.IndexFunc(c.Servers, func(s *testserver.EtcdServer) bool { return (s == leader) == leads })]
			nodes := []*lockwrap.Manager{nodeOfMember(t, c, silent), node(t, c.URL()), node(t, c.URL())}
			r := renewed(6 * time.Second)
			r.Key.Value = "43"
			held := acquire(t, nodes[0], r)
			l := newLoad(t, nodes, fault.LockUnavailable, fault.LeaseLost)
			l.more(t, 20)
			if err := silent.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			l.more(t, 20)
			t.Logf("20 runs %v after the silence began", time.Since(began).Round(time.Millisecond))
			first := held.Deadline()
			eventually(t, "renewals", func() bool { return held.Err() != nil || held.Deadline().After(first.Add(r.Plan.Lease)) })
			if err := silent.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			l.more(t, 20)
			l.end()
			if err := held.Confirm(t.Context()); err != nil {
				t.Error(err)
			}
			release(t, held)
		})
	}
}

// nodeOfMember opens nodes until one uses this member, which is for chance to say.
func nodeOfMember(t *testing.T, c *testserver.EtcdCluster, s *testserver.EtcdServer) *lockwrap.Manager {
	t.Helper()
	for {
		p := faultproxy.New(t, faultproxy.Config{Target: strings.TrimPrefix(s.URL(), "http://"), Chunks: true})
		m := node(t, strings.Replace(c.URL(), s.URL(), "http://"+p.Addr(), 1))
		eventually(t, "the node to be served", func() bool { return m.Ready(t.Context()) == nil })
		if p.Connections() > 0 {
			return m
		}
	}
}

// Without a majority nobody gets a lock, and none is lost that outlives it; then all goes on.
func TestEtcdWithoutAMajority(t *testing.T) {
	t.Parallel()
	c := testserver.NewEtcdCluster(t)
	m, other := node(t, c.URL()), node(t, c.URL())
	l := acquire(t, m, request(2*lease, 0))
	for _, s := range c.Servers[:2] {
		s.Kill()
	}
	ran := false
	r := request(lease, 300*time.Millisecond)
	r.Key.Value = "43"
	err := other.Do(t.Context(), r, func(context.Context, *lockwrap.Lease) error {
		ran = true
		return nil
	})
	wantKind(t, err, fault.LockUnavailable)
	if ran {
		t.Error("a run without its lock")
	}
	for _, s := range c.Servers[:2] {
		if err := s.Launch(); err != nil {
			t.Fatal(err)
		}
	}
	c.Leader(t)
	eventually(t, "both nodes to be served", func() bool { return m.Ready(t.Context()) == nil && other.Ready(t.Context()) == nil })
	if _, err := other.Acquire(t.Context(), request(lease, 0)); fault.Of(err) != fault.LockBusy {
		t.Errorf("a second holder: %v", err)
	}
	release(t, l)
	release(t, acquire(t, other, request(lease, 10*time.Second)))
}

// Whoever waits gets a dead holder's lock at the end of its lease, although etcd gives every
// lease two seconds, and its whole life anew when the leader changes.
func TestADeadHoldersLockInEtcd(t *testing.T) {
	for name, c := range map[string]struct {
		life, most time.Duration
		kill       time.Duration // when the leader is killed; 0: never
	}{
		"a short lease":        {300 * time.Millisecond, 1900 * time.Millisecond, 0},
		"the leader is killed": {4 * time.Second, 7800 * time.Millisecond, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := testserver.NewEtcdCluster(t)
			m, other := node(t, cluster.URL()), node(t, cluster.URL())
			release(t, acquire(t, other, request(lease, 10*time.Second))) // it is connected
			dead := acquire(t, m, request(c.life, 10*time.Second))        // and never gives it back
			began := time.Now()
			got := make(chan *lockwrap.Lease, 1)
			go func() {
				l, err := other.Acquire(context.Background(), request(lease, lease))
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
			if c.kill > 0 {
				<-time.After(c.kill) // the fault itself
				cluster.Leader(t).Kill()
			}
			l := <-got
			if l == nil {
				return
			}
			took := time.Since(began)
			t.Logf("%v after the grant of a lease of %v", took.Round(time.Millisecond), c.life)
			if l.Token() <= dead.Token() || time.Now().Before(dead.Deadline()) || took > c.most {
				t.Errorf("token %d after %d, %v after the grant, want %v to %v", l.Token(), dead.Token(), took, c.life, c.most)
			}
			release(t, l)
			wantLost(t, dead.Release(t.Context()), lockwrap.TokenMismatch, lockwrap.MaxHoldReached)
		})
	}
}
