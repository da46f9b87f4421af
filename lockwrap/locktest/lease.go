package locktest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"apiengine/fault"
	"apiengine/lockwrap"
)

var leaseTests = []test{
	{"a lease tells what it is", leaseTells},
	{"a release by another changes nothing", foreignRelease},
	{"a second release gives the first one's answer", releaseTwice},
	{"an expired lease is lost, and its late release harms nobody", expiredLease},
	{"a lease taken away is lost", takenAway},
	{"renewal keeps a lease alive", renewalKeeps},
	{"the longest hold ends a renewed lease", maxHold},
	{"releases race renewals", releaseRacesRenewal},
}

func leaseTells(s *suite) {
	m := s.node("n1")
	before := time.Now()
	l := s.acquire(m, request("x", 20*time.Second, 0))
	after := time.Now()
	switch {
	case l.Key() != request("x", 0, 0).Key:
		s.Errorf("key %v", l.Key())
	case !strings.HasSuffix(strings.TrimRight(l.Owner(), "0123456789abcdef"), ":n1:"):
		s.Errorf("owner %q", l.Owner())
	case l.Sent().Before(before) || l.Sent().After(after):
		s.Errorf("sent at %v, not between %v and %v", l.Sent(), before, after)
	case !l.Deadline().Equal(l.Sent().Add(20*time.Second - 200*time.Millisecond)):
		s.Errorf("deadline %v after it was sent", l.Deadline().Sub(l.Sent()))
	case !l.Held() || l.Remaining() <= 0 || !l.Fresh() || l.Err() != nil:
		s.Errorf("held %v, remaining %v, fresh %v, err %v", l.Held(), l.Remaining(), l.Fresh(), l.Err())
	}
	if err := errors.Join(l.CheckBefore(s.Context()), l.Confirm(s.Context())); err != nil {
		s.Error(err)
	}
	s.release(l)
	if l.Held() || l.Remaining() != 0 || l.Fresh() || l.Err() != nil {
		s.Errorf("after the release: held %v, remaining %v, fresh %v, err %v", l.Held(), l.Remaining(), l.Fresh(), l.Err())
	}
	s.wantLost("confirm after the release", l.Confirm(s.Context()), lockwrap.TokenMismatch)
}

func foreignRelease(s *suite) {
	a, b := s.node("n1"), s.backend()
	l := s.acquire(a, request("x", 20*time.Second, 0))
	if r := s.must(b.Release(s.Context(), s.lock("x"), lockwrap.Owner{Token: l.Token(), Holder: "n2:cc"}, nil)); r.Held {
		s.Fatalf("the foreign release: %+v", r)
	}
	if err := l.Confirm(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.release(l)
}

func releaseTwice(s *suite) {
	m := s.node("n1")
	l := s.acquire(m, request("x", 20*time.Second, 0))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := l.Release(s.Context()); err != nil {
				s.Error(err)
			}
		})
	}
	all.Wait()
	next := s.acquire(m, request("x", 20*time.Second, 0))
	s.release(l) // says what it said, and does not touch the new holder
	if err := next.Confirm(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.release(next)
}

func expiredLease(s *suite) {
	a, b := s.node("n1"), s.node("n2")
	l := s.acquire(a, request("x", 60*time.Millisecond, 0))
	wait(s, "the end of the lease", l.Lost())
	s.wantLost("Err", l.Err(), lockwrap.MaxHoldReached)
	next := s.acquire(b, request("x", 20*time.Second, 5*time.Second))
	s.wantLost("Confirm", l.Confirm(s.Context()), lockwrap.MaxHoldReached)
	err := l.Release(s.Context())
	s.wantLost("Release", err, lockwrap.MaxHoldReached)
	if again := l.Release(s.Context()); again != err {
		s.Errorf("the second release says %v, the first %v", again, err)
	}
	if !strings.Contains(fault.Public(err), "分布式锁租约已丢失") {
		s.Errorf("the public text is %q", fault.Public(err))
	}
	if err := next.Confirm(s.Context()); err != nil || next.Token() <= l.Token() {
		s.Errorf("the new holder: %v, token %d after %d", err, next.Token(), l.Token())
	}
	s.release(next)
}

