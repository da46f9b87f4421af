package locktest

import (
	"testing"
	"time"

	"apiengine/lockwrap"
)

// Place is where effects of a test go: one value beside the locks.
type Place struct {
	// Write makes effects that set the value to text while the lock is held, and remove it
	// otherwise.
	Write func(text string) lockwrap.Effects
	// Broken makes effects of which one write of two cannot be done.
	Broken func() lockwrap.Effects
	Value  func() string // "" when there is none
	Set    func(text string)
}

// RunApplier runs the contract of a lockwrap.Applier, each test with a place of its own.
func RunApplier(t *testing.T, open Open, place func(t testing.TB) Place) {
	for _, x := range []struct {
		name string
		run  func(*suite, Place)
	}{
		{"effects: of a holder they are written", heldEffects},
		{"effects: of anybody else they are removals", lostEffects},
		{"effects: a hand-over takes them along, once", handedEffects},
		{"effects: a release for the next in line takes them along", yieldedEffects},
		{"effects: what fails is counted, and the lock is free", brokenEffects},
		{"effects: of an unknown kind nothing is done", unknownEffects},
		{"effects: a lease takes them along", leaseEffects},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.run(&suite{T: t, open: open, prefix: "t-" + t.Name()}, place(t))
		})
	}
}

// holding is a backend, and a lock of it that is held.
func (s *suite) holding(name string) (lockwrap.Backend, lockwrap.Handback) {
	s.Helper()
	b := s.backend()
	h := lockwrap.Handback{Lock: s.lock(name), Owner: lockwrap.Owner{Holder: "n1:aa"}}
	h.Owner.Token = s.granted(b.Acquire(s.Context(), claim(h.Lock, h.Owner.Holder, 5*time.Second)))
	return b, h
}

func (s *suite) releaseWith(b lockwrap.Backend, h lockwrap.Handback, e lockwrap.Effects) lockwrap.Reply {
	s.Helper()
	return s.must(b.(lockwrap.Applier).ReleaseWith(s.Context(), h, e))
}

func (s *suite) wantValue(p Place, want string) {
	s.Helper()
	if got := p.Value(); got != want {
		s.Fatalf("the value is %q, want %q", got, want)
	}
}

func heldEffects(s *suite, p Place) {
	b, h := s.holding("x")
	if r := s.releaseWith(b, h, p.Write("mine")); !r.Held || r.Token != h.Owner.Token || r.Failed != 0 {
		s.Fatalf("got %+v", r)
	}
	s.wantValue(p, "mine")
	s.granted(b.Acquire(s.Context(), claim(h.Lock, "n2:bb", 5*time.Second)))
}

func lostEffects(s *suite, p Place) {
	b, h := s.holding("x")
	for name, o := range map[string]lockwrap.Owner{
		"another's":     {Token: h.Owner.Token, Holder: "n2:bb"},
		"another token": {Token: h.Owner.Token - 1, Holder: h.Owner.Holder},
	} {
		p.Set("newer")
		if r := s.releaseWith(b, lockwrap.Handback{Lock: h.Lock, Owner: o}, p.Write("late")); r.Held || r.Token != h.Owner.Token {
			s.Errorf("%s: got %+v", name, r)
		}
		s.wantValue(p, "")
	}
	if r := s.must(b.Confirm(s.Context(), h.Lock, h.Owner)); !r.Held {
		s.Errorf("the holder's lock is gone: %+v", r)
	}
	s.must(b.Release(s.Context(), h.Lock, h.Owner, nil))
	p.Set("newer")
	next := claim(h.Lock, "n1:cc", 5*time.Second)
	h.Next = &next
	if r := s.releaseWith(b, h, p.Write("late")); r.Held || r.Next != 0 {
		s.Errorf("after its release: %+v", r)
	}
	s.wantValue(p, "")
}

func handedEffects(s *suite, p Place) {
	b, h := s.holding("x")
	next := claim(h.Lock, "n1:cc", 5*time.Second)
	h.Next = &next
	first := s.releaseWith(b, h, p.Write("mine"))
	if !first.Held || first.Next <= h.Owner.Token {
		s.Fatalf("got %+v", first)
	}
	s.wantValue(p, "mine")
	p.Set("of the next holder")
	if again := s.releaseWith(b, h, p.Write("mine")); !again.Held || again.Next != first.Next {
		s.Errorf("repeated: %+v after %+v", again, first)
	}
	s.wantValue(p, "of the next holder")
}

func yieldedEffects(s *suite, p Place) {
	b, h := s.holding("x")
	other := claim(h.Lock, "n2:bb", 5*time.Second)
	other.Node, other.Queue = s.prefix+":w:n2", true
	s.must(b.Acquire(s.Context(), other))
	next := claim(h.Lock, "n1:cc", 5*time.Second)
	next.Node, next.Yield = s.prefix+":w:n1", true
	h.Next = &next
	if r := s.releaseWith(b, h, p.Write("mine")); !r.Held || r.Next != 0 {
		s.Fatalf("got %+v", r)
	}
	s.wantValue(p, "mine")
	s.granted(b.Acquire(s.Context(), other))
}

func brokenEffects(s *suite, p Place) {
	b, h := s.holding("x")
	if r := s.releaseWith(b, h, p.Broken()); !r.Held || r.Failed != 1 {
		s.Fatalf("got %+v, want one failure", r)
	}
	s.granted(b.Acquire(s.Context(), claim(h.Lock, "n2:bb", 5*time.Second)))
}

func unknownEffects(s *suite, p Place) {
	b, h := s.holding("x")
	if _, err := b.(lockwrap.Applier).ReleaseWith(s.Context(), h, 42); err == nil {
		s.Error("effects that are a number were taken")
	}
	if r := s.must(b.Confirm(s.Context(), h.Lock, h.Owner)); !r.Held {
		s.Errorf("the lock is gone: %+v", r)
	}
}

func leaseEffects(s *suite, p Place) {
	m := s.node("n1")
	l := s.acquire(m, request("x", 20*time.Second, 0))
	if applied, err := l.ReleaseWith(s.Context(), p.Write("mine")); !l.Applies() || !applied || err != nil {
		s.Fatalf("applied %v, %v", applied, err)
	}
	s.wantValue(p, "mine")
	l = s.acquire(m, request("y", 50*time.Millisecond, 0))
	wait(s, "the end of the lease", l.Lost())
	s.release(s.acquire(s.node("n2"), request("y", 20*time.Second, 5*time.Second))) // longer than the backend keeps it
	p.Set("newer")
	applied, err := l.ReleaseWith(s.Context(), p.Write("late"))
	s.wantLost("a late release", err, lockwrap.MaxHoldReached)
	if !applied {
		s.Error("the backend answered, and the effects are said not to be applied")
	}
	s.wantValue(p, "")
}
