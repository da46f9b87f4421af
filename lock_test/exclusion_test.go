package lock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

// C1: eight processes with four goroutines each add to one number.
func TestProcessesLoseNoUpdate(t *testing.T) {
	const processes, goroutines = 8, 4
	each := either(5, 100)
	for name, url := range map[string]func() string{
		"redis":    func() string { return testserver.NewRedis(t).URL() },
		"cluster":  func() string { return testserver.NewCluster(t).URL() },
		"postgres": func() string { return testserver.Database(t) },
		"etcd":     func() string { return testserver.Etcd(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "number")
			if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
				t.Fatal(err)
			}
			address := url()
			var all []*worker
			for i := range processes {
				all = append(all, startWorker(t, job{URL: address, Name: fmt.Sprint("w", i), Lease: lease, File: file, Each: each}))
			}
			for _, w := range all {
				if s := w.hear(); s.Error != "" {
					t.Error(s.Error)
				}
			}
			got, err := os.ReadFile(file)
			if want := fmt.Sprint(processes * goroutines * each); err != nil || string(got) != want {
				t.Errorf("the number is %s after %s additions, %v", got, want, err)
			}
		})
	}
}

// C2: tokens rise from grant to grant, over nodes, hand-overs, flushes and restarts.
func TestTokensRiseOverManyGrants(t *testing.T) {
	grants := either(3_000, 100_000)
	s := testserver.NewRedis(t)
	a := admin(t, s)
	nodes := []*lockwrap.Manager{node(t, s.URL()), node(t, s.URL()), node(t, s.URL())}
	var last int64
	for i := range grants {
		l := acquire(t, nodes[i%len(nodes)], request(lease, 10*time.Second))
		if l.Token() <= last || l.Token() >= 1<<53 {
			t.Fatalf("grant %d has token %d after %d", i, l.Token(), last)
		}
		last = l.Token()
		release(t, l)
		switch i % (grants / 3) {
		case 100:
			a.FlushAll(t.Context())
		case 200:
			s.Restart(t)
		}
	}
}

// C12: a thousand waiters that give up leave no goroutine and no key behind.
func TestAThousandWaitersLeaveNothing(t *testing.T) {
	s := testserver.NewRedis(t)
	a := admin(t, s)
	m, other := node(t, s.URL()), node(t, s.URL())
	warm(t, m)
	l := acquire(t, other, request(lease, 0))
	before := runtime.NumGoroutine()
	results := make(chan error, 1000)
	for range cap(results) {
		go func() {
			_, err := m.Acquire(context.Background(), request(lease, 200*time.Millisecond))
			results <- err
		}()
	}
	for range cap(results) {
		wantKind(t, <-results, fault.LockBusy)
	}
	eventually(t, "the node to leave the line", func() bool { return len(a.Keys(t.Context(), prefix+":*:q").Val()) == 0 })
	release(t, l)
	release(t, acquire(t, other, request(lease, 0))) // nobody stands before it
	eventually(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	eventually(t, "the queue to be empty", func() bool {
		keys := a.Keys(t.Context(), prefix+":*").Val()
		return len(keys) == 1 && strings.HasSuffix(keys[0], ":f")
	})
}

// A waiter that leaves passes the baton: who stands behind it takes over its asking, also
// where no release ever tells that the lock is free.
func TestWhoStandsBehindALeaverIsNotForgotten(t *testing.T) {
	s := testserver.NewRedis(t)
	m, other := node(t, s.URL()), node(t, s.URL())
	const life = time.Second
	gone := acquire(t, other, request(life, 0)) // runs out instead of being released
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	wait := func(ctx context.Context, out chan error) {
		l, err := m.Acquire(ctx, request(lease, lease))
		if err == nil {
			err = l.Release(context.Background())
		}
		out <- err
	}
	go wait(ctx, first)
	<-time.After(50 * time.Millisecond) // else the second may be the first, which shows less
	go wait(t.Context(), second)
	<-time.After(50 * time.Millisecond)
	cancel()
	wantKind(t, <-first, fault.Canceled)
	began := time.Now()
	if err := <-second; err != nil || time.Since(began) > life+5*time.Second {
		t.Errorf("who stood behind: %v after %v", err, time.Since(began))
	}
	wantLost(t, gone.Release(t.Context()), lockwrap.MaxHoldReached, lockwrap.TokenMismatch)
}
