package locktest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"apiengine/lockwrap"
)

// lineTests are about hand-overs and the line of nodes.
var lineTests = []test{
	{"line: a release gives the lock to the next holder, once", handedOver},
	{"line: only the owner can hand over", foreignHandOver},
	{"line: a hand-over yields to nodes that wait", inTime(yields)},
	{"line: a released lock is kept for the node that waits longest", inTime(kept)},
	{"line: what is kept for a node that does not come goes to others", keptInVain},
	{"line: who leaves passes the lock on", inTime(leaves)},
	{"line: an acquire takes its node out of the line", takesOut},
	{"line: a node is told of its turn", told},
	{"line: nodes take turns", turnsOfNodes},
}

// tooSlow says that a pause of the machine outlasted a keeping, so that nothing was shown.
type tooSlow struct{}

// inTime repeats a scenario, on a lock of its own each time, until the machine was fast enough.
func inTime(run func(*suite)) func(*suite) {
	return func(s *suite) {
		s.Helper()
		for range 20 {
			if quick(s, run) {
				return
			}
			s.prefix = "t-" + rand.Text()
		}
		s.Fatalf("the machine never went through the steps within %v", lockwrap.Grace)
	}
}

func quick(s *suite, run func(*suite)) (ok bool) {
	defer func() {
		if r := recover(); r != nil && r != any(tooSlow{}) {
			panic(r)
		}
	}()
	run(s)
	return true
}

// on is a claim of a node, with a holder of its own.
func (s *suite) on(node, holder string) lockwrap.Claim {
	c := claim(s.lock("x"), node+":"+holder, 5*time.Second)
	c.Node, c.Queue = s.prefix+":w:"+node, true
	return c
}

// taken acquires for c, and returns the owner.
func (s *suite) taken(b lockwrap.Backend, c lockwrap.Claim) lockwrap.Owner {
	s.Helper()
	return lockwrap.Owner{Token: s.granted(b.Acquire(s.Context(), c)), Holder: c.Holder}
}

// busy acquires for c and fails unless others come first. It returns the answer.
func (s *suite) busy(b lockwrap.Backend, c lockwrap.Claim) lockwrap.Reply {
	s.Helper()
	r := s.must(b.Acquire(s.Context(), c))
	switch {
	case r.Held && time.Since(s.passed) > lockwrap.Grace:
		panic(tooSlow{})
	case r.Held:
		s.Fatalf("%s got the lock: %+v", c.Holder, r)
	}
	return r
}

func (s *suite) released(b lockwrap.Backend, o lockwrap.Owner, next *lockwrap.Claim) lockwrap.Reply {
	s.Helper()
	s.passed = time.Now()
	r := s.must(b.Release(s.Context(), s.lock("x"), o, next))
	if !r.Held {
		s.Fatalf("release: %+v, want the lock to have been its own", r)
	}
	return r
}

func handedOver(s *suite) {
	a, b := s.backend(), s.backend()
	o := s.taken(a, s.on("n1", "aa"))
	for i, floor := range []int64{0, 1 << 52, 0} {
		next := s.on("n1", fmt.Sprint(i))
		next.Floor, next.Yield = floor, i == 2 // nobody waits: then yielding changes nothing
		r := s.released(a, o, &next)
		if r.Next <= o.Token || r.Next <= floor {
			s.Fatalf("token %d after %d with floor %d", r.Next, o.Token, floor)
		}
		if again := s.released(b, o, &next); again.Next != r.Next {
			s.Fatalf("the same release said %d, then %d", r.Next, again.Next)
		}
		if r := s.must(b.Confirm(s.Context(), next.Lock, o)); r.Held {
			s.Fatalf("the first holder still has it: %+v", r)
		}
		if r := s.must(b.Release(s.Context(), next.Lock, o, nil)); r.Held {
			s.Fatalf("a plain release of what was handed over: %+v", r)
		}
		o = lockwrap.Owner{Token: r.Next, Holder: next.Holder}
		if r := s.must(b.Confirm(s.Context(), next.Lock, o)); !r.Held || r.Left <= 0 || r.Left > 5*time.Second {
			s.Fatalf("the next holder: %+v", r)
		}
	}
	s.released(b, o, nil)
	if r := s.busyOrNot(a, s.on("n2", "bb")); !r.Held || r.Token <= o.Token {
		s.Fatalf("after the last release: %+v", r)
	}
}

