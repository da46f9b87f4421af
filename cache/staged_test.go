package cache_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"apiengine/cache"
	"apiengine/fault"
)

func TestStagedWritesWait(t *testing.T) {
	for name, base := range map[string]*cache.View{"embedded": embeddedView(t), "redis": redisView(t)} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), cache.NewStaged(base)
			check(t, []step{
				{"before", ask(base.Set(ctx, "old", "1", 0)) + ask(base.HashSet(ctx, "h", "a", "1")) + ask(base.HashSet(ctx, "h", "b", "1")), ""},
				{"Set", ask(s.Set(ctx, "new", "2", 0)), ""},
				{"Remove", ask(s.Remove(ctx, "old")), "true"},
				{"Remove again", ask(s.Remove(ctx, "old")), "false"},
				{"HashSet", ask(s.HashSet(ctx, "h", "a", "2")), ""},
				{"HashDelete", ask(s.HashDelete(ctx, "h", "b")), "true"},
				{"HashDelete again", ask(s.HashDelete(ctx, "h", "b")), "false"},
				{"HashSet of a new one", ask(s.HashSet(ctx, "h2", "a", "1")), ""},
				{"Expire of what is removed", ask(s.Expire(ctx, "old", time.Hour)), "false"},

				{"the run sees its writes", ask(s.Get(ctx, "new")) + ask(s.Get(ctx, "old")) + ask(s.HashGetAll(ctx, "h")), "2 true falsemap[a:2]"},
				{"others see none", ask(base.Get(ctx, "new")) + ask(base.Get(ctx, "old")) + ask(base.HashGetAll(ctx, "h")), " false1 truemap[a:1 b:1]"},
				{"nor the new hash", ask(base.Exists(ctx, "h2")), "false"},
				{"something waits", fmt.Sprint(s.Empty()), "false"},
				{"flush", ask(s.Flush(ctx, 0)), ""},
				{"nothing waits", fmt.Sprint(s.Empty()), "true"},
				{"others see them", ask(base.Get(ctx, "new")) + ask(base.Get(ctx, "old")) + ask(base.HashGetAll(ctx, "h")), "2 true falsemap[a:2]"},

				{"stage again", ask(s.Set(ctx, "new", "3", 0)) + ask(s.HashDelete(ctx, "h", "a")), "true"},
				{"drop", fmt.Sprint(drop(s)), "true"},
				{"the run sees the base", ask(s.Get(ctx, "new")) + ask(s.HashGetAll(ctx, "h")), "2 truemap[a:2]"},
				{"flush nothing", ask(s.Flush(ctx, 0)), ""},
				{"the base is unchanged", ask(base.Get(ctx, "new")) + ask(base.HashGetAll(ctx, "h")), "2 truemap[a:2]"},
			})
		})
	}
}

func drop(s *cache.Staged) bool {
	s.Drop()
	return s.Empty()
}

func TestStagedRollback(t *testing.T) {
	base, ctx := embeddedView(t), t.Context()
	s := cache.NewStaged(base)
	outer := s.Mark()
	check(t, []step{{"parent", ask(s.Set(ctx, "p", "1", 0)) + ask(s.HashSet(ctx, "h", "p", "1")), ""}})
	child := s.Mark()
	check(t, []step{
		{"child", ask(s.Set(ctx, "p", "2", 0)) + ask(s.HashSet(ctx, "h", "c", "2")) + ask(s.Set(ctx, "c", "2", 0)), ""},
		{"child acts at once", ask(s.Increment(ctx, "n", 1, 0)), "1"},
	})
	s.RollbackTo(child)
	check(t, []step{
		{"the parent's writes are as they were", ask(s.Get(ctx, "p")) + ask(s.HashGetAll(ctx, "h")), "1 truemap[p:1]"},
		{"the child's are gone", ask(s.Exists(ctx, "c")), "false"},
		{"what acted at once stays", ask(s.Get(ctx, "n")), "1 true"},
	})
	s.RollbackTo(child) // of a second child that staged nothing
	check(t, []step{
		{"flush", ask(s.Flush(ctx, 0)), ""},
		{"base", ask(base.Get(ctx, "p")) + ask(base.HashGetAll(ctx, "h")) + ask(base.Exists(ctx, "c")), "1 truemap[p:1]false"},
		{"stage", ask(s.Set(ctx, "p", "9", 0)), ""},
	})
	s.RollbackTo(outer)
	if !s.Empty() {
		t.Error("something waits after everything was rolled back")
	}
}

