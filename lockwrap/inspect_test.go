package lockwrap_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/budget"
	"apiengine/lockwrap"
	"apiengine/lockwrap/embedded"
)

func TestLocksTellWhoWaitsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := embedded.New(t.Context(), embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := lockwrap.New(lockwrap.Config{Backend: b, Instance: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		r := lockwrap.Request{Key: lockwrap.Key{Tenant: "acme", Scope: "OrderId", Value: "42"}, API: "pay", Note: "run-1",
			Plan: budget.Plan{Lease: time.Minute, Hold: time.Minute, Wait: time.Minute, Run: time.Minute}}
		held := acquire(t, m, r)
		turns := make(chan error, 3)
		began := time.Now()
		for range 3 {
			go func() {
				l, err := m.Acquire(t.Context(), r)
				if err == nil {
					err = l.Release(context.Background())
				}
				turns <- err
			}()
			time.Sleep(time.Second)
		}
		list, err := m.Locks(t.Context(), "acme:")
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		want := lockwrap.Waiting{Node: "n1", Since: began, Count: 3}
		if w := list[0].Waiting; len(w) != 1 || w[0].Node != want.Node || !w[0].Since.Equal(began) || w[0].Count != 3 {
			t.Errorf("waiting: %+v, want %+v", w, want)
		}
		// Busy tells the API to callers; the run's id is for administrators.
		r.Plan.Wait = 0
		var busy *lockwrap.BusyError
		if _, err := m.Acquire(t.Context(), r); !errors.As(err, &busy) || busy.Holder.API != "pay" || busy.Holder.Note != "run-1" {
			t.Errorf("busy: %v by %+v", err, busy)
		}
		// Those who wait on the holder's node do not wait for the end of a lease that was taken away.
		if err := m.ForceRelease(t.Context(), list[0].Lock, held.Token()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := <-turns; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the last waiter had its turn after %v", took)
		}
		wantLost(t, held.Release(t.Context()), lockwrap.TokenMismatch)
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
