package locktest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"apiengine/lockwrap"
)

// inspectTests are for backends that are an Inspector.
var inspectTests = []test{
	{"inspect: held locks show their holder, and nothing else does", showsHolders},
	{"inspect: nodes in line show since when, in their order", showsWaiting},
	{"inspect: a forced release ends the holder's lease and no later one", forcedRelease},
}

// inspectable skips the test where the backend is no Inspector.
func (s *suite) inspectable() {
	s.Helper()
	if _, ok := s.backend().(lockwrap.Inspector); !ok {
		s.Skip("the backend is no Inspector")
	}
}

func (s *suite) locks(m *lockwrap.Manager, prefix string) (list []lockwrap.Status) {
	s.Helper()
	list, err := m.Locks(s.Context(), prefix)
	if err != nil {
		s.Fatal(err)
	}
	return list
}

func showsHolders(s *suite) {
	s.inspectable()
	a, b := s.node("n/1"), s.node("n2")
	if list := s.locks(a, ""); len(list) != 0 {
		s.Fatalf("before anything is held: %+v", list)
	}
	s.release(s.acquire(a, request("used and free", 5*time.Second, 0)))
	held := map[string]*lockwrap.Lease{}
	for _, name := range []string{"*", "42", "421", "[4]", "über?"} {
		r := request(name, 5*time.Second, 0)
		r.API, r.Note = "order_pay", "run of "+name
		l := s.acquire(a, r)
		held[l.Key().String()] = l
	}
	list := s.locks(b, "")
	if len(list) != len(held) {
		s.Fatalf("%d locks of %d: %+v", len(list), len(held), list)
	}
	for i, got := range list {
		l := held[got.Lock]
		if l == nil || i > 0 && list[i-1].Lock >= got.Lock {
			s.Fatalf("lock %d is %q, after %+v", i, got.Lock, list[:i])
		}
		off := got.By.Since.Sub(l.Sent()).Abs()
		if got.Token != l.Token() || got.Node != "n/1" || got.By.API != "order_pay" || got.By.Note != "run of "+l.Key().Value ||
			got.Left <= 0 || got.Left > 5*time.Second || off > 10*time.Second || len(got.Waiting) > 0 {
			s.Errorf("%+v, want the particulars of token %d", got, l.Token())
		}
	}
	for prefix, want := range map[string]int{"acme:OrderId:42": 2, "acme:OrderId:4": 2, "acme:": 5, "acm?": 0, "other:": 0, "*": 0} {
		if got := s.locks(b, prefix); len(got) != want {
			s.Errorf("prefix %q: %d locks, want %d", prefix, len(got), want)
		}
	}
	_, err := b.Lock(s.Context(), "acme:OrderId:free")
	var none *lockwrap.NotHeldError
	if !errors.As(err, &none) || none.Token != 0 {
		s.Errorf("a free lock: %v", err)
	}
	for _, l := range held {
		s.release(l)
	}
}

func showsWaiting(s *suite) {
	s.inspectable()
	b, ctx := s.backend(), s.Context()
	look, _ := b.(lockwrap.Inspector)
	ask := func(lock, node string) {
		s.Helper()
		c := lockwrap.Claim{Lock: lock, Holder: node + ":aa", TTL: 20 * time.Second, Keep: time.Hour, Node: s.prefix + ":w:" + node, Queue: true}
		if _, err := b.Acquire(ctx, c); err != nil {
			s.Fatal(err)
		}
	}
	lock := s.lock("x")
	began := time.Now()
	for _, node := range []string{"holder", "n3", "n1", "n2", "n3"} { // who asks again keeps its place and its time
		ask(lock, node)
		<-time.After(2 * time.Millisecond) // their times differ
	}
	if err := b.Leave(ctx, lock, s.prefix+":w:n1"); err != nil {
		s.Fatal(err)
	}
	ask(lock, "n1")
	one, err := look.Lock(ctx, lock)
	if err != nil {
		s.Fatal(err)
	}
	list, err := look.Locks(ctx, s.prefix)
	if err != nil || len(list) != 1 || !slices.Equal(list[0].Waiting, one.Waiting) {
		s.Fatalf("%+v of all locks, %+v of one: %v", list, one, err)
	}
	last := began.Add(-10 * time.Second) // a server's clock may differ
	for i, node := range []string{"n3", "n2", "n1"} {
		if len(one.Waiting) != 3 || one.Waiting[i].Node != s.prefix+":w:"+node {
			s.Fatalf("in line: %+v, want n3, n2, n1", one.Waiting)
		}
		if w := one.Waiting[i]; !w.Since.After(last) || w.Since.Sub(began) > 20*time.Second {
			s.Errorf("%s waits since %v, want some time after %v", node, w.Since, last)
		}
		last = one.Waiting[i].Since
	}
}

func forcedRelease(s *suite) {
	s.inspectable()
	for i, here := range []bool{true, false} { // by the holder's own node, by another
		holder, by := s.node(fmt.Sprint("holder", i)), s.node(fmt.Sprint("other", i))
		if here {
			by = holder
		}
		r := request(fmt.Sprint("x", i), 20*time.Second, 10*time.Second)
		l := s.acquire(holder, r)
		lock := l.Key().String()

		var wrong *lockwrap.NotHeldError
		if err := by.ForceRelease(s.Context(), lock, l.Token()-1); !errors.As(err, &wrong) || wrong.Token != l.Token() {
			s.Fatalf("with an older token: %v", err)
		}
		if err := l.Confirm(s.Context()); err != nil {
			s.Fatalf("after that: %v", err)
		}
		if err := by.ForceRelease(s.Context(), lock, l.Token()); err != nil {
			s.Fatal(err)
		}
		if here {
			wait(s, "the loss of the lease on its own node", l.Lost())
		}
		s.wantLost("confirm", l.Confirm(s.Context()), lockwrap.TokenMismatch)
		s.wantLost("release", l.Release(s.Context()), lockwrap.TokenMismatch)
		next := s.acquire(by, r)
		if err := by.ForceRelease(s.Context(), lock, l.Token()); !errors.As(err, &wrong) {
			s.Errorf("the old token against a later holder: %v", err)
		}
		s.release(next)
		if err := by.ForceRelease(s.Context(), lock, next.Token()); !errors.As(err, &wrong) || wrong.Token != 0 {
			s.Errorf("a free lock: %v", err)
		}
	}
}
