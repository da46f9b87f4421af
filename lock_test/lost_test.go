package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

// F1 to F4 on each store, whose servers are started once.
func TestBrokenLines(t *testing.T) {
	t.Parallel()
	for _, s := range sites {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			site := s.open(t)
			m, other := node(t, site.url), node(t, site.url)
			warm(t, m)
			t.Run("lost answers", func(t *testing.T) { lostAnswers(t, site, m, other) })
			t.Run("lost renewals", func(t *testing.T) { lostRenewals(t, site, m, other) })
			t.Run("connections cut while waiting", func(t *testing.T) { cutWhileWaiting(t, site, m, other) })
		})
	}
}

// F1 and F2: an acquire or a release that was done but not answered is neither done twice
// nor left behind; nor is one that was never done.
func lostAnswers(t *testing.T, site site, m, other *lockwrap.Manager) {
	for _, c := range []struct {
		name             string
		acquire, release faultproxy.Fault
		times            int
	}{
		{"one answer to the acquire", faultproxy.LoseReply, faultproxy.Watch, 1},
		{"two answers to the acquire", faultproxy.LoseReply, faultproxy.Watch, 2},
		{"the acquire itself", faultproxy.LoseCall, faultproxy.Watch, 1},
		{"the answer to the release", faultproxy.Watch, faultproxy.LoseReply, 1},
		{"the release itself", faultproxy.Watch, faultproxy.LoseCall, 1},
		{"an acquire that is never answered", faultproxy.MuteReply, faultproxy.Watch, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			lost := site.onAll(c.acquire, c.times)
			l := acquire(t, m, request(lease, 10*time.Second))
			if lost.count() != c.times {
				t.Fatalf("the test is void: %d calls met the fault", lost.count())
			}
			lost.remove()
			if err := l.Confirm(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := other.Acquire(t.Context(), request(lease, 0)); fault.Of(err) != fault.LockBusy {
				t.Errorf("a second holder: %v", err)
			}
			lost = site.onAll(c.release, c.times)
			release(t, l) // it was ours until we let go, and it says so
			lost.remove()
			next := acquire(t, other, request(lease, 0))
			if next.Token() <= l.Token() {
				t.Errorf("token %d after %d", next.Token(), l.Token())
			}
			release(t, next)
		})
	}
}

// F2: a release that arrives long after another has got the lock changes nothing.
func TestALateReleaseFreesNobodyElse(t *testing.T) {
	t.Parallel()
	site := sites[0].open(t)
	m, other := node(t, site.url), node(t, site.url)
	warm(t, m)
	l := acquire(t, m, request(lease, 0))
	held := site.lines[0].Add(faultproxy.Rule{Match: faultproxy.Script(prefix), Times: 1, Fault: faultproxy.HoldCall})
	if err := l.Release(t.Context()); err != nil { // a second attempt on another connection did it
		t.Logf("the release says: %v", err)
	}
	next := acquire(t, other, request(lease, 10*time.Second))
	held.Release()
	again := acquire(t, m, lockwrap.Request{Key: lockwrap.Key{Tenant: "acme", Scope: "other"}, Plan: request(lease, 0).Plan})
	release(t, again) // the line is used again
	if err := next.Confirm(t.Context()); err != nil {
		t.Errorf("the late release met a newer holder: %v", err)
	}
	release(t, next)
}

// F3: a renewal whose answer is lost is no loss, and the lock lives on past the old lease.
func lostRenewals(t *testing.T, site site, m, other *lockwrap.Manager) {
	for _, f := range []faultproxy.Fault{faultproxy.LoseReply, faultproxy.LoseCall, faultproxy.MuteReply} {
		l := acquire(t, m, renewed(1200*time.Millisecond))
		first := l.Deadline()
		lost := site.onAll(f, 1)
		eventually(t, "a renewal after the lost one", func() bool {
			return l.Err() != nil || lost.count() == 1 && l.Deadline().Sub(first) > 700*time.Millisecond
		})
		lost.remove()
		if err := l.Confirm(t.Context()); err != nil {
			t.Errorf("fault %d: %v", f, err)
		}
		if _, err := other.Acquire(t.Context(), request(lease, 0)); fault.Of(err) != fault.LockBusy {
			t.Errorf("a second holder: %v", err)
		}
		release(t, l)
	}
}

// F4: connections cut or half closed while one waits, the subscription among them, delay it
// but do not make it miss the release.
func cutWhileWaiting(t *testing.T, site site, m, other *lockwrap.Manager) {
	for _, halves := range []bool{false, true} {
		l := acquire(t, other, request(lease, 0))
		tries := site.onAll(faultproxy.Watch, 0)
		got := make(chan error, 1)
		go func() {
			next, err := m.Acquire(context.Background(), request(lease, lease))
			if err == nil {
				err = next.Release(context.Background())
			}
			got <- err
		}()
		eventually(t, "a failed try", func() bool { return tries.count() > 0 })
		for _, p := range site.lines {
			if halves {
				p.HalfClose()
			} else {
				p.Cut()
			}
		}
		release(t, l)
		began := time.Now()
		if err := <-got; err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("the waiter: %v after %v", err, time.Since(began))
		}
		tries.remove()
	}
}