// What acts at once on a key for which something is staged answers by that, and is staged
// behind it: dropped or rolled back, nothing of either is left.
func TestAtOnceOnAStagedKey(t *testing.T) {
	type ops = func(context.Context, *cache.Staged) string
	increment := func(ctx context.Context, s *cache.Staged) string { return ask(s.Increment(ctx, "k", 1, 0)) }
	swap := func(ctx context.Context, s *cache.Staged) string { return ask(s.CompareAndSet(ctx, "k", "5", "6", 0)) }
	mismatch := func(ctx context.Context, s *cache.Staged) string { return ask(s.CompareAndSet(ctx, "k", "1", "6", 0)) }
	take := func(ctx context.Context, s *cache.Staged) string { return ask(s.GetAndRemove(ctx, "k")) }
	create := func(ctx context.Context, s *cache.Staged) string { return ask(s.SetIfNotExists(ctx, "k", "6", 0)) }
	count := func(ctx context.Context, s *cache.Staged) string { return ask(s.HashIncrement(ctx, "h", "n", 2)) }
	set := func(ctx context.Context, s *cache.Staged) string { return ask(s.Set(ctx, "k", "5", 0)) }
	remove := func(ctx context.Context, s *cache.Staged) string { return ask(s.Remove(ctx, "k")) }
	field := func(ctx context.Context, s *cache.Staged) string { return ask(s.HashSet(ctx, "h", "n", "40")) }
	unfield := func(ctx context.Context, s *cache.Staged) string { return ask(s.HashDelete(ctx, "h", "n")) }
	for _, c := range []struct {
		name, key string
		stage     ops
		act       ops
		want      string // the answer
		left      string // what the run sees then, and everybody after the flush
		back      string // what everybody sees when act is rolled back and the rest flushed
	}{
		{"Set, Increment", "k", set, increment, "6", "6 true", "5 true"},
		{"Set, CompareAndSet", "k", set, swap, "true", "6 true", "5 true"},
		{"Set, CompareAndSet of the base's", "k", set, mismatch, "false", "5 true", "5 true"},
		{"Set, GetAndRemove", "k", set, take, "5 true", " false", "5 true"},
		{"Set, SetIfNotExists", "k", set, create, "false", "5 true", "5 true"},
		{"Remove, Increment", "k", remove, increment, "1", "1 true", " false"},
		{"Remove, CompareAndSet", "k", remove, mismatch, "false", " false", " false"},
		{"Remove, GetAndRemove", "k", remove, take, " false", " false", " false"},
		{"Remove, SetIfNotExists", "k", remove, create, "true", "6 true", " false"},
		{"HashSet, HashIncrement", "h", field, count, "42", "42 true", "40 true"},
		{"HashDelete, HashIncrement", "h", unfield, count, "2", "2 true", " false"},
	} {
		for kind, base := range map[string]*cache.View{"embedded": embeddedView(t), "redis": redisView(t)} {
			ctx, name := t.Context(), c.name+", "+kind+": "
			see := func(from cache.Cache) string {
				if c.key == "h" {
					return ask(from.HashGet(ctx, "h", "n"))
				}
				return ask(from.Get(ctx, "k"))
			}
			before := map[string]string{"k": "1 true", "h": "10 true"}[c.key]
			for _, end := range []string{"drop", "flush", "rollback"} {
				check(t, []step{{name + "before", ask(base.Set(ctx, "k", "1", 0)) + ask(base.HashSet(ctx, "h", "n", "10")), ""}})
				s := cache.NewStaged(base)
				c.stage(ctx, s)
				mark := s.Mark()
				check(t, []step{
					{name + "answer", c.act(ctx, s), c.want},
					{name + "the run sees it", see(s), c.left},
					{name + "nobody else does", see(base), before},
				})
				after := map[string]string{"drop": before, "flush": c.left, "rollback": c.back}[end]
				if end == "rollback" {
					s.RollbackTo(mark)
				}
				if end == "drop" {
					s.Drop()
				}
				check(t, []step{{name + end, ask(s.Flush(ctx, 0)), ""}, {name + "after " + end, see(base), after}})
			}
		}
	}
}

