package redis_test

import (
	"strings"
	"testing"
	"time"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/locktest"
	"apiengine/lockwrap/redis"
)

// setLua is a test's own effects: each key is set to its argument.
const setLua = `
local function effects(held, k, a)
	local failed = 0
	for i = k, #KEYS do
		local done = held and redis.pcall('SET', KEYS[i], ARGV[a + i - k]) or redis.pcall('DEL', KEYS[i])
		if type(done) == 'table' and done.err then failed = failed + 1 end
	end
	return failed
end
`

func TestApplier(t *testing.T) {
	s := testserver.Redis(t)
	a := admin(t, s)
	open := func(t testing.TB) lockwrap.Backend { return open(t, redis.Config{URL: s.URL()}) }
	locktest.RunApplier(t, open, func(t testing.TB) locktest.Place {
		key := "effects of " + t.Name()
		return locktest.Place{
			Write: func(text string) lockwrap.Effects {
				return redis.Effects{Script: setLua, Keys: []string{key}, Args: []any{text}}
			},
			Broken: func() lockwrap.Effects {
				return redis.Effects{Script: strings.Replace(setLua, "'SET', KEYS[i],", "i == k and 'INCRBY' or 'SET', KEYS[i],", 1),
					Keys: []string{key, key + "2"}, Args: []any{"no number", "v"}}
			},
			Value: func() string { return a.Get(t.Context(), key).Val() },
			Set: func(text string) {
				if err := a.Set(t.Context(), key, text, time.Minute).Err(); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// A memory that is full keeps nobody from releasing, nor from writing in the same step: the
// release frees before it writes.
func TestEffectsUnderAFullMemory(t *testing.T) {
	s := testserver.NewRedis(t, "--maxmemory-policy", "noeviction")
	a, m := admin(t, s), node(t, s.URL(), "p")
	l := acquire(t, m, request(lease, 0))
	if err := a.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := a.Set(t.Context(), "k", "v", 0).Err(); err == nil {
		t.Fatal("the memory is not full")
	}
	applied, err := l.ReleaseWith(t.Context(), redis.Effects{Script: setLua, Keys: []string{"k"}, Args: []any{"v"}})
	if got := a.Get(t.Context(), "k").Val(); !applied || err != nil || got != "v" {
		t.Errorf("applied %v, %v, and the key holds %q", applied, err, got)
	}
}

// The release with its effects is one command.
func TestEffectsCostNoRoundTrip(t *testing.T) {
	s := testserver.NewRedis(t)
	a, m := admin(t, s), node(t, s.URL(), "p")
	call := func() {
		l := acquire(t, m, request(lease, 0))
		if applied, err := l.ReleaseWith(t.Context(), redis.Effects{Script: setLua, Keys: []string{"k"}, Args: []any{"v"}}); !applied || err != nil {
			t.Fatal(applied, err)
		}
	}
	call() // the server learns the scripts
	before := commands(t, a)
	for range 20 {
		call()
	}
	if got := commands(t, a) - before; got != 40 {
		t.Errorf("20 calls made %d commands, want 40", got)
	}
}
