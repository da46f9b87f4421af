package lockwrap_test

import (
	"testing"
	"testing/synctest"
	"time"

	"apiengine/lockwrap"
)

// What a release that takes effects along says and leaves behind, whatever its line does.
func TestReleaseWithFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		faults  []fault
		stolen  bool // somebody else has had the lock
		failed  int
		cause   lockwrap.LossCause // empty: nil
		applied bool
		value   string
	}{
		{name: "no fault", applied: true, value: "mine"},
		{name: "a write fails", failed: 1, value: "mine"},
		{name: "lost before", stolen: true, cause: lockwrap.MaxHoldReached, applied: true}, // by the lease's own clock
		{name: "refused once", faults: []fault{refused}, applied: true, value: "mine"},
		{name: "the request is lost", faults: []fault{vanished}, applied: true, value: "mine"},
		// The second attempt finds the lock gone and removes what the first has written.
		{name: "the answer is lost", faults: []fault{lost}, cause: lockwrap.TokenMismatch, applied: true},
		{name: "no answer in time", faults: []fault{blackHole, forever}, cause: lockwrap.ConfirmFailed, value: "before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, end := start(t, lockwrap.Config{})
				defer end()
				l := acquire(t, n.Manager, request(time.Minute, 0))
				if c.stolen {
					time.Sleep(time.Minute)
					release(t, acquire(t, n.other, request(time.Minute, 0)))
				}
				n.line.set("release", c.faults...)
				value := "before"
				applied, err := l.ReleaseWith(t.Context(), func(held bool) int {
					if value = "mine"; !held {
						value = ""
					}
					return c.failed
				})
				switch {
				case c.cause == "" && err != nil:
					t.Errorf("got %v", err)
				case c.cause != "":
					wantLost(t, err, c.cause)
				}
				if applied != c.applied || value != c.value {
					t.Errorf("applied %v and left %q, want %v and %q", applied, value, c.applied, c.value)
				}
				if again, sameErr := l.ReleaseWith(t.Context(), func(bool) int { panic("once is enough") }); again || sameErr != err {
					t.Errorf("the second time: %v %v", again, sameErr)
				}
				n.line.set("release")
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// A lease that its own clock has given up while the backend still held it was not lost: what
// the release wrote was the holder's.
func TestReleaseWithBelievesTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		n.line.set("renew", refused, forever)
		l := acquire(t, n.Manager, renewed(10*time.Second, time.Hour))
		<-l.Lost() // the margin before the backend drops it
		wantLost(t, l.Err(), lockwrap.ConfirmFailed)
		held := false
		if applied, err := l.ReleaseWith(t.Context(), func(h bool) int { held = h; return 0 }); !applied || err != nil || !held {
			t.Errorf("applied %v, held %v, %v", applied, held, err)
		}
	})
}

// A backend that applies nothing releases all the same, and the caller hears of it.
func TestReleaseWithoutApplier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, end := start(t, lockwrap.Config{})
		defer end()
		l := acquire(t, n.other, request(time.Minute, 0)) // its backend is hidden behind the plain interface
		applied, err := l.ReleaseWith(t.Context(), func(bool) int { t.Error("applied"); return 0 })
		if l.Applies() || applied || err != nil {
			t.Errorf("applied %v, %v", applied, err)
		}
		n.wantFree(t)
	})
}