// Fields and keys for which nothing is staged are the base's, also beside some that are; a
// number keeps its end, and a value that takes the place of another does not keep an Expire.
func TestAtOnceBesideAStagedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, ctx := embeddedView(t), t.Context()
		s := cache.NewStaged(base)
		check(t, []step{
			{"before", ask(base.HashSet(ctx, "h", "n", "1")) + ask(base.Set(ctx, "k", "1", 0)), ""},
			{"a field", ask(s.HashSet(ctx, "h", "secret", "x")), ""},
			{"beside it", ask(s.HashIncrement(ctx, "h", "n", 1)), "2"},
			{"an end", ask(s.Expire(ctx, "k", time.Minute)), "true"},
			{"another value", ask(s.CompareAndSet(ctx, "k", "1", "2", time.Hour)), "true"},
			{"a number with an end", ask(s.Set(ctx, "n", "1", time.Minute)) + ask(s.Increment(ctx, "n", 1, time.Hour)), "2"},
		})
		check(t, []step{{"flush", ask(s.Flush(ctx, 0)), ""}, {"both fields", ask(base.HashGetAll(ctx, "h")), "map[n:2 secret:x]"}})
		time.Sleep(2 * time.Minute)
		check(t, []step{{"its end is its own", ask(base.Get(ctx, "k")), "2 true"}, {"its end is the old one", ask(base.Get(ctx, "n")), " false"}})
		s = cache.NewStaged(base)
		check(t, []step{{"a field that is dropped", ask(s.HashSet(ctx, "h", "secret", "y")) + ask(s.HashIncrement(ctx, "h", "n", 1)), "3"}})
		s.Drop()
		check(t, []step{{"only the count stays", ask(base.HashGetAll(ctx, "h")), "map[n:3 secret:x]"}})
	})
}

func TestInvalidateEmptiesWhatWouldHaveChanged(t *testing.T) {
	for name, base := range map[string]*cache.View{"embedded": embeddedView(t), "redis": redisView(t)} {
		ctx, s := t.Context(), cache.NewStaged(base)
		for _, k := range []string{"set", "removed", "expired", "read"} {
			check(t, []step{{name, ask(base.Set(ctx, k, "old", 0)), ""}})
		}
		check(t, []step{
			{"stage", ask(s.Set(ctx, "set", "new", 0)) + ask(s.Remove(ctx, "removed")) + ask(s.Expire(ctx, "expired", time.Hour)), "truetrue"},
			{"stage a hash", ask(s.HashSet(ctx, "hash", "f", "1")), ""},
			{"read", ask(s.Get(ctx, "read")), "old true"},
			{"invalidate", ask(s.Invalidate(ctx)), ""},
			{"gone", ask(base.Exists(ctx, "set")) + ask(base.Exists(ctx, "removed")) + ask(base.Exists(ctx, "expired")) + ask(base.Exists(ctx, "hash")), "falsefalsefalsefalse"},
			{"untouched", ask(base.Get(ctx, "read")), "old true"},
			{"nothing waits", fmt.Sprint(s.Empty()), "true"},
		})
	}
}

