package lock_test

import (
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

// P4: the wall clock of Redis is stepped by an hour and back. Tokens rise all the same. Set
// back, it costs nothing. Set forward, all locks end at once: their holders hear of it, by a
// renewal or at their end, and the next one has a larger token. (This process's own wall
// clock counts for nothing but the check that TestInStep is about.)
func TestTheServersClockIsStepped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		by    time.Duration
		holds bool
	}{{"an hour back", -time.Hour, true}, {"an hour forward", time.Hour, false}} {
		t.Run(c.name, func(t *testing.T) {
			s := testserver.NewSteppedRedis(t)
			m, other := node(t, s.URL()), node(t, s.URL())
			warm(t, m)
			last := int64(0)
			for _, by := range []time.Duration{c.by, 0} { // and back again
				holds := c.holds == (by != 0)
				plain := acquire(t, m, request(lease, 0))
				r := renewed(3 * time.Second)
				r.Key.Value = "43"
				kept := acquire(t, m, r)
				first := kept.Deadline()
				if plain.Token() <= last {
					t.Errorf("token %d after %d", plain.Token(), last)
				}
				s.Step(t, by)
				if !holds {
					<-kept.Lost()
					wantLost(t, kept.Release(t.Context()), lockwrap.TokenMismatch)
					next := acquire(t, other, request(lease, 0))
					if next.Token() <= plain.Token() {
						t.Errorf("token %d after %d", next.Token(), plain.Token())
					}
					last = next.Token()
					wantLost(t, plain.Release(t.Context()), lockwrap.TokenMismatch)
					release(t, next)
					continue
				}
				if _, err := other.Acquire(t.Context(), request(lease, 0)); fault.Of(err) != fault.LockBusy {
					t.Errorf("a second holder: %v", err)
				}
				eventually(t, "a renewal", func() bool { return kept.Err() != nil || kept.Deadline().After(first) })
				for _, l := range []*lockwrap.Lease{plain, kept} {
					if err := l.Confirm(t.Context()); err != nil {
						t.Error(err)
					}
					release(t, l)
				}
				next := acquire(t, other, request(lease, 0))
				if next.Token() <= plain.Token() {
					t.Errorf("token %d after %d", next.Token(), plain.Token())
				}
				last = next.Token()
				release(t, next)
			}
		})
	}
}
