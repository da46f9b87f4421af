package cache_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"apiengine/cache"
	"apiengine/fault"
	"apiengine/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func embedded(t testing.TB, cfg cache.EmbeddedConfig) *cache.Embedded {
	t.Helper()
	e, err := cache.NewEmbedded(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

var prefixes atomic.Int64

// onRedis returns a cache under a prefix of its own on the shared server.
func onRedis(t testing.TB) (r *cache.Redis, client *redis.Client, prefix string) {
	t.Helper()
	prefix = fmt.Sprint("test", prefixes.Add(1))
	r, client = connect(t, testserver.Redis(t).URL(), prefix)
	return r, client, prefix
}

func connect(t testing.TB, url, prefix string) (*cache.Redis, *redis.Client) {
	t.Helper()
	opt, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	opt.MaxRetries, opt.ContextTimeoutEnabled, opt.DialTimeout = -1, true, time.Second
	client := redis.NewClient(opt)
	t.Cleanup(func() { client.Close() })
	r, err := cache.NewRedis(cache.RedisConfig{Client: client, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return r, client
}

func plain(view *cache.View) func() subject {
	return func() subject { return subject{Cache: view, flush: func(testing.TB) {}} }
}

func overlaid(view *cache.View) func() subject {
	return func() subject {
		s := cache.NewStaged(view)
		return subject{Cache: s, flush: func(t testing.TB) {
			t.Helper()
			if err := s.Flush(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}}
	}
}

func embeddedView(t testing.TB) *cache.View {
	return embedded(t, cache.EmbeddedConfig{}).For("default")
}

func redisView(t testing.TB) *cache.View {
	r, _, _ := onRedis(t)
	return r.For("default")
}

func TestContract(t *testing.T) {
	for name, fresh := range map[string]func(testing.TB) func() subject{
		"embedded":             func(t testing.TB) func() subject { return plain(embeddedView(t)) },
		"redis":                func(t testing.TB) func() subject { return plain(redisView(t)) },
		"staged over embedded": func(t testing.TB) func() subject { return overlaid(embeddedView(t)) },
		"staged over redis":    func(t testing.TB) func() subject { return overlaid(redisView(t)) },
	} {
		t.Run(name, func(t *testing.T) { contract(t, fresh) })
	}
}

func TestTenantsAreApart(t *testing.T) {
	e := embedded(t, cache.EmbeddedConfig{})
	r, _, _ := onRedis(t)
	for name, of := range map[string]func(string) *cache.View{"embedded": e.For, "redis": r.For} {
		a, b, ctx := of("a"), of("a_b"), t.Context()
		for _, key := range []string{"k", ":k", "b:k", "a_b:k", "Microi:k"} {
			check(t, []step{
				{name + " set", ask(a.Set(ctx, key, "a's", 0)), ""},
				{name + " the other has none", ask(b.Exists(ctx, key)), "false"},
				{name + " the other sets", ask(b.Set(ctx, key, "b's", 0)), ""},
				{name + " mine is the same", ask(a.Get(ctx, key)), "a's true"},
				{name + " remove mine", ask(a.Remove(ctx, key)), "true"},
				{name + " the other's stays", ask(b.Get(ctx, key)), "b's true"},
			})
		}
	}
}

func TestRedisKeyForm(t *testing.T) {
	r, client, prefix := onRedis(t)
	for key, want := range map[string]string{
		"product:1":             "product:1",
		"Microi:shop:product:2": "product:2",
		"a{b}c":                 "a%7Bb%7Dc",
		"a%7Bb":                 "a%257Bb",
		"n\x00l\n\x7f":          "n%00l%0A%7F",
		"产品 1":                  "产品 1",
	} {
		if err := r.For("shop").Set(t.Context(), key, "v", 0); err != nil {
			t.Error(err)
		}
		if v, err := client.Get(t.Context(), prefix+":c:shop:"+want).Result(); v != "v" {
			t.Errorf("%q is not at %q: %v", key, want, err)
		}
	}
}

func TestEmbeddedTimesAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := cache.NewEmbedded(cache.EmbeddedConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		c, ctx := e.For("default"), t.Context()
		after := func(d time.Duration) string {
			time.Sleep(d)
			return ask(c.Exists(ctx, "k"))
		}
		check(t, []step{
			{"set", ask(c.Set(ctx, "k", "1", 10*time.Second)), ""},
			{"a moment before", after(10*time.Second - time.Nanosecond), "true"},
			{"counting keeps the end", ask(c.Increment(ctx, "k", 1, time.Hour)), "2"},
			{"the moment", after(time.Nanosecond), "false"},
			{"hash", ask(c.HashSet(ctx, "k", "f", "1")) + ask(c.Expire(ctx, "k", time.Minute)), "true"},
			{"half", after(30 * time.Second), "true"},
			{"another field keeps the end", ask(c.HashSet(ctx, "k", "g", "1")), ""},
			{"a deleted field keeps the end", ask(c.HashDelete(ctx, "k", "f")), "true"},
			{"a moment before", after(30*time.Second - time.Nanosecond), "true"},
			{"the moment", after(time.Nanosecond), "false"},
			{"rounded up", ask(c.Set(ctx, "k", "1", 1500*time.Microsecond)), ""},
			{"a moment before", after(2*time.Millisecond - time.Nanosecond), "true"},
			{"the moment", after(time.Nanosecond), "false"},
			{"for ever", ask(c.Set(ctx, "k", "1", 0)), ""},
			{"after an hour", after(time.Hour), "true"},
		})
	})
}

func TestEmbeddedIsBounded(t *testing.T) {
	c := embedded(t, cache.EmbeddedConfig{MaxBytes: 4 << 20}).For("default")
	value := strings.Repeat("v", 64<<10)
	const n = 1000
	for i := range n {
		if err := c.Set(t.Context(), fmt.Sprint("s", i), value, 0); err != nil {
			t.Fatal(err)
		}
		if err := c.HashSet(t.Context(), fmt.Sprint("h", i%5), fmt.Sprint(i), value); err != nil {
			t.Fatal(err)
		}
	}
	kept := func() (bytes int) {
		for i := range n {
			v, _, err := c.Get(t.Context(), fmt.Sprint("s", i))
			if err != nil {
				t.Fatal(err)
			}
			bytes += len(v)
		}
		for i := range 5 {
			fields, err := c.HashGetAll(t.Context(), fmt.Sprint("h", i))
			if err != nil {
				t.Fatal(err)
			}
			bytes += len(fields) * len(value)
		}
		return bytes
	}
	// Entries are dropped a moment after the write that was too much.
	bytes := kept()
	for deadline := time.Now().Add(10 * time.Second); bytes > 4<<20 && time.Now().Before(deadline); {
		bytes = kept()
	}
	if bytes == 0 || bytes > 4<<20 {
		t.Errorf("%d bytes are kept under a bound of 4 MiB", bytes)
	}
}

func TestUnreachableRedis(t *testing.T) {
	server := testserver.NewRedis(t)
	r, _ := connect(t, server.URL(), "p")
	c, ctx := r.For("default"), t.Context()
	staged := cache.NewStaged(c)
	check(t, []step{{"stage", ask(staged.Set(ctx, "k", "v", 0)), ""}})
	server.Kill()
	for name, got := range map[string]string{
		"Get": ask(c.Get(ctx, "k")), "Set": ask(c.Set(ctx, "k", "v", 0)), "Increment": ask(c.Increment(ctx, "n", 1, 1)),
		"CompareAndSet": ask(c.CompareAndSet(ctx, "k", "a", "b", 0)), "Flush": ask(staged.Flush(ctx, 0)),
		"Invalidate": ask(staged.Invalidate(ctx)), "Expire": ask(c.Expire(ctx, "k", 0)),
	} {
		if got != string(fault.StoreUnavailable) {
			t.Errorf("%s: %q", name, got)
		}
	}
	_, _, err := c.Get(ctx, "k")
	if got := fault.Public(err); got != "the cache cannot be reached" {
		t.Errorf("a caller is told %q", got)
	}
	server.Restart(t)
	if staged.Empty() {
		t.Error("a failed flush lost what was staged")
	}
	check(t, []step{
		{"flush again", ask(staged.Flush(ctx, 0)), ""},
		{"it is there", ask(c.Get(ctx, "k")), "v true"},
	})
}

func TestFullRedisIsUnavailable(t *testing.T) {
	server := testserver.NewRedis(t, "--maxmemory", "1mb", "--maxmemory-policy", "noeviction")
	r, _ := connect(t, server.URL(), "p")
	c := r.For("default")
	got := ""
	for i := 0; i < 100 && got == ""; i++ {
		got = ask(c.Set(t.Context(), fmt.Sprint(i), strings.Repeat("v", 100<<10), 0))
	}
	if got != string(fault.StoreUnavailable) {
		t.Errorf("a full Redis answers %q", got)
	}
}

func TestConfigsAreChecked(t *testing.T) {
	if _, err := cache.NewRedis(cache.RedisConfig{}); err == nil || !strings.Contains(err.Error(), "Client") {
		t.Errorf("got %v", err)
	}
}
