package lockwrap_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/lockwrap"
)

// What is observed, with how long each took.
func TestObserve(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, n *node)
		want []string
	}{
		"a call": {func(t *testing.T, n *node) {
			l := acquire(t, n.Manager, request(time.Minute, 0))
			time.Sleep(time.Second)
			release(t, l)
		}, []string{"acquired 0s", "released 1s"}},
		"a release with effects": {func(t *testing.T, n *node) {
			l := acquire(t, n.Manager, request(time.Minute, 0))
			if applied, err := l.ReleaseWith(t.Context(), func(bool) int { return 0 }); !applied || err != nil {
				t.Errorf("%v, %v", applied, err)
			}
			l = acquire(t, n.Manager, request(time.Second, 0))
			time.Sleep(time.Second) // lost by its own clock, and nobody has come since
			_, _ = l.ReleaseWith(t.Context(), func(bool) int { return 0 })
		}, []string{"acquired 0s", "released 0s", "acquired 0s", "lost 1s"}},
		"a hand-over": {func(t *testing.T, n *node) {
			l := acquire(t, n.Manager, request(time.Minute, 0))
			done := waiter(t, t.Context(), n.Manager, request(time.Minute, time.Minute))
			time.Sleep(time.Second)
			release(t, l)
			if err := <-done; err != nil {
				t.Error(err)
			}
		}, []string{"acquired 0s", "released 1s", "acquired 1s handed", "released 1ms"}},
		"busy": {func(t *testing.T, n *node) {
			l := acquire(t, n.other, request(time.Minute, 0))
			if _, err := n.Acquire(t.Context(), request(time.Minute, time.Second)); err == nil {
				t.Error("it got the lock")
			}
			release(t, l)
		}, []string{"refused 1s still taken"}},
		"a loss": {func(t *testing.T, n *node) {
			l := acquire(t, n.Manager, renewed(3*time.Second, time.Hour))
			n.line.set("renew", refused, forever)
			<-l.Lost()
			_ = l.Release(t.Context()) // it is lost
		}, []string{"acquired 0s", "renewal_failed 0s", "renewal_failed 0s", "renewal_failed 0s", "renewal_failed 0s",
			"renewal_failed 0s", "renewal_failed 0s", "renewal_failed 0s", "renewal_failed 0s", "lost 2.97s confirm_failed"}},
		"a release without an answer": {func(t *testing.T, n *node) {
			l := acquire(t, n.Manager, request(time.Minute, 0))
			n.line.set("release", refused, refused, refused, refused, refused, refused, refused, refused, refused, refused,
				refused, refused, refused, refused, refused, refused, refused, refused, refused, refused, refused, refused, refused,
				refused, refused, refused, refused, refused, refused, refused, refused, refused, refused, refused, refused, refused)
			wantLost(t, l.Release(t.Context()), lockwrap.ConfirmFailed)
			n.line.set("release")
		}, []string{"acquired 0s", "cleaned_up 0s", "lost confirm_failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				n, end := start(t, lockwrap.Config{Observe: func(e lockwrap.Event) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, told(e))
				}})
				defer end()
				c.do(t, n)
				mu.Lock()
				defer mu.Unlock()
				slices.Sort(got) // a release and the entry of the heir are told by two goroutines
				slices.Sort(c.want)
				if !slices.Equal(got, c.want) {
					t.Errorf("got  %q\nwant %q", got, c.want)
				}
			})
		})
	}
}

// told is an event in words; how long a release without an answer takes is random.
func told(e lockwrap.Event) string {
	s := string(e.What)
	random := e.What == lockwrap.Lost && e.Took < time.Second
	if !random {
		s += fmt.Sprintf(" %v", e.Took)
	}
	if e.Handed {
		s += " handed"
	}
	for _, word := range []string{"still taken", "confirm_failed"} {
		if e.Err != nil && strings.Contains(e.Err.Error(), word) {
			s += " " + word
		}
	}
	return s
}
