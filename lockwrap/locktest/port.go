package locktest

import (
	"fmt"
	"time"

	"apiengine/lockwrap"
)

// portTests are about the Backend's own methods.
var portTests = []test{
	{"port: an acquire that is repeated is granted once", repeatedAcquire},
	{"port: a token rises over the last, the floor and the clock", tokenRule},
	{"port: only the owner confirms, renews and releases", owners},
	{"port: a release without a token is for its holder", releaseAnyToken},
	{"port: a late renewal does not take the lock back", lateRenewal},
	{"port: a lease ends by itself", expiry},
}

func claim(lock, holder string, ttl time.Duration) lockwrap.Claim {
	return lockwrap.Claim{Lock: lock, Holder: holder, TTL: ttl, Keep: time.Hour, API: "api_of_" + holder}
}

func (s *suite) must(r lockwrap.Reply, err error) lockwrap.Reply {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func (s *suite) granted(r lockwrap.Reply, err error) int64 {
	s.Helper()
	if s.must(r, err); !r.Held || r.Token <= 0 || r.Token >= 1<<53 {
		s.Fatalf("got %+v, want a grant with a token below 2^53", r)
	}
	return r.Token
}

// backend opens one that the test closes.
func (s *suite) backend() lockwrap.Backend {
	s.Helper()
	b := s.open(s.T)
	s.Cleanup(func() {
		if err := b.Close(); err != nil {
			s.Error(err)
		}
	})
	return b
}

func repeatedAcquire(s *suite) {
	ctx, a, b := s.Context(), s.backend(), s.backend()
	c := claim(s.lock("x"), "n1:aa", 5*time.Second)
	first := s.granted(a.Acquire(ctx, c))
	if again := s.granted(b.Acquire(ctx, c)); again != first {
		s.Fatalf("the same holder got token %d, then %d", first, again)
	}
	began := time.Now().Add(-10 * time.Second) // servers and tests need not share a clock to the millisecond
	r := s.must(a.Acquire(ctx, claim(c.Lock, "n2:bb", time.Second)))
	if r.Held || r.By.API != "api_of_n1:aa" || r.By.Since.Before(began) || r.Left <= 0 || r.Left > 5*time.Second {
		s.Fatalf("another holder got %+v, want busy with the first's particulars", r)
	}
}

func tokenRule(s *suite) {
	ctx, b := s.Context(), s.backend()
	c := claim(s.lock("x"), "n1:aa", 5*time.Second)
	before := time.Now().Add(-time.Minute).UnixMicro()
	last := s.granted(b.Acquire(ctx, c))
	if last < before {
		s.Errorf("token %d is behind the clock's %d", last, before)
	}
	for i, floor := range []int64{0, 1 << 52, 0, 1<<52 + 1000, 5, 1<<52 + 1002} {
		if r := s.must(b.Release(ctx, c.Lock, lockwrap.Owner{Token: last, Holder: c.Holder}, nil)); !r.Held || r.Token != last {
			s.Fatalf("release: %+v, want the token %d", r, last)
		}
		c.Holder, c.Floor = fmt.Sprintf("n1:%d", i), floor
		got := s.granted(b.Acquire(ctx, c))
		if got <= last || got <= floor {
			s.Fatalf("token %d after %d with floor %d", got, last, floor)
		}
		if last >= 1<<52 && got != max(last, floor)+1 {
			s.Fatalf("token %d after %d with floor %d: where both are ahead of the clock it rises by one", got, last, floor)
		}
		last = got
	}
}

func owners(s *suite) {
	ctx, a, b := s.Context(), s.backend(), s.backend()
	lock := s.lock("x")
	mine := lockwrap.Owner{Holder: "n1:aa"}
	mine.Token = s.granted(a.Acquire(ctx, claim(lock, mine.Holder, 5*time.Second)))
	for _, other := range []lockwrap.Owner{
		{Token: mine.Token, Holder: "n1:ab"},
		{Token: mine.Token, Holder: "n1:a"},
		{Token: mine.Token + 1, Holder: mine.Holder},
		{Holder: "n1:ab"},
	} {
		for op, r := range map[string]lockwrap.Reply{
			"confirm": s.must(b.Confirm(ctx, lock, other)),
			"renew":   s.must(b.Renew(ctx, lock, other, time.Hour)),
			"release": s.must(b.Release(ctx, lock, other, nil)),
		} {
			if r.Held || r.Token != mine.Token {
				s.Errorf("%s by %v: %+v, want a refusal with the last token %d", op, other, r, mine.Token)
			}
		}
	}
	if r := s.must(b.Confirm(ctx, lock, mine)); !r.Held || r.Left <= 0 || r.Left > 5*time.Second {
		s.Fatalf("confirm after others' tries: %+v, want the untouched lease", r)
	}
	if r := s.must(b.Renew(ctx, lock, mine, time.Hour)); !r.Held {
		s.Fatalf("renew: %+v", r)
	}
	if r := s.must(a.Confirm(ctx, lock, mine)); r.Left < 59*time.Minute {
		s.Fatalf("confirm after the renewal: %+v, want about an hour left", r)
	}
	if r := s.must(a.Release(ctx, lock, mine, nil)); !r.Held {
		s.Fatalf("release: %+v", r)
	}
	for op, r := range map[string]lockwrap.Reply{
		"confirm": s.must(b.Confirm(ctx, lock, mine)),
		"renew":   s.must(b.Renew(ctx, lock, mine, time.Hour)),
		"release": s.must(b.Release(ctx, lock, mine, nil)),
	} {
		if r.Held {
			s.Errorf("%s after the release: %+v", op, r)
		}
	}
}

func releaseAnyToken(s *suite) {
	ctx, b := s.Context(), s.backend()
	lock := s.lock("x")
	s.granted(b.Acquire(ctx, claim(lock, "n1:aa", 5*time.Second)))
	if r := s.must(b.Release(ctx, lock, lockwrap.Owner{Holder: "n1:aa"}, nil)); !r.Held {
		s.Fatalf("release: %+v", r)
	}
	s.granted(b.Acquire(ctx, claim(lock, "n2:bb", 5*time.Second)))
}

func lateRenewal(s *suite) {
	ctx, b := s.Context(), s.backend()
	lock := s.lock("x")
	late := lockwrap.Owner{Holder: "n1:aa"}
	late.Token = s.granted(b.Acquire(ctx, claim(lock, late.Holder, 20*time.Millisecond)))
	s.eventually("the lease is over", func() bool { return !s.must(b.Confirm(ctx, lock, late)).Held })
	if r := s.must(b.Renew(ctx, lock, late, time.Hour)); r.Held {
		s.Fatalf("the late renewal: %+v", r)
	}
	next := s.granted(b.Acquire(ctx, claim(lock, "n2:bb", 5*time.Second)))
	if r := s.must(b.Renew(ctx, lock, late, time.Hour)); r.Held || r.Token != next || next <= late.Token {
		s.Fatalf("the late renewal beside a new holder with token %d: %+v", next, r)
	}
}

func expiry(s *suite) {
	ctx, b := s.Context(), s.backend()
	lock := s.lock("x")
	last := s.granted(b.Acquire(ctx, claim(lock, "n1:aa", 20*time.Millisecond)))
	var r lockwrap.Reply
	s.eventually("another holder gets it", func() bool {
		r = s.must(b.Acquire(ctx, claim(lock, "n2:bb", 5*time.Second)))
		return r.Held
	})
	if r.Token <= last {
		s.Fatalf("token %d after %d", r.Token, last)
	}
}

// eventually asks until the answer is yes, for things that only the backend's clock decides.
func (s *suite) eventually(what string, ok func() bool) {
	s.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !ok(); <-tick.C {
		if time.Since(began) > 5*time.Second {
			s.Fatalf("%s: not within 5 s", what)
		}
	}
}
