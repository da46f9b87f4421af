package lockwrap_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	kinds "apiengine/fault"
	"apiengine/lockwrap"
)

func TestAnUnrenewedLeaseEndsInTwoSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(10*time.Second, 0))
		time.Sleep(9900*time.Millisecond - 1)
		if !l.Held() || l.Remaining() != 1 {
			t.Errorf("just before the deadline: held %v, %v remaining", l.Held(), l.Remaining())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if l.Held() || l.Remaining() != 0 || l.Err() != nil {
			t.Errorf("at the deadline: held %v, %v remaining, err %v", l.Held(), l.Remaining(), l.Err())
		}
		if err := l.Confirm(t.Context()); err != nil {
			t.Errorf("within the margin the backend's word counts: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		wantLost(t, l.Err(), lockwrap.MaxHoldReached)
		wantLost(t, l.Release(t.Context()), lockwrap.MaxHoldReached)
	})
}

func TestReleaseWithinTheMarginIsTheCheckAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.Manager, request(10*time.Second, 0))
		time.Sleep(9950 * time.Millisecond)
		release(t, l)
	})
}

func TestFresh(t *testing.T) {
	for _, c := range []struct {
		name   string
		verify bool
		age    time.Duration
		want   bool
	}{
		{"at once", false, 0, true},
		{"just under a quarter of the lease", false, 2500*time.Millisecond - 1, true},
		{"a quarter of the lease", false, 2500 * time.Millisecond, false},
		{"verified always", true, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{VerifyAlways: c.verify})
				defer end()
				l := acquire(t, n.Manager, request(10*time.Second, 0))
				time.Sleep(c.age)
				if l.Fresh() != c.want {
					t.Errorf("fresh %v", !c.want)
				}
				asks := 1
				if c.want {
					asks = 0
				}
				if err := l.CheckBefore(t.Context()); err != nil || n.line.count("confirm") != asks {
					t.Errorf("CheckBefore: %v with %d asks, want %d", err, n.line.count("confirm"), asks)
				}
				release(t, l)
			})
		})
	}
}

func TestInStep(t *testing.T) {
	for _, c := range []struct {
		monotonic, wall time.Duration
		want            bool
	}{
		{time.Second, time.Second, true},
		{time.Second, 1100 * time.Millisecond, true},
		{time.Second, 1101 * time.Millisecond, false}, // the machine slept
		{time.Second, 899 * time.Millisecond, false},  // the wall clock was set back
		{time.Second, time.Hour, false},               // it was set forward
		{time.Second, -time.Hour, false},              //
		{90 * time.Minute, 90*time.Minute + 1, true},
	} {
		if got := lockwrap.InStep(c.monotonic, c.wall); got != c.want {
			t.Errorf("%v by the monotonic clock, %v by the wall: %v", c.monotonic, c.wall, got)
		}
	}
}

func TestRenewal(t *testing.T) {
	const lease = 12 * time.Second
	for _, c := range []struct {
		name   string
		hold   time.Duration
		faults []fault
		cause  lockwrap.LossCause // empty: alive after ten minutes
		from   time.Duration      // of the loss, from the start
		to     time.Duration
	}{
		{"kept alive", time.Hour, nil, "", 0, 0},
		{"three failures are ridden out", time.Hour, []fault{refused, vanished, blackHole}, "", 0, 0},
		{"an answer lost is no loss", time.Hour, []fault{lost}, "", 0, 0},
		{"unreachable from the start", time.Hour, []fault{refused, forever}, lockwrap.ConfirmFailed, 11880 * time.Millisecond, 11880 * time.Millisecond},
		{"silent from the start", time.Hour, []fault{blackHole, forever}, lockwrap.ConfirmFailed, 11880 * time.Millisecond, 11880 * time.Millisecond},
		{"unreachable after the second: one lease after that was sent", time.Hour, []fault{none, none, refused, forever},
			lockwrap.ConfirmFailed, 19880 * time.Millisecond, 19880 * time.Millisecond},
		{"the longest hold is absolute", time.Minute, nil, lockwrap.MaxHoldReached, time.Minute - 120*time.Millisecond, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{})
				defer end()
				n.line.set("renew", c.faults...)
				l := acquire(t, n.Manager, renewed(lease, c.hold))
				began := time.Now()
				select {
				case <-l.Lost():
				case <-time.After(10 * time.Minute):
				}
				took := time.Since(began)
				if c.cause == "" {
					if l.Err() != nil || !l.Held() {
						t.Errorf("lost after %v: %v", took, l.Err())
					}
					if r := n.line.count("renew"); r < 140 || r > 160 {
						t.Errorf("%d renewals in ten minutes, want about 150", r)
					}
					release(t, l)
					n.wantFree(t)
					return
				}
				wantLost(t, l.Err(), c.cause)
				if took < c.from || took > c.to {
					t.Errorf("lost after %v, want from %v to %v", took, c.from, c.to)
				}
				renewals := n.line.count("renew")
				time.Sleep(time.Minute)
				if n.line.count("renew") > renewals {
					t.Error("a lost lease is still being renewed")
				}
				n.wantFree(t)
				wantLost(t, l.Release(t.Context()), c.cause)
			})
		})
	}
}

