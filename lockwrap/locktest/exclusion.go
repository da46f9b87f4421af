package locktest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"apiengine/lockwrap"
)

var exclusionTests = []test{
	{"no update is lost between nodes and goroutines", noLostUpdate},
	{"tokens rise strictly", tokensRise},
	{"two keys do not exclude each other", keysApart},
}

func noLostUpdate(s *suite) {
	const nodes, goroutines, rounds = 3, 4, 20
	var value int // not atomic: the race detector would see two holders at once
	var lastToken int64
	var all sync.WaitGroup
	for n := range nodes {
		m := s.node(fmt.Sprint("n", n))
		for range goroutines {
			all.Go(func() {
				for range rounds {
					err := m.Do(s.Context(), request("x", 20*time.Second, 20*time.Second), func(_ context.Context, l *lockwrap.Lease) error {
						seen := value
						runtime.Gosched()
						value = seen + 1
						if l.Token() <= lastToken {
							return fmt.Errorf("token %d after %d", l.Token(), lastToken)
						}
						lastToken = l.Token()
						return nil
					})
					if err != nil {
						s.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if want := nodes * goroutines * rounds; value != want {
		s.Fatalf("%d updates are left of %d", value, want)
	}
}

func tokensRise(s *suite) {
	grants := 20_000
	if testing.Short() {
		grants = 2_000
	}
	ms := []*lockwrap.Manager{s.node("n1"), s.node("n2")}
	const most = 20 * time.Second // with a store that waits for its disk
	var last int64
	began := time.Now()
	for i := range grants {
		if time.Since(began) > most {
			s.Logf("%d grants in %v", i, most)
			break
		}
		l := s.acquire(ms[i%len(ms)], request("x", 20*time.Second, time.Second))
		if l.Token() <= last || l.Token() >= 1<<53 {
			s.Fatalf("token %d after %d", l.Token(), last)
		}
		last = l.Token()
		s.release(l)
	}
}

func keysApart(s *suite) {
	m := s.node("n1")
	a := s.acquire(m, request("a", 20*time.Second, 0))
	b := s.acquire(m, request("b", 20*time.Second, 0))
	other := request("a", 20*time.Second, 0)
	other.Key.Tenant = "globex"
	c := s.acquire(m, other)
	for _, l := range []*lockwrap.Lease{a, b, c} {
		s.release(l)
	}
}