// TestAFlushThatMeetsTheOtherKind: another run turned the hash into a string meanwhile.
func TestAFlushThatMeetsTheOtherKind(t *testing.T) {
	for name, base := range map[string]*cache.View{"embedded": embeddedView(t), "redis": redisView(t)} {
		ctx, s := t.Context(), cache.NewStaged(base)
		check(t, []step{
			{name, ask(s.HashSet(ctx, "h", "f", "1")) + ask(s.Set(ctx, "k", "1", 0)), ""},
			{"another run", ask(base.Set(ctx, "h", "string", 0)), ""},
			{"flush", ask(s.Flush(ctx, 0)), "script_error"},
			{"all waits on", fmt.Sprint(s.Empty()), "false"},
			{"invalidate", ask(s.Invalidate(ctx)), ""},
			{"gone", ask(base.Exists(ctx, "h")) + ask(base.Exists(ctx, "k")), "falsefalse"},
		})
	}
}

func TestStagedIsBounded(t *testing.T) {
	s, ctx := cache.NewStaged(embeddedView(t)), t.Context()
	value := strings.Repeat("v", cache.MaxValue)
	got := ""
	for i := 0; i < 20 && got == ""; i++ {
		got = ask(s.Set(ctx, "k", value, 0))
	}
	if got != string(fault.LimitMemory) {
		t.Errorf("160 MiB were staged: %q", got)
	}
	s.Drop()
	check(t, []step{{"after a drop there is room again", ask(s.Set(ctx, "k", value, 0)), ""}})
}

// trips counts round trips.
type trips struct{ n atomic.Int64 }

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmd)
	}
}
func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.n.Add(1)
		return next(ctx, cmds)
	}
}

func TestRoundTrips(t *testing.T) {
	r, client, _ := onRedis(t)
	c, ctx := r.For("default"), t.Context()
	s := cache.NewStaged(c)
	check(t, []step{ // loads the scripts, opens the connections
		{"warm", ask(c.Increment(ctx, "w", 1, time.Hour)) + ask(c.CompareAndSet(ctx, "w", "1", "2", 0)) + ask(c.Expire(ctx, "w", 0)), "1truetrue"},
		{"warm the pipeline", ask(s.Set(ctx, "w", "1", 0)) + ask(s.Set(ctx, "w", "2", 0)) + ask(s.Flush(ctx, 0)), ""},
	})
	h := &trips{}
	client.AddHook(h)
	for _, op := range []struct {
		name string
		want int64
		do   func() string
	}{
		{"Get", 1, func() string { return ask(c.Get(ctx, "k")) }},
		{"Set", 1, func() string { return ask(c.Set(ctx, "k", "1", time.Hour)) }},
		{"Increment with a ttl", 1, func() string { return ask(c.Increment(ctx, "n", 1, time.Hour)) }},
		{"CompareAndSet", 1, func() string { return ask(c.CompareAndSet(ctx, "k", "1", "2", time.Hour)) }},
		{"SetIfNotExists", 1, func() string { return ask(c.SetIfNotExists(ctx, "k", "1", time.Hour)) }},
		{"Expire with 0", 1, func() string { return ask(c.Expire(ctx, "k", 0)) }},
		{"GetAndRemove", 1, func() string { return ask(c.GetAndRemove(ctx, "k")) }},
		{"staged Set", 0, func() string { return ask(s.Set(ctx, "k", "1", 0)) }},
		{"reading it", 0, func() string { return ask(s.Get(ctx, "k")) }},
		{"staged Remove of it", 0, func() string { return ask(s.Remove(ctx, "k")) }},
		{"staged HashSet asks for the kind once", 1, func() string { return ask(s.HashSet(ctx, "h", "f", "1")) }},
		{"and not again", 0, func() string { return ask(s.HashSet(ctx, "h", "g", "1")) }},
		{"Flush", 1, func() string { return ask(s.Flush(ctx, 0)) }},
		{"Flush of nothing", 0, func() string { return ask(s.Flush(ctx, 0)) }},
	} {
		before := h.n.Load()
		op.do()
		if got := h.n.Load() - before; got != op.want {
			t.Errorf("%s took %d round trips, want %d", op.name, got, op.want)
		}
	}
}

// operation is one call of a Cache, made at random.
type operation struct {
	name, key, field, value string
	ttl                     time.Duration
}