func (s *suite) busyOrNot(b lockwrap.Backend, c lockwrap.Claim) lockwrap.Reply {
	s.Helper()
	return s.must(b.Acquire(s.Context(), c))
}

func foreignHandOver(s *suite) {
	b := s.backend()
	o := s.taken(b, s.on("n1", "aa"))
	next := s.on("n2", "bb")
	for _, other := range []lockwrap.Owner{{Token: o.Token, Holder: "n1:ab"}, {Token: o.Token + 1, Holder: o.Holder}, {Token: o.Token, Holder: "n1:a"}} {
		if r := s.must(b.Release(s.Context(), next.Lock, other, &next)); r.Held || r.Next != 0 || r.Token != o.Token {
			s.Errorf("a hand-over by %v: %+v", other, r)
		}
	}
	if r := s.must(b.Confirm(s.Context(), next.Lock, o)); !r.Held {
		s.Errorf("the owner after others' tries: %+v", r)
	}
	s.released(b, o, nil)
	if r := s.must(b.Release(s.Context(), next.Lock, o, &next)); r.Held || r.Next != 0 {
		s.Errorf("a hand-over of what was released: %+v", r)
	}
	if r := s.busyOrNot(b, s.on("n3", "cc")); !r.Held {
		s.Errorf("after all that: %+v", r)
	}
}

func yields(s *suite) {
	a, b := s.backend(), s.backend()
	o := s.taken(a, s.on("n1", "aa"))
	s.busy(b, s.on("n2", "bb"))
	next := s.on("n1", "ab")
	r := s.released(a, o, &next) // it need not yield yet
	if r.Next <= o.Token {
		s.Fatalf("not handed over: %+v", r)
	}
	o = lockwrap.Owner{Token: r.Next, Holder: next.Holder}
	next = s.on("n1", "ac")
	next.Yield = true
	if r := s.released(a, o, &next); r.Next != 0 {
		s.Fatalf("it did not yield: %+v", r)
	}
	if r := s.busy(a, next); r.Left <= 0 || r.Left > lockwrap.Grace || r.By != (lockwrap.Holder{}) {
		s.Fatalf("the one that yielded hears %+v, want the time that the lock is kept", r)
	}
	second := s.taken(b, s.on("n2", "bc"))
	if second.Token <= o.Token {
		s.Fatalf("token %d after %d", second.Token, o.Token)
	}
	s.released(b, second, nil) // n1 stands in line behind it, though it never asked itself
	s.busy(b, s.on("n3", "cc"))
	s.taken(a, next)
}

func kept(s *suite) {
	a, b := s.backend(), s.backend()
	o := s.taken(a, s.on("n1", "aa"))
	for _, node := range []string{"n3", "n2", "n3", "n4", "n2"} { // asking again keeps the place
		s.busy(b, s.on(node, "h"))
	}
	try := s.on("n5", "ee")
	try.Queue = false // it does not wait
	s.busy(b, try)
	for _, node := range []string{"n3", "n2", "n4"} {
		s.released(a, o, nil)
		s.busy(b, try)
		o = s.taken(a, s.on(node, "h"))
	}
	s.released(a, o, nil)
	s.taken(b, try)
}

func keptInVain(s *suite) {
	a := s.backend()
	o := s.taken(a, s.on("n1", "aa"))
	s.busy(a, s.on("n2", "bb"))
	s.busy(a, s.on("n3", "cc"))
	s.released(a, o, nil)
	began := time.Now()
	s.eventually("a node that asks gets it", func() bool { return s.busyOrNot(a, s.on("n3", "cc")).Held })
	if took := time.Since(began); took < lockwrap.Grace/2 {
		s.Errorf("the lock was kept for %v only", took)
	}
}

func leaves(s *suite) {
	a := s.backend()
	o := s.taken(a, s.on("n1", "aa"))
	for _, node := range []string{"n2", "n3", "n4"} {
		s.busy(a, s.on(node, "h"))
	}
	leave := func(node string) {
		s.passed = time.Now()
		if err := a.Leave(s.Context(), s.lock("x"), s.on(node, "").Node); err != nil {
			s.Fatal(err)
		}
	}
	leave("n3") // in line
	leave("n9") // who never was
	s.released(a, o, nil)
	leave("n2") // for whom it is kept
	s.busy(a, s.on("n3", "h"))
	o = s.taken(a, s.on("n4", "h"))
	leave("n4") // who holds it: that is no place in line
	if r := s.must(a.Confirm(s.Context(), s.lock("x"), o)); !r.Held {
		s.Fatalf("a holder's leaving the line cost it the lock: %+v", r)
	}
	leave("n3")
	s.released(a, o, nil)
	s.taken(a, s.on("n5", "h"))
}

