package lock_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/embedded"
	"apiengine/lockwrap/postgres"
)

// L4: random scripts of all that a backend is asked, replays and strangers among them, by
// three nodes against a model of one lock and its line. The embedded backend lives in
// virtual time, so that every end of a lease is met exactly; Redis in real time, where the
// model knows each end only to the length of a round trip.
func TestEmbeddedFollowsTheModel(t *testing.T) {
	seed := newSeed(t)
	synctest.Test(t, func(t *testing.T) {
		b, err := embedded.New(t.Context(), embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		follow(t, b, script{seed: seed, steps: either(50_000, 1_000_000)})
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestRedisFollowsTheModel(t *testing.T) {
	seed := newSeed(t)
	b, err := open(testserver.NewRedis(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	follow(t, b, script{seed: seed, steps: either(2_000, 50_000), slack: 2 * time.Millisecond})
}

func TestPostgresFollowsTheModel(t *testing.T) {
	seed := newSeed(t)
	b, err := postgres.New(postgres.Config{URL: testserver.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	follow(t, b, script{seed: seed, steps: either(700, 20_000), slack: 2 * time.Millisecond, chatty: true})
}

// etcd ends short leases seconds late, if nobody waits, but what it keeps in time.
func TestEtcdFollowsTheModel(t *testing.T) {
	seed := newSeed(t)
	b, err := open(testserver.NewEtcd(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	follow(t, b, script{seed: seed, steps: either(700, 5_000), unit: 20 * time.Millisecond, slack: 5 * time.Second, keepSlack: 2 * time.Millisecond})
}

// script is a random one for a backend.
type script struct {
	seed  uint64
	steps int
	unit  time.Duration // leases are 1 to 50 of it; default 1ms
	slack time.Duration // how much later than a lease's end the backend may drop it
	// keepSlack is the same for a keeping; default slack.
	keepSlack time.Duration
	chatty    bool // it may tell a node once more that a lock is kept for it
}

// step is one question put to the lock, and what is known of its time and answer.
type step struct {
	op       string
	owner    lockwrap.Owner
	next     string // holder that the lock is handed to
	queue    bool   // the claim's, or the next one's
	ttl      time.Duration
	floor    int64
	sent, at time.Time
	reply    lockwrap.Reply
}

// ears notes which locks each node is told of.
type ears struct {
	mu    sync.Mutex
	heard map[string][]string
	all   sync.WaitGroup
}

// listen returns when all nodes listen; they do until ctx ends.
func listen(ctx context.Context, t *testing.T, b lockwrap.Backend) *ears {
	t.Helper()
	e := &ears{heard: map[string][]string{}}
	for i := range nodes {
		node, begun := nodeName(i), make(chan struct{})
		e.all.Go(func() {
			err := b.Notify(ctx, node, func(lock string) {
				if lock == "" {
					close(begun)
					return
				}
				e.mu.Lock()
				defer e.mu.Unlock()
				e.heard[node] = append(e.heard[node], lock)
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-begun
	}
	return e
}

// nodes share the locks of a script.
const nodes = 3

func nodeName(i int) string { return fmt.Sprintf("%s:w:n%d", prefix, i) }

// newHolder is one of few names, so that a script meets the same ones again.
func newHolder(random *rand.Rand) string {
	return fmt.Sprintf("n%d:%d", random.IntN(nodes), random.IntN(1000))
}

// nodeOf is the node of a holder.
func nodeOf(holder string) string {
	instance, _, _ := strings.Cut(holder, ":")
	return prefix + ":w:" + instance
}

func follow(t *testing.T, b lockwrap.Backend, c script) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ears := listen(ctx, t, b)
	defer ears.all.Wait()
	defer cancel()
	random := rand.New(rand.NewPCG(c.seed, 0))
	told, lost := map[string][]string{}, map[string]bool{}
	var locks []*model
	made := 0
	fresh := func() *model {
		made++
		return &model{lock: fmt.Sprintf("%s:{model:%d}", prefix, made), unit: cmp.Or(c.unit, time.Millisecond),
			slack: c.slack, keepSlack: cmp.Or(c.keepSlack, c.slack), told: told}
	}
	for range 4 {
		locks = append(locks, fresh())
	}
	asked := map[string]int{}
	for i := range c.steps {
		place := random.IntN(len(locks))
		m := locks[place]
		s := m.next(random)
		s.sent = time.Now()
		if err := s.ask(ctx, b, m.lock); err != nil {
			t.Fatalf("step %d: %+v: %v", i, s, err)
		}
		s.at = time.Now()
		was := *m
		was.told = nil // too long to be printed
		what, wrong := m.judge(s)
		if wrong != "" {
			t.Fatalf("step %d: %s: %+v on %+v", i, wrong, s, was)
		}
		if asked[what]++; m.unsure {
			locks[place], lost[m.lock] = fresh(), true
		}
		switch {
		case random.IntN(300) == 0:
			time.Sleep(lockwrap.Grace * 3 / 2)
		case random.IntN(5) == 0:
			time.Sleep(time.Duration(random.IntN(12)) * time.Millisecond)
		}
	}
	t.Log(asked)
	for _, op := range []string{"acquire", "confirm", "renew", "release", "hand over"} {
		for _, end := range []string{" true", " false"} {
			if n := asked[op+end]; n < c.steps/200 {
				t.Errorf("the test is void: only %d times %s%s", n, op, end)
			}
		}
	}
	for _, what := range []string{"yielded", "left a keeping", "left the line", "came to a keeping", "refused by a keeping"} {
		if asked[what] < c.steps/400 {
			t.Errorf("the test is void: only %d times %s", asked[what], what)
		}
	}
	ears.expect(t, told, lost, c.chatty)
}

// expect waits for the notices that are still on their way. Nobody knows what should be
// heard of the locks in lost.
func (e *ears) expect(t *testing.T, told map[string][]string, lost map[string]bool, chatty bool) {
	t.Helper()
	sure := func(locks []string) []string {
		return slices.DeleteFunc(slices.Clone(locks), func(lock string) bool { return lost[lock] })
	}
	heard := func(node string) []string {
		e.mu.Lock()
		defer e.mu.Unlock()
		return sure(e.heard[node])
	}
	for node, locks := range told {
		want := sure(locks)
		eventually(t, "the last notices", func() bool { return within(want, heard(node)) })
		if !chatty && !slices.Equal(heard(node), want) {
			t.Errorf("%s was not told of its turns as they came", node)
		}
	}
}

// within reports whether all has the parts in their order, with others between them or not.
func within(parts, all []string) bool {
	for _, x := range all {
		if len(parts) > 0 && x == parts[0] {
			parts = parts[1:]
		}
	}
	return len(parts) == 0
}

// next makes up a step: often the holder's own, at times a stranger's or a replay.
func (m *model) next(random *rand.Rand) step {
	s := step{owner: m.owner, ttl: time.Duration(1+random.IntN(50)) * m.unit, queue: random.IntN(4) > 0,
		op: []string{"acquire", "acquire", "acquire", "confirm", "renew", "release", "release", "hand over", "yield", "leave"}[random.IntN(10)]}
	if random.IntN(10) == 0 {
		s.floor = m.last + int64(random.IntN(2000))
	}
	if random.IntN(3) == 0 && m.moveLine(&s, random) {
		return s
	}
	switch random.IntN(6) {
	case 0: // another holder, or the same one with a token that it never had
		s.owner = lockwrap.Owner{Token: m.last, Holder: newHolder(random)}
	case 1:
		s.owner.Token -= int64(random.IntN(3))
	}
	if s.owner.Holder == "" || s.op == "leave" || s.op == "acquire" && random.IntN(4) > 0 {
		s.owner = lockwrap.Owner{Token: m.last, Holder: newHolder(random)}
	}
	if s.op == "leave" && len(m.line) > 0 && random.IntN(2) == 0 { // one that stands there
		s.owner.Holder = strings.TrimPrefix(m.line[random.IntN(len(m.line))], prefix+":w:") + ":1000"
	}
	if s.op == "release" && random.IntN(4) == 0 {
		s.owner.Token = 0 // whatever the token
	}
	if s.op == "hand over" || s.op == "yield" {
		s.next = newHolder(random)
		if m.prev.Holder != "" && random.IntN(2) == 0 { // as if its answer had been lost
			s.owner, s.next = m.prev, m.owner.Holder
		}
	}
	return s
}

// moveLine makes it a step that moves the line, if one stands.
func (m *model) moveLine(s *step, random *rand.Rand) bool {
	switch {
	case m.kept != "":
		s.op = []string{"acquire", "leave"}[random.IntN(2)]
		s.owner = lockwrap.Owner{Holder: strings.TrimPrefix(m.kept, prefix+":w:") + ":1000"}
	case m.owner.Holder != "" && len(m.line) > 0:
		s.op = []string{"release", "hand over", "yield"}[random.IntN(3)]
		s.next = newHolder(random)
	default:
		return false
	}
	return true
}

// ask is the only place that knows the port's methods.
func (s *step) ask(ctx context.Context, b lockwrap.Backend, lock string) (err error) {
	switch s.op {
	case "acquire":
		s.reply, err = b.Acquire(ctx, s.claim(lock, s.owner.Holder))
	case "confirm":
		s.reply, err = b.Confirm(ctx, lock, s.owner)
	case "renew":
		s.reply, err = b.Renew(ctx, lock, s.owner, s.ttl)
	case "release":
		s.reply, err = b.Release(ctx, lock, s.owner, nil)
	case "hand over", "yield":
		next := s.claim(lock, s.next)
		next.Yield = s.op == "yield"
		s.reply, err = b.Release(ctx, lock, s.owner, &next)
	case "leave":
		err = b.Leave(ctx, lock, nodeOf(s.owner.Holder))
	}
	return err
}

func (s *step) claim(lock, holder string) lockwrap.Claim {
	return lockwrap.Claim{Lock: lock, Holder: holder, TTL: s.ttl, Floor: s.floor, Keep: time.Hour, API: "api", Node: nodeOf(holder), Queue: s.queue}
}
