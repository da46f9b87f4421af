package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/locktest"
	"apiengine/lockwrap/redis"
)

// What the tests of all backends share.
var (
	request  = locktest.Request
	acquire  = locktest.Acquire
	release  = locktest.Release
	wantLost = locktest.WantLost
)

func node(t *testing.T, url, prefix string) *lockwrap.Manager {
	t.Helper()
	return locktest.Node(t, lockwrap.Config{Backend: open(t, redis.Config{URL: url}), Instance: "n1", Prefix: prefix})
}

// admin is a plain client for a look behind the scenes.
func admin(t *testing.T, s *testserver.RedisServer) *goredis.Client {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: strings.TrimPrefix(s.URL(), "redis://")})
	t.Cleanup(func() { c.Close() })
	return c
}

const (
	lease   = 20 * time.Second
	lockKey = ":{acme:OrderId:42}:l"
	tokens  = ":{acme:OrderId:42}:f"
)

func TestALockedCallIsTwoRoundTripsAndLeavesOneCounter(t *testing.T) {
	s := testserver.NewRedis(t)
	a, m := admin(t, s), node(t, s.URL(), "p")
	release(t, acquire(t, m, request(lease, 0))) // the server learns the scripts
	before := commands(t, a)
	for range 50 {
		release(t, acquire(t, m, request(lease, time.Second)))
	}
	if got := commands(t, a) - before; got != 100 {
		t.Errorf("50 locked calls made %d commands, want 100", got)
	}
	keys, err := a.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 || keys[0] != "p"+tokens {
		t.Fatalf("keys %v, %v", keys, err)
	}
	if ttl := a.PTTL(t.Context(), keys[0]).Val(); ttl < 23*time.Hour || ttl > 24*time.Hour {
		t.Errorf("the counter lives for %v, want a day", ttl)
	}
	r := request(10*time.Hour, 0)
	release(t, acquire(t, m, r))
	if ttl := a.PTTL(t.Context(), keys[0]).Val(); ttl < 99*time.Hour {
		t.Errorf("the counter lives for %v, want ten times the longest hold", ttl)
	}
}

// commands counts what the server has done but for connections' first steps.
func commands(t *testing.T, a *goredis.Client) (n int) {
	t.Helper()
	info, err := a.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if name == "evalsha" || name == "eval" {
			var calls int
			if _, err := fmt.Sscanf(rest, "%d", &calls); err != nil {
				t.Fatal(err)
			}
			n += calls
		}
	}
	return n
}

func TestTokensRiseWhenRedisForgets(t *testing.T) {
	s := testserver.NewRedis(t)
	a, m := admin(t, s), node(t, s.URL(), "p")
	last := int64(0)
	for i, forget := range []func(){
		func() {},
		func() { a.FlushAll(t.Context()) },
		func() { a.Del(t.Context(), "p"+tokens) },
		func() { a.Set(t.Context(), "p"+tokens, "rubbish", 0) },
		func() { s.Restart(t) },
		func() { a.ScriptFlush(t.Context()) },
	} {
		forget()
		l := acquire(t, m, request(lease, 10*time.Second))
		if l.Token() <= last {
			t.Errorf("case %d: token %d after %d", i, l.Token(), last)
		}
		last = l.Token()
		release(t, l)
	}
}

func TestFlushWhileHeldIsALoss(t *testing.T) {
	s := testserver.NewRedis(t)
	a, m := admin(t, s), node(t, s.URL(), "p")
	for name, check := range map[string]func(*lockwrap.Lease) error{
		"confirm": func(l *lockwrap.Lease) error { return l.Confirm(t.Context()) },
		"release": func(l *lockwrap.Lease) error { return l.Release(t.Context()) },
	} {
		l := acquire(t, m, request(lease, 0))
		a.FlushAll(t.Context())
		t.Log(name)
		wantLost(t, check(l), lockwrap.TokenMismatch)
		wantLost(t, l.Release(t.Context()), lockwrap.TokenMismatch)
		next := acquire(t, m, request(lease, 0))
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		release(t, next)
	}
}

