package lockwrap_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"apiengine/lockwrap"
	"apiengine/lockwrap/embedded"
	"apiengine/lockwrap/locktest"
)

// What the tests of all backends share.
var (
	request  = locktest.Request
	acquire  = locktest.Acquire
	release  = locktest.Release
	wantLost = locktest.WantLost
)

// faulty is the embedded backend behind a line that breaks where a test says so.
type faulty struct {
	lockwrap.Backend
	mu     sync.Mutex
	faults map[string][]fault // by operation; each is used once, the last for ever when it is endless
	calls  map[string]int
}

// fault is one way to go wrong.
type fault int

const (
	none      fault = iota
	refused         // not done, and it says so
	lost            // done, no answer
	vanished        // not done, no answer
	blackHole       // not done, no answer until the attempt's deadline
	late            // done at once, answered only at the attempt's deadline
	forever         // the fault before it stays
)

var errFault = errors.New("the line is cut")

// next returns the fault of this call of op, and counts the call.
func (f *faulty) next(op string) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	list := f.faults[op]
	if len(list) == 0 {
		return none
	}
	if len(list) > 1 && list[1] == forever {
		return list[0]
	}
	f.faults[op] = list[1:]
	return list[0]
}

func (f *faulty) set(op string, list ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[op] = list
}

func (f *faulty) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

func (f *faulty) run(ctx context.Context, op string, do func() (lockwrap.Reply, error)) (lockwrap.Reply, error) {
	switch f.next(op) {
	case refused:
		return lockwrap.Reply{}, &lockwrap.BackendError{Op: op, Err: errFault}
	case lost:
		_, _ = do()
		return lockwrap.Reply{}, &lockwrap.UnknownError{Op: op, Err: errFault}
	case vanished:
		return lockwrap.Reply{}, errFault // a backend that does not classify means: unknown
	case blackHole:
		<-ctx.Done()
		return lockwrap.Reply{}, ctx.Err()
	case late:
		r, err := do()
		<-ctx.Done()
		return r, err
	}
	return do()
}

func (f *faulty) Acquire(ctx context.Context, c lockwrap.Claim) (lockwrap.Reply, error) {
	return f.run(ctx, "acquire", func() (lockwrap.Reply, error) { return f.Backend.Acquire(ctx, c) })
}

func (f *faulty) Confirm(ctx context.Context, lock string, o lockwrap.Owner) (lockwrap.Reply, error) {
	return f.run(ctx, "confirm", func() (lockwrap.Reply, error) { return f.Backend.Confirm(ctx, lock, o) })
}

func (f *faulty) Renew(ctx context.Context, lock string, o lockwrap.Owner, ttl time.Duration) (lockwrap.Reply, error) {
	return f.run(ctx, "renew", func() (lockwrap.Reply, error) { return f.Backend.Renew(ctx, lock, o, ttl) })
}

func (f *faulty) Release(ctx context.Context, lock string, o lockwrap.Owner, next *lockwrap.Claim) (lockwrap.Reply, error) {
	return f.run(ctx, "release", func() (lockwrap.Reply, error) { return f.Backend.Release(ctx, lock, o, next) })
}

func (f *faulty) ReleaseWith(ctx context.Context, h lockwrap.Handback, e lockwrap.Effects) (lockwrap.Reply, error) {
	return f.run(ctx, "release", func() (lockwrap.Reply, error) {
		return f.Backend.(shared).Backend.(lockwrap.Applier).ReleaseWith(ctx, h, e)
	})
}

func (f *faulty) Leave(ctx context.Context, lock, node string) error {
	_, err := f.run(ctx, "leave", func() (lockwrap.Reply, error) { return lockwrap.Reply{}, f.Backend.Leave(ctx, lock, node) })
	return err
}

func (f *faulty) Notify(ctx context.Context, node string, hear func(string)) error {
	_, err := f.run(ctx, "notify", func() (lockwrap.Reply, error) { return lockwrap.Reply{}, f.Backend.Notify(ctx, node, hear) })
	return err
}

// node is a Manager of a test, with the faults of its line and a second, healthy node
// beside it. All live in the test's bubble of virtual time.
type node struct {
	*lockwrap.Manager
	line  *faulty
	other *lockwrap.Manager
}

// shared lets two Managers use one embedded backend.
type shared struct{ lockwrap.Backend }

func (shared) Close() error { return nil }

// start makes a node. Its end, which a test must call inside the bubble, fails the test
// when a call, a lease or a clean-up is left.
func start(t *testing.T, cfg lockwrap.Config, broken ...func(*faulty)) (n *node, end func()) {
	t.Helper()
	b, err := embedded.New(t.Context(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	n = &node{line: &faulty{Backend: shared{b}, faults: map[string][]fault{}, calls: map[string]int{}}}
	for _, f := range broken {
		f(n.line)
	}
	cfg.Backend, cfg.Instance = n.line, "n1"
	if n.Manager, err = lockwrap.New(cfg); err != nil {
		t.Fatal(err)
	}
	if n.other, err = lockwrap.New(lockwrap.Config{Backend: shared{b}, Instance: "n2"}); err != nil {
		t.Fatal(err)
	}
	return n, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(n.Close(ctx), n.other.Close(ctx)); err != nil {
			t.Error(err)
		}
		if left := lockwrap.Lines(n.Manager) + lockwrap.Lines(n.other); left != 0 {
			t.Errorf("%d lines are left", left)
		}
	}
}

func renewed(lease, hold time.Duration) lockwrap.Request {
	r := request(lease, 0)
	r.Plan.Renew, r.Plan.Hold = lease/3, hold
	return r
}