// F10: with a server that says nothing the wait cap holds, and a holder knows by its own
// clock when its lease is over. (lockwrap's tests in virtual time have the exact bounds.)
func TestABlackHole(t *testing.T) {
	site := sites[0].open(t)
	m := node(t, site.url)
	warm(t, m)
	const life, limit = time.Second, 300 * time.Millisecond
	r := renewed(life)
	r.Key.Value = "43"
	kept := acquire(t, m, r)
	p := site.lines[0]
	stall := stalls(t)
	p.BlackHole(true)
	began := time.Now()
	_, err := m.Acquire(t.Context(), request(lease, limit))
	took := time.Since(began)
	wantKind(t, err, fault.LockUnavailable)
	<-kept.Lost()
	late := time.Since(kept.Deadline())
	slow := stall()
	if took > limit+100*time.Millisecond+slow {
		t.Errorf("a cap of %v took %v on a machine that stalled for %v", limit, took, slow)
	}
	if late > slow || kept.Deadline().After(began.Add(life)) {
		t.Errorf("the loss was told %v after the deadline, on a machine that stalled for %v", late, slow)
	}
	wantLost(t, kept.Err(), lockwrap.ConfirmFailed)
	p.BlackHole(false)
	wantLost(t, kept.Release(t.Context()), lockwrap.ConfirmFailed)
	after := acquire(t, m, r) // the lock is not left behind, and the manager is not spoilt
	if after.Token() <= kept.Token() {
		t.Errorf("token %d after %d", after.Token(), kept.Token())
	}
	release(t, after)
}

// stalls measures until it is asked how long this machine keeps a goroutine waiting that
// should run, all delays of a time span together, and at least 10 ms.
func stalls(t *testing.T) func() time.Duration {
	t.Helper()
	const tick = 2 * time.Millisecond
	quit, sum := make(chan struct{}), make(chan time.Duration)
	go func() {
		total := 10 * time.Millisecond
		for {
			began := time.Now()
			select {
			case <-time.After(tick):
				total += max(0, time.Since(began)-2*tick)
			case <-quit:
				sum <- total
				return
			}
		}
	}()
	return func() time.Duration { close(quit); return <-sum }
}

// F12: a caller that hangs up in mid-run leaves no key 100 ms after its run's end.
func TestACallerThatHangsUpLeavesNoKey(t *testing.T) {
	s := testserver.NewRedis(t)
	a, m := admin(t, s), node(t, s.URL())
	warm(t, m)
	cause := errors.New("hung up")
	for range 10 {
		ctx, cancel := context.WithCancelCause(t.Context())
		ended, done := make(chan time.Time, 1), make(chan error, 1)
		stall := stalls(t)
		go func() {
			done <- m.Do(ctx, request(lease, 0), func(ctx context.Context, _ *lockwrap.Lease) error {
				cancel(cause)
				<-ctx.Done()
				ended <- time.Now()
				return context.Cause(ctx)
			})
		}()
		at := <-ended
		eventually(t, "the key to go", func() bool { return a.Exists(t.Context(), lockKey()).Val() == 0 })
		took, slow := time.Since(at), stall()
		if took > 100*time.Millisecond+slow {
			t.Errorf("%v after the run the key was still there, on a machine that stalled for %v", took, slow)
		}
		if err := <-done; !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	}
}

// An acquire is one command, so that nothing can come between the lock and its token.
func TestAnAcquireIsOneCommand(t *testing.T) {
	site := sites[0].open(t)
	m := node(t, site.url)
	warm(t, m)
	least := 1000 // a slow machine may make an attempt twice
	for range 20 {
		every := site.lines[0].Add(faultproxy.Rule{Match: faultproxy.Contains(prefix + ":{"), Fault: faultproxy.Watch})
		l := acquire(t, m, request(lease, 0))
		least = min(least, every.Count())
		every.Remove()
		release(t, l)
	}
	if least != 1 {
		t.Errorf("an acquire takes %d commands", least)
	}
}

// The deadline counts from the sending: what the reply took is not the holder's to use.
func TestTheDeadlineCountsFromTheSending(t *testing.T) {
	site := sites[0].open(t)
	m := node(t, site.url)
	warm(t, m)
	slow := site.lines[0].Add(faultproxy.Rule{Match: faultproxy.Script(prefix), Times: 1, Fault: faultproxy.Slow, Delay: 300 * time.Millisecond})
	r := renewed(lease) // the longest hold counts from the sending in any case
	l := acquire(t, m, r)
	if slow.Count() != 1 {
		t.Fatal("the test is void")
	}
	if got := l.Deadline().Sub(l.Sent()); got != r.Plan.Lease-r.Plan.Margin {
		t.Errorf("trusted until %v after the sending, want %v", got, r.Plan.Lease-r.Plan.Margin)
	}
	release(t, l)
}
