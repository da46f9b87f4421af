package lock_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/fault"
	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

// F5: a server that is silent for half a lease costs no renewed lock.
func TestAServerPausedForHalfALease(t *testing.T) {
	t.Parallel()
	s := testserver.NewRedis(t)
	m := node(t, s.URL())
	warm(t, m)
	const life = 3 * time.Second
	l := acquire(t, m, renewed(life))
	began := time.Now()
	if err := s.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(life / 2) // the fault itself
	if err := s.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a renewal", func() bool { return l.Err() != nil || l.Deadline().After(began.Add(life+life/2)) })
	if err := l.Confirm(t.Context()); err != nil {
		t.Error(err)
	}
	release(t, l)
}

// F6, F7, F8 under load: scripts flushed, memory full and given back, everything flushed.
// Calls fail or go on; none runs beside another, and tokens rise.
func TestARedisThatForgetsUnderLoad(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(context.Context, *goredis.Client)
		kinds []fault.Kind // that a call may end with, besides success
	}{
		{"scripts flushed", func(ctx context.Context, a *goredis.Client) { a.ScriptFlush(ctx) }, nil},
		{"memory full", func(ctx context.Context, a *goredis.Client) {
			a.ConfigSet(ctx, "maxmemory", "1")
			<-time.After(5 * time.Millisecond) // the fault itself
			a.ConfigSet(ctx, "maxmemory", "0")
		}, []fault.Kind{fault.LockUnavailable}},
		{"the counter evicted", func(ctx context.Context, a *goredis.Client) { a.Del(ctx, strings.TrimSuffix(lockKey(), "l")+"f") }, nil},
		{"connections killed", func(ctx context.Context, a *goredis.Client) {
			a.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}, []fault.Kind{fault.LeaseLost}}, // a release without an answer, and the next holder is in already
	} {
		t.Run(c.name, func(t *testing.T) {
			s := testserver.NewRedis(t)
			a := admin(t, s)
			nodes := []*lockwrap.Manager{node(t, s.URL()), node(t, s.URL())}
			inside := 0 // not atomic: the race detector would see two
			var last int64
			var all sync.WaitGroup
			for i := range 6 {
				all.Go(func() {
					for range either(40, 1000) {
						err := nodes[i%2].Do(context.Background(), request(lease, lease), func(_ context.Context, l *lockwrap.Lease) error {
							inside++
							if inside != 1 || l.Token() <= last {
								t.Errorf("%d inside, token %d after %d", inside, l.Token(), last)
							}
							last = l.Token()
							inside--
							return nil
						})
						if err != nil && !slices.Contains(c.kinds, fault.Of(err)) && !unanswered(err) {
							t.Error(err)
						}
					}
				})
			}
			done := make(chan struct{})
			go func() { all.Wait(); close(done) }()
			for pause := time.NewTicker(30 * time.Millisecond); ; {
				select {
				case <-done:
					pause.Stop()
					return
				case <-pause.C:
					c.spoil(t.Context(), a)
				}
			}
		})
	}
}

// unanswered reports that the server did not answer in time, which a slow machine's does not
// at times.
func unanswered(err error) bool {
	var u *lockwrap.UnknownError
	return errors.As(err, &u) && errors.Is(err, os.ErrDeadlineExceeded)
}

// F8: a lock that is evicted or flushed while held is a loss for its holder, at the
// latest at its end, and the next token is larger.
func TestAForgottenLockIsALoss(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(context.Context, *goredis.Client){
		"FLUSHALL":         func(ctx context.Context, a *goredis.Client) { a.FlushAll(ctx) },
		"the lock evicted": func(ctx context.Context, a *goredis.Client) { a.Del(ctx, lockKey()) },
		"both evicted": func(ctx context.Context, a *goredis.Client) {
			a.Del(ctx, lockKey(), strings.TrimSuffix(lockKey(), "l")+"f")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testserver.NewRedis(t)
			a, m := admin(t, s), node(t, s.URL())
			var token int64
			err := m.Do(t.Context(), renewed(3*time.Second), func(ctx context.Context, l *lockwrap.Lease) error {
				token = l.Token()
				forget(t.Context(), a)
				<-ctx.Done() // the next renewal notices
				return context.Cause(ctx)
			})
			wantLost(t, err, lockwrap.TokenMismatch)
			err = m.Do(t.Context(), request(lease, 0), func(_ context.Context, l *lockwrap.Lease) error {
				if l.Token() <= token {
					t.Errorf("token %d after %d", l.Token(), token)
				}
				token = l.Token()
				forget(t.Context(), a)
				return nil
			})
			wantLost(t, err, lockwrap.TokenMismatch)
			l := acquire(t, m, request(lease, 0))
			if l.Token() <= token {
				t.Errorf("token %d after %d", l.Token(), token)
			}
			release(t, l)
		})
	}
}