func TestAfterALossTheSameNodeGetsItRenewedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		n.line.set("renew", refused, forever)
		l := acquire(t, n.Manager, renewed(3*time.Second, time.Hour))
		<-l.Lost()
		wantLost(t, l.Release(t.Context()), lockwrap.ConfirmFailed)
		n.line.set("renew")
		next := acquire(t, n.Manager, renewed(3*time.Second, time.Hour))
		time.Sleep(15 * time.Second)
		if !next.Held() || next.Token() <= l.Token() {
			t.Errorf("held %v, token %d after %d", next.Held(), next.Token(), l.Token())
		}
		release(t, next)
	})
}

func TestReleaseWaitsForTheRenewalInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		n.line.set("renew", late)
		l := acquire(t, n.Manager, renewed(3*time.Second, time.Hour))
		time.Sleep(1100 * time.Millisecond) // the renewal was sent at 1 s and answers at 1.5 s
		began := time.Now()
		release(t, l)
		if took := time.Since(began); took != 400*time.Millisecond {
			t.Errorf("the release took %v", took)
		}
		n.wantFree(t)
	})
}

func TestARenewedDeadlineCountsFromTheSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		n.line.set("renew", late)
		l := acquire(t, n.Manager, renewed(3*time.Second, time.Hour))
		time.Sleep(1900 * time.Millisecond) // sent at 1 s, answered at 1.5 s
		if got := l.Deadline().Sub(l.Sent()); got != 4*time.Second-30*time.Millisecond {
			t.Errorf("the deadline is %v after the acquire, want a lease after the renewal was sent", got)
		}
		release(t, l)
	})
}

func TestDoBoundsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		err := n.Do(t.Context(), request(10*time.Second, 0), func(ctx context.Context, l *lockwrap.Lease) error {
			<-ctx.Done()
			if !time.Now().Equal(l.Deadline()) {
				t.Errorf("an unrenewed run ended %v after its deadline", time.Since(l.Deadline()))
			}
			wantLost(t, context.Cause(ctx), lockwrap.MaxHoldReached)
			return context.Cause(ctx)
		})
		wantLost(t, err, lockwrap.MaxHoldReached)
		n.line.set("renew", refused, forever)
		err = n.Do(t.Context(), renewed(12*time.Second, time.Hour), func(ctx context.Context, l *lockwrap.Lease) error {
			<-ctx.Done()
			wantLost(t, context.Cause(ctx), lockwrap.ConfirmFailed)
			return nil
		})
		wantLost(t, err, lockwrap.ConfirmFailed)
	})
}

func TestDoChecksBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{VerifyAlways: true})
		defer end()
		n.line.set("confirm", refused, forever)
		err := n.Do(t.Context(), request(10*time.Second, 0), func(context.Context, *lockwrap.Lease) error {
			t.Error("the function ran without a confirmed lock")
			return nil
		})
		wantLost(t, err, lockwrap.ConfirmFailed)
		n.wantFree(t)
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := start(t, lockwrap.Config{})
		l := acquire(t, n.Manager, renewed(3*time.Second, time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's cause", err)
		}
		if _, err := n.Acquire(t.Context(), request(time.Minute, time.Minute)); kinds.Of(err) != kinds.Draining {
			t.Errorf("after Close: %v", err)
		}
		if err := n.Ready(t.Context()); kinds.Of(err) != kinds.Draining {
			t.Errorf("Ready after Close: %v", err)
		}
		<-l.Lost() // nobody renews it any more
		wantLost(t, l.Err(), lockwrap.ConfirmFailed)
		if err := n.other.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseWaitsForCleanUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		n.line.set("acquire", late)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := n.Acquire(ctx, request(time.Minute, time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := n.Close(t.Context()); err != nil { // the late grant is still to come
			t.Error(err)
		}
		n.wantFree(t)
		end()
	})
}

func TestANewManagerNamesWhatIsWrong(t *testing.T) {
	for field, spoil := range map[string]func(*lockwrap.Config){
		"Config.Backend":  func(c *lockwrap.Config) { c.Backend = nil },
		"Config.Instance": func(c *lockwrap.Config) { c.Instance = "" },
		"Config.Prefix":   func(c *lockwrap.Config) { c.Prefix = "a{b}" },
		"Config.MaxQueue": func(c *lockwrap.Config) { c.MaxQueue = -2 },
		"Config.Attempt":  func(c *lockwrap.Config) { c.Attempt = time.Millisecond },
		"Config.Patience": func(c *lockwrap.Config) { c.Patience = -1 },
	} {
		cfg := lockwrap.Config{Backend: &faulty{}, Instance: "n1"}
		spoil(&cfg)
		_, err := lockwrap.New(cfg)
		var bad *lockwrap.InvalidError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("got %v, want an error naming %s", err, field)
		}
	}
}