func takesOut(s *suite) {
	a := s.backend()
	o := s.taken(a, s.on("n1", "aa"))
	s.busy(a, s.on("n2", "bb"))
	s.released(a, o, nil)
	o = s.taken(a, s.on("n2", "bc"))
	s.released(a, o, nil) // nobody waits any more
	o = s.taken(a, s.on("n3", "cc"))
	s.busy(a, s.on("n2", "bd"))
	next := s.on("n2", "be") // handed over, though over nodes: a manager has one backend, tests need not
	if r := s.released(a, o, &next); r.Next == 0 {
		s.Fatalf("not handed over: %+v", r)
	} else {
		o = lockwrap.Owner{Token: r.Next, Holder: next.Holder}
	}
	s.released(a, o, nil)
	s.taken(a, s.on("n4", "dd"))
}

func told(s *suite) {
	if s.polling {
		s.Skip("there are no notices where the backend is")
	}
	a, b := s.backend(), s.backend()
	ctx, cancel := context.WithCancel(s.Context())
	heard, ended := make(chan string, 100), make(chan error, 1)
	go func() { ended <- b.Notify(ctx, s.on("n2", "").Node, func(lock string) { heard <- lock }) }()
	hear := func(want string) {
		s.Helper()
		select {
		case got := <-heard:
			if got != want {
				s.Fatalf("heard %q, want %q", got, want)
			}
		case err := <-ended:
			s.Fatalf("the subscription ended: %v", err)
		case <-time.After(5 * time.Second):
			s.Fatalf("did not hear %q within 5 s", want)
		}
	}
	hear("")
	o := s.taken(a, s.on("n1", "aa"))
	s.busy(b, s.on("n2", "bb"))
	s.released(a, o, nil)
	hear(s.lock("x"))
	o = s.taken(b, s.on("n2", "bb"))
	for _, node := range []string{"n3", "n2"} {
		s.busy(a, s.on(node, "h"))
	}
	s.released(b, o, nil)
	if err := a.Leave(s.Context(), s.lock("x"), s.on("n3", "").Node); err != nil {
		s.Fatal(err)
	}
	hear(s.lock("x"))
	o = s.taken(b, s.on("n2", "bb"))
	s.busy(b, s.on("n2", "bc"))
	next := s.on("n1", "ab")
	next.Yield = true
	s.released(a, o, &next)
	hear(s.lock("x"))
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			s.Errorf("after the context's end: %v", err)
		}
	case <-time.After(5 * time.Second):
		s.Error("the subscription outlives its context")
	}
}

// turnsOfNodes shows the manager at work: with four waiters on each of three nodes no node
// is served much more than another, and tokens rise.
func turnsOfNodes(s *suite) {
	var mu sync.Mutex
	var order []string
	last := int64(0)
	nodes := []string{"n1", "n2", "n3"}
	var all sync.WaitGroup
	gate := s.acquire(s.node("n0"), request("x", 20*time.Second, 0))
	for _, name := range nodes {
		m := s.node(name)
		for range 4 {
			all.Go(func() {
				for range 10 {
					err := m.Do(s.Context(), request("x", 20*time.Second, 20*time.Second), func(_ context.Context, l *lockwrap.Lease) error {
						mu.Lock()
						defer mu.Unlock()
						if l.Token() <= last {
							s.Errorf("token %d after %d", l.Token(), last)
						}
						last, order = l.Token(), append(order, name)
						return nil
					})
					if err != nil {
						s.Error(err)
						return
					}
				}
			})
		}
	}
	s.release(gate)
	all.Wait()
	if len(order) != 120 {
		s.Fatalf("%d turns, want 120", len(order))
	}
	for _, name := range nodes { // by the time the fastest node is through, no other has been starved
		first := slices.Index(order, name)
		if first < 0 || first > 60 {
			s.Errorf("%s came first at turn %d of %v", name, first, order)
		}
	}
}