// F9: a user who may not use channels waits and gets the lock all the same.
func TestAUserWithoutChannels(t *testing.T) {
	s := testserver.NewRedis(t)
	if err := admin(t, s).Do(t.Context(), "ACL", "SETUSER", "locks", "on", ">secret", "~"+prefix+":*", "resetchannels", "+@all", "-@dangerous").Err(); err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(s.URL(), "redis://", "redis://locks:secret@", 1)
	m, other := node(t, url), node(t, url)
	for range 5 {
		l := acquire(t, m, request(lease, 0))
		got := make(chan error, 1)
		go func() {
			next, err := other.Acquire(context.Background(), request(lease, lease))
			if err == nil {
				err = next.Release(context.Background())
			}
			got <- err
		}()
		release(t, l)
		if err := <-got; err != nil {
			t.Error(err)
		}
		release(t, acquire(t, m, request(lease, 10*time.Second)))
	}
}

// F11: a renewal that is done after the lease's end does not bring the lock back.
func TestALateRenewalDoesNotTakeTheLockBack(t *testing.T) {
	t.Parallel()
	s := testserver.NewRedis(t)
	p := proxied(t, s)
	a, m, other := admin(t, s), node(t, "redis://"+p.Addr()), node(t, s.URL())
	warm(t, m)
	l := acquire(t, m, renewed(900*time.Millisecond))
	held := p.Add(faultproxy.Rule{Match: faultproxy.Script(prefix), Fault: faultproxy.HoldCall})
	<-l.Lost()
	eventually(t, "the lease's end at the server", func() bool { return a.Exists(t.Context(), lockKey()).Val() == 0 })
	next := acquire(t, other, request(lease, 0))
	token := a.Get(t.Context(), lockKey()).Val()
	release(t, next)
	held.Remove()
	held.Release() // the old holder's renewals arrive, and its clean-up
	wantLost(t, l.Release(t.Context()), lockwrap.ConfirmFailed, lockwrap.TokenMismatch, lockwrap.MaxHoldReached)
	next = acquire(t, other, request(lease, 0))
	if got := a.Get(t.Context(), lockKey()).Val(); got == token || next.Confirm(t.Context()) != nil {
		t.Errorf("the lock is %q, was %q", got, token)
	}
	release(t, next)
}

// F15: without Redis at the start and in the middle of the load every call is refused,
// none runs, and all recovers by itself.
func TestRedisIsDown(t *testing.T) {
	t.Parallel()
	s := testserver.NewRedis(t)
	s.Kill()
	nodes := []*lockwrap.Manager{node(t, s.URL()), node(t, s.URL())}
	ran := false
	err := nodes[0].Do(t.Context(), request(lease, 200*time.Millisecond), func(context.Context, *lockwrap.Lease) error {
		ran = true
		return nil
	})
	wantKind(t, err, fault.LockUnavailable)
	if ran {
		t.Fatal("a run without its lock")
	}
	s.Restart(t)

	quit := make(chan struct{})
	var down, runs sync.Map // errors and successes by goroutine
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				err := nodes[i%2].Do(context.Background(), request(lease, 300*time.Millisecond), func(context.Context, *lockwrap.Lease) error { return nil })
				var lost *lockwrap.LostError
				switch {
				case err == nil:
					runs.Store(i, true)
				case errors.As(err, &lost), fault.Of(err) == fault.LockUnavailable, fault.Of(err) == fault.LockBusy:
					down.Store(i, true)
				default:
					t.Error(err)
				}
			}
		})
	}
	size := func(m *sync.Map) (n int) {
		m.Range(func(any, any) bool { n++; return true })
		return n
	}
	eventually(t, "runs", func() bool { return size(&runs) == 6 })
	s.Kill()
	down.Clear()
	eventually(t, "refusals", func() bool { return size(&down) == 6 })
	<-time.After(either(time.Second, 10*time.Second)) // the fault itself
	s.Restart(t)
	runs.Clear()
	eventually(t, "recovery", func() bool { return size(&runs) == 6 })
	close(quit)
	all.Wait()
}
