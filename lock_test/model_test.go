package lock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/embedded"
)

// L4: random scripts of acquire, confirm, renew, release and hand-over, replays and strangers among
// them, against a model of one lock. The embedded backend lives in virtual time, so that
// every end of a lease is met exactly; Redis in real time, where the model knows each end
// only to the length of a round trip.
func TestEmbeddedFollowsTheModel(t *testing.T) {
	seed := newSeed(t)
	synctest.Test(t, func(t *testing.T) {
		b, err := embedded.New(t.Context(), embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		follow(t, b, seed, either(50_000, 1_000_000), 0)
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
	follow(t, b, seed, either(2_000, 100_000), 2*time.Millisecond)
}

// model is one lock as it should be.
type model struct {
	lock   string
	owner  lockwrap.Owner // no Holder: free
	last   int64          // the last token
	prev   lockwrap.Owner // who handed it to owner, if that is how it came
	lo, hi time.Time      // the lease ends between these
	slack  time.Duration
}

// step is one question put to the lock, and what is known of its time and answer.
type step struct {
	op       string
	owner    lockwrap.Owner
	next     string // holder that the lock is handed to
	ttl      time.Duration
	floor    int64
	sent, at time.Time
	reply    lockwrap.Reply
}

func follow(t *testing.T, b lockwrap.Backend, seed uint64, steps int, slack time.Duration) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	var locks []*model
	for i := range 4 {
		locks = append(locks, &model{lock: fmt.Sprintf("%s:{model:%d}", prefix, i), slack: slack})
	}
	asked := map[string]int{}
	for i := range steps {
		m := locks[random.IntN(len(locks))]
		s := m.next(random)
		s.sent = time.Now()
		if err := s.ask(t.Context(), b, m.lock); err != nil {
			t.Fatalf("step %d: %+v: %v", i, s, err)
		}
		s.at = time.Now()
		if wrong := m.judge(s); wrong != "" {
			t.Fatalf("step %d: %s: %+v on %+v", i, wrong, s, m)
		}
		asked[fmt.Sprint(s.op, " ", s.reply.Held)]++
		if random.IntN(5) == 0 {
			time.Sleep(time.Duration(random.IntN(12)) * time.Millisecond)
		}
	}
	for _, op := range []string{"acquire", "confirm", "renew", "release", "hand over"} {
		for _, held := range []bool{true, false} {
			if n := asked[fmt.Sprint(op, " ", held)]; n < steps/200 {
				t.Errorf("the test is void: only %d times %s %v", n, op, held)
			}
		}
	}
}

// next makes up a step: often the holder's own, at times a stranger's or a replay.
func (m *model) next(random *rand.Rand) step {
	s := step{owner: m.owner, ttl: time.Duration(1+random.IntN(30)) * time.Millisecond,
		op: []string{"acquire", "acquire", "confirm", "renew", "release", "hand over"}[random.IntN(6)]}
	switch random.IntN(6) {
	case 0: // another holder, or the same one with a token that it never had
		s.owner = lockwrap.Owner{Token: m.last, Holder: fmt.Sprintf("n%d:%d", random.IntN(3), random.IntN(1000))}
	case 1:
		s.owner.Token -= int64(random.IntN(3))
	}
	if s.owner.Holder == "" || s.op == "acquire" && random.IntN(3) > 0 {
		s.owner = lockwrap.Owner{Token: m.last, Holder: fmt.Sprintf("n%d:%d", random.IntN(3), random.IntN(1000))}
	}
	if s.op == "release" && random.IntN(4) == 0 {
		s.owner.Token = 0 // whatever the token
	}
	if s.op == "hand over" {
		s.next = fmt.Sprintf("n%d:%d", random.IntN(3), random.IntN(1000))
		if m.prev.Holder != "" && random.IntN(2) == 0 { // as if its answer had been lost
			s.owner, s.next = m.prev, m.owner.Holder
		}
	}
	if random.IntN(10) == 0 {
		s.floor = m.last + int64(random.IntN(2000))
	}
	return s
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
	case "hand over":
		next := s.claim(lock, s.next)
		s.reply, err = b.Release(ctx, lock, s.owner, &next)
	}
	return err
}

func (s *step) claim(lock, holder string) lockwrap.Claim {
	return lockwrap.Claim{Lock: lock, Holder: holder, TTL: s.ttl, Floor: s.floor, Keep: time.Hour, API: "api", Node: prefix + ":w:n"}
}

// judge says what is wrong with the answer, and moves the model on.
func (m *model) judge(s step) string {
	alive := m.owner.Holder != "" && s.at.Before(m.lo)
	maybe := m.owner.Holder != "" && s.sent.Before(m.hi)
	own := m.owner.Holder == s.owner.Holder
	if s.op == "hand over" {
		return m.judgeHandOver(s, alive, maybe, own && m.owner.Token == s.owner.Token)
	}
	if s.op != "acquire" {
		return m.judgeOwn(s, alive, maybe, own && (m.owner.Token == s.owner.Token || s.op == "release" && s.owner.Token == 0))
	}
	switch {
	case s.reply.Held && s.reply.Token == m.owner.Token && own && maybe: // the same grant again
		m.begin(s)
		return ""
	case s.reply.Held && alive:
		return "granted beside a holder"
	case s.reply.Held && (s.reply.Token <= m.last || s.reply.Token <= s.floor || s.reply.Token >= 1<<53):
		return "a token that does not rise"
	case s.reply.Held:
		m.owner, m.last, m.prev = lockwrap.Owner{Token: s.reply.Token, Holder: s.owner.Holder}, s.reply.Token, lockwrap.Owner{}
		m.begin(s)
		return ""
	case own && alive:
		return "the holder was refused"
	case !maybe:
		return "refused although free"
	case s.reply.Left > m.hi.Sub(s.sent)+time.Millisecond || s.reply.Left < m.lo.Sub(s.at)-time.Millisecond:
		return "busy with a wrong time left"
	}
	return ""
}

func (m *model) judgeOwn(s step, alive, maybe, own bool) string {
	switch {
	case s.reply.Held && !own:
		return "a stranger was taken for the holder"
	case s.reply.Held && !maybe:
		return "the lease is over"
	case !s.reply.Held && own && alive:
		return "the holder was not recognised"
	case s.reply.Held && s.reply.Token != m.owner.Token:
		return "another token than the holder's"
	case !s.reply.Held && s.reply.Token != m.last && s.reply.Token != 0:
		return "a last token that never was"
	case s.reply.Held && s.op == "renew":
		m.begin(s)
	case s.reply.Held && s.op == "confirm" && (s.reply.Left > m.hi.Sub(s.sent)+time.Millisecond || s.reply.Left < m.lo.Sub(s.at)-time.Millisecond):
		return "a wrong time left"
	case s.reply.Held && s.op == "release", own && !s.reply.Held:
		m.owner, m.prev = lockwrap.Owner{}, lockwrap.Owner{}
	}
	return ""
}

func (m *model) judgeHandOver(s step, alive, maybe, own bool) string {
	again := m.owner.Holder == s.next && m.owner.Holder != ""
	switch {
	case again && s.reply.Held && maybe && s.reply.Next == m.owner.Token: // says what the first said
		m.begin(s)
	case again && alive:
		return "a repeated hand-over was not recognised"
	case s.reply.Held && !(own && maybe):
		return "handed over by a stranger, or after the end"
	case s.reply.Held && s.reply.Token != m.owner.Token:
		return "another token than the holder's"
	case s.reply.Held && (s.reply.Next <= m.last || s.reply.Next <= s.floor || s.reply.Next >= 1<<53):
		return "the next token does not rise"
	case s.reply.Held:
		m.prev, m.owner, m.last = m.owner, lockwrap.Owner{Token: s.reply.Next, Holder: s.next}, s.reply.Next
		m.begin(s)
	case own && alive:
		return "the holder was not recognised"
	case own:
		m.owner, m.prev = lockwrap.Owner{}, lockwrap.Owner{}
	}
	return ""
}

// begin starts the lease's life.
func (m *model) begin(s step) {
	m.lo, m.hi = s.sent.Add(s.ttl), s.at.Add(s.ttl+m.slack)
}