func takenAway(s *suite) {
	a, other := s.node("n1"), s.backend()
	steal := func(l *lockwrap.Lease) {
		_, holder, _ := strings.Cut(l.Owner(), ":")
		if r := s.must(other.Release(s.Context(), s.lock("x"), lockwrap.Owner{Holder: holder}, nil)); !r.Held {
			s.Fatalf("taking it away: %+v", r)
		}
	}
	l := s.acquire(a, request("x", 20*time.Second, 0))
	steal(l)
	s.wantLost("Confirm", l.Confirm(s.Context()), lockwrap.TokenMismatch)
	wait(s, "Lost", l.Lost())
	s.wantLost("Err", l.Err(), lockwrap.TokenMismatch)
	s.wantLost("Release", l.Release(s.Context()), lockwrap.TokenMismatch)

	l = s.acquire(a, request("x", 20*time.Second, 0))
	steal(l)
	s.wantLost("Release without a Confirm", l.Release(s.Context()), lockwrap.TokenMismatch)

	l = s.acquire(a, renewed(request("x", 300*time.Millisecond, 0), time.Hour))
	steal(l)
	wait(s, "the renewal's notice", l.Lost())
	s.wantLost("Err", l.Err(), lockwrap.TokenMismatch)
	s.wantLost("Release", l.Release(s.Context()), lockwrap.TokenMismatch)

	err := a.Do(s.Context(), request("x", 20*time.Second, 0), func(ctx context.Context, l *lockwrap.Lease) error {
		steal(l)
		_ = l.Confirm(ctx)
		wait(s, "the end of the context", ctx.Done())
		s.wantLost("the context's cause", context.Cause(ctx), lockwrap.TokenMismatch)
		return nil
	})
	s.wantLost("Do, whatever the function says", err, lockwrap.TokenMismatch)
}

func renewalKeeps(s *suite) {
	a, b := s.node("n1"), s.node("n2")
	ctx, cancel := context.WithCancel(s.Context())
	l, err := a.Acquire(ctx, renewed(request("x", 900*time.Millisecond, 5*time.Second), time.Hour))
	if err != nil {
		s.Fatal(err)
	}
	cancel() // the acquire's context is not the lease's
	first, end := l.Deadline(), time.After(2700*time.Millisecond)
	for over := false; !over; {
		select {
		case <-l.Lost():
			s.Fatal(l.Err())
		case <-end:
			over = true
		}
	}
	if !l.Held() || !l.Deadline().After(first) {
		s.Errorf("held %v, deadline moved by %v", l.Held(), l.Deadline().Sub(first))
	}
	_, err = b.Acquire(s.Context(), request("x", 20*time.Second, 0))
	s.wantBusy(err)
	s.release(l)
	s.wantFree(b, "x")
}

func maxHold(s *suite) {
	a, b := s.node("n1"), s.node("n2")
	l := s.acquire(a, renewed(request("x", 200*time.Millisecond, 0), 500*time.Millisecond))
	wait(s, "the end of the hold", l.Lost())
	if held := time.Since(l.Sent()); held < 400*time.Millisecond {
		s.Errorf("lost after %v", held)
	}
	s.wantLost("Err", l.Err(), lockwrap.MaxHoldReached)
	s.release(s.acquire(b, request("x", 20*time.Second, 5*time.Second))) // also while the first has not let go
	s.wantLost("Release", l.Release(s.Context()), lockwrap.MaxHoldReached)
}

func releaseRacesRenewal(s *suite) {
	m := s.node("n1")
	rounds := 300
	for range rounds {
		r := renewed(request("x", 5*time.Second, time.Second), time.Hour) // a stalled server is not what is tried here
		r.Plan.Renew = time.Millisecond
		l := s.acquire(m, r)
		select {
		case <-l.Lost():
			s.Fatal(l.Err())
		case <-time.After(time.Millisecond):
		}
		s.release(l)
		s.wantFree(m, "x")
	}
}