var calls = map[string]func(context.Context, cache.Cache, operation) string{
	"Get": func(ctx context.Context, c cache.Cache, o operation) string { return ask(c.Get(ctx, o.key)) },
	"Set": func(ctx context.Context, c cache.Cache, o operation) string {
		return ask(c.Set(ctx, o.key, o.value, o.ttl))
	},
	"Remove": func(ctx context.Context, c cache.Cache, o operation) string { return ask(c.Remove(ctx, o.key)) },
	"Exists": func(ctx context.Context, c cache.Cache, o operation) string { return ask(c.Exists(ctx, o.key)) },
	"Expire": func(ctx context.Context, c cache.Cache, o operation) string { return ask(c.Expire(ctx, o.key, o.ttl)) },
	"SetIfNotExists": func(ctx context.Context, c cache.Cache, o operation) string {
		return ask(c.SetIfNotExists(ctx, o.key, o.value, o.ttl))
	},
	"Increment": func(ctx context.Context, c cache.Cache, o operation) string {
		return ask(c.Increment(ctx, o.key, 1, o.ttl))
	},
	"GetAndRemove": func(ctx context.Context, c cache.Cache, o operation) string { return ask(c.GetAndRemove(ctx, o.key)) },
	"CompareAndSet": func(ctx context.Context, c cache.Cache, o operation) string {
		return ask(c.CompareAndSet(ctx, o.key, "1", o.value, o.ttl))
	},
	"HashSet": func(ctx context.Context, c cache.Cache, o operation) string {
		return ask(c.HashSet(ctx, o.key, o.field, o.value))
	},
	"HashGet": func(ctx context.Context, c cache.Cache, o operation) string {
		return ask(c.HashGet(ctx, o.key, o.field))
	},
	"HashGetAll": func(ctx context.Context, c cache.Cache, o operation) string { return ask(c.HashGetAll(ctx, o.key)) },
	"HashDelete": func(ctx context.Context, c cache.Cache, o operation) string {
		return ask(c.HashDelete(ctx, o.key, o.field))
	},
	"HashIncrement": func(ctx context.Context, c cache.Cache, o operation) string {
		return ask(c.HashIncrement(ctx, o.key, o.field, 1))
	},
}

func randomOperation(rnd *rand.Rand, names []string) operation {
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	return operation{
		name: pick(names...), key: pick("a", "b", "Microi:default:a"), field: pick("f", "g"),
		value: pick("1", "2", "x"), ttl: time.Duration(rnd.IntN(2)) * time.Hour,
	}
}

// TestAllAnswerTheSame runs random operations on all four caches at once.
func TestAllAnswerTheSame(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	ctx, names := t.Context(), slices.Sorted(maps.Keys(calls))
	bases := []*cache.View{embeddedView(t), redisView(t), embeddedView(t), redisView(t)}
	overlays := []*cache.Staged{cache.NewStaged(bases[2]), cache.NewStaged(bases[3])}
	all := []cache.Cache{bases[0], bases[1], overlays[0], overlays[1]}
	for i := range 3000 {
		o := randomOperation(rnd, names)
		want := calls[o.name](ctx, all[0], o)
		for j, c := range all[1:] {
			if got := calls[o.name](ctx, c, o); got != want {
				t.Fatalf("operation %d, %v, on cache %d: %q, want %q", i, o, j+1, got, want)
			}
		}
		for _, s := range overlays {
			if i%11 == 0 {
				check(t, []step{{"flush", ask(s.Flush(ctx, 0)), ""}})
			}
			if i%7 == 0 { // a nested call that fails
				mark := s.Mark()
				check(t, []step{{"a nested call", ask(s.Set(ctx, "a", "child", 0)), ""}})
				s.RollbackTo(mark)
			}
		}
	}
	for i, s := range overlays {
		check(t, []step{{"flush", ask(s.Flush(ctx, 0)), ""}})
		for _, key := range []string{"a", "b"} {
			same := func(c cache.Cache) string { return ask(c.Get(ctx, key)) + ask(c.HashGetAll(ctx, key)) }
			check(t, []step{{"in the end " + key, same(bases[2+i]), same(bases[0])}})
		}
	}
}