func TestScriptFlushUnderWay(t *testing.T) {
	s := testserver.NewRedis(t)
	a, m := admin(t, s), node(t, s.URL(), "p")
	for range 20 {
		l := acquire(t, m, request(lease, 0))
		a.ScriptFlush(t.Context())
		if err := l.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.ScriptFlush(t.Context())
		release(t, l)
		a.ScriptFlush(t.Context())
	}
}

func TestAFullMemoryStopsAcquiresOnly(t *testing.T) {
	s := testserver.NewRedis(t)
	a, m := admin(t, s), node(t, s.URL(), "p")
	r := request(300*time.Millisecond, 0)
	r.Plan.Renew, r.Plan.Hold = 100*time.Millisecond, time.Hour
	l := acquire(t, m, r)
	other := request(lease, 0)
	other.Key.Value = "43"
	release(t, acquire(t, m, other))
	a.ConfigSet(t.Context(), "maxmemory", "1")
	_, err := m.Acquire(t.Context(), other)
	var refused *lockwrap.BackendError
	if !errors.As(err, &refused) || fault.Of(err) != fault.LockUnavailable {
		t.Errorf("acquire: %v, want a *BackendError and not busy", err)
	}
	first := l.Deadline()
	for !l.Deadline().After(first) { // a renewal still gets through
		if err := l.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	release(t, l)
	if n := a.Exists(t.Context(), "p"+lockKey).Val(); n != 0 {
		t.Error("the lock is still there")
	}
}

func TestAUserWithoutRights(t *testing.T) {
	s := testserver.NewRedis(t)
	a := admin(t, s)
	set := func(rules ...string) {
		args := []any{"ACL", "SETUSER", "locks", "on", ">pa/ss", "resetkeys", "nocommands"}
		for _, r := range rules {
			args = append(args, r)
		}
		if err := a.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	url := strings.Replace(s.URL(), "redis://", "redis://locks:pa%2Fss@", 1)
	set("+ping")
	m := node(t, url, "p")
	_, err := m.Acquire(t.Context(), request(lease, 0))
	var refused *lockwrap.BackendError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("without rights: %v, want a *BackendError", err)
	}
	// What the package needs, and nothing of channels.
	set("~p:*", "+ping", "+evalsha", "+eval", "+get", "+mget", "+set", "+del", "+pexpire", "+pttl", "+time", "+exists", "+zadd", "+zrem", "+zpopmin")
	l := acquire(t, m, request(lease, 0))
	if err := l.Confirm(t.Context()); err != nil {
		t.Error(err)
	}
	release(t, l)
}

func TestAKeyThatIsNotALock(t *testing.T) {
	s := testserver.NewRedis(t)
	a, m := admin(t, s), node(t, s.URL(), "p")
	for name, put := range map[string]func(){
		"string":          func() { a.Set(t.Context(), "p"+lockKey, "somebody else's", 0) },
		"string in words": func() { a.Set(t.Context(), "p"+lockKey, "12:ab cd ef", time.Hour) },
		"list":            func() { a.LPush(t.Context(), "p"+lockKey, "a list") },
	} {
		put()
		before, err := a.Dump(t.Context(), "p"+lockKey).Result()
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Acquire(t.Context(), request(lease, 0))
		var busy *lockwrap.BusyError
		if !errors.As(err, &busy) || busy.Holder != (lockwrap.Holder{}) {
			t.Errorf("a foreign %s: %v, want busy by an unknown holder", name, err)
		}
		if after := a.Dump(t.Context(), "p"+lockKey).Val(); after != before {
			t.Errorf("a foreign %s was changed", name)
		}
		a.Del(t.Context(), "p"+lockKey)
	}
	l := acquire(t, m, request(lease, 0))
	a.Persist(t.Context(), "p"+lockKey)
	if err := l.Confirm(t.Context()); err != nil {
		t.Errorf("a lock without an end: %v", err)
	}
	release(t, l)
}
