package cache_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"apiengine/cache"
	"apiengine/fault"
	"apiengine/internal/testserver"
	lockredis "apiengine/lockwrap/redis"
)

// after is one run that does step and has ended.
func after(t *testing.T, run func() subject, step func(subject) string) string {
	t.Helper()
	s := run()
	got := step(s)
	s.flush(t)
	return got
}

func fencedWrites(t *testing.T, run func() subject) {
	ctx := t.Context()
	set := func(value string, token int64) string {
		return after(t, run, func(s subject) string { return ask(s.SetFenced(ctx, "k", value, 0, token)) })
	}
	plain := func(do func(subject) string) string { return after(t, run, do) }
	get := func() string { return ask(run().Get(ctx, "k")) }
	const big = int64(1)<<53 - 1 // one less is another number, also in a double
	check(t, []step{
		{"the first", set("five", 5), "true"},
		{"again", set("five again", 5), "true"},
		{"an older one", set("four", 4), "false"},
		{"changed nothing", get(), "five again true"},
		{"a newer one", set("six", 6), "true"},
		{"is seen", get(), "six true"},
		{"a plain write", plain(func(s subject) string { return ask(s.Set(ctx, "k", "plain", 0)) }), ""},
		{"replaces it", get(), "plain true"},
		{"and leaves its token", set("five", 5), "false"},
		{"a plain removal", plain(func(s subject) string { return ask(s.Remove(ctx, "k")) }), "true"},
		{"leaves it too", set("five", 5), "false"},
		{"nothing is there", get(), " false"},
		{"it neither exists", ask(run().Exists(ctx, "k")), "false"},
		{"nor is kept from others", plain(func(s subject) string { return ask(s.SetIfNotExists(ctx, "k", "free", 0)) }), "true"},
		{"a hash in its place", plain(func(s subject) string {
			return ask(s.Remove(ctx, "k")) + ask(s.HashSet(ctx, "k", "f", "1"))
		}), "true"},
		{"is replaced", set("six", 6), "true"},
		{"by a string", get(), "six true"},
		{"the largest", set("big", big), "true"},
		{"one less", set("less", big-1), "false"},
		{"no token", ask(run().SetFenced(ctx, "k", "v", 0, 0)), "script_error"},
		{"a bad key", ask(run().SetFenced(ctx, "", "v", 0, 1)), "script_error"},
		{"another tenant's key", ask(run().SetFenced(ctx, "Microi:other:k", "v", 0, 1)), "script_error"},
		{"a negative ttl", ask(run().SetFenced(ctx, "k", "v", -1, 1)), "script_error"},
		{"with a ttl", plain(func(s subject) string { return ask(s.SetFenced(ctx, "t", "v", soon, 2)) }), "true"},
	})
	ends(t, run(), "t")
	check(t, []step{{"its token outlives it", plain(func(s subject) string { return ask(s.SetFenced(ctx, "t", "late", 0, 1)) }), "false"}})
}

// fencedRace: whatever the order of their coming, the largest token's value stays.
func fencedRace(t *testing.T, run func() subject) {
	ctx := t.Context()
	for round := range 20 {
		key := fmt.Sprint("k", round)
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				s := run()
				if _, err := s.SetFenced(ctx, key, fmt.Sprint(n), 0, int64(n)+1); err != nil {
					t.Error(err)
				}
				s.flush(t)
			})
		}
		wg.Wait()
		check(t, []step{{key, ask(run().Get(ctx, key)), "7 true"}})
	}
}

// bases are a cache in this process, one in a Redis, and one in a cluster.
func bases(t *testing.T) map[string]*cache.View {
	list := map[string]*cache.View{"embedded": embeddedView(t), "redis": redisView(t)}
	if !testing.Short() {
		opt, err := lockredis.ParseURL(testserver.NewCluster(t).URL())
		if err != nil {
			t.Fatal(err)
		}
		opt.MaxRetries = -1
		client := redis.NewUniversalClient(opt)
		t.Cleanup(func() { client.Close() })
		r, err := cache.NewRedis(cache.RedisConfig{Client: client, Prefix: "p"})
		if err != nil {
			t.Fatal(err)
		}
		list["cluster"] = r.For("default")
	}
	return list
}

// A flush that comes late: a newer holder of the lock has flushed meanwhile.
func TestALateFlushLeavesNothingOld(t *testing.T) {
	for name, base := range bases(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			late, newer := cache.NewStaged(base), cache.NewStaged(base)
			check(t, []step{
				{"before", ask(base.HashSet(ctx, "h", "f", "old")) + ask(base.HashSet(ctx, "h", "g", "old")) + ask(base.Set(ctx, "gone", "old", 0)) + ask(base.Set(ctx, "lasting", "old", 0)), ""},
				{"the late one stages", ask(late.Set(ctx, "k", "late", 0)) + ask(late.Set(ctx, "gone", "late", 0)) +
					ask(late.HashSet(ctx, "h", "f", "late")) + ask(late.HashDelete(ctx, "h", "g")) + ask(late.Expire(ctx, "lasting", time.Millisecond)) +
					ask(late.Set(ctx, "its own", "late", 0)) + ask(late.SetFenced(ctx, "fenced", "late", 0, 1)) + ask(late.Remove(ctx, "removed")), "truetruetruefalse"},
				{"the newer one", ask(newer.Set(ctx, "k", "new", 0)) + ask(newer.Remove(ctx, "gone")) +
					ask(newer.HashSet(ctx, "h", "f", "new")) + ask(newer.Set(ctx, "lasting", "new", 0)) + ask(newer.SetFenced(ctx, "fenced", "new", 0, 2)) + ask(newer.Set(ctx, "removed", "new", 0)), "truetrue"},
				{"flushes", ask(newer.Flush(ctx, 2)), ""},
				{"the late one flushes", ask(late.Flush(ctx, 1)), ""},
				{"and again", ask(late.Flush(ctx, 1)), ""},
				{"k is emptied", ask(base.Get(ctx, "k")), " false"},
				{"gone", ask(base.Get(ctx, "gone")), " false"},
				{"h is emptied", ask(base.HashGetAll(ctx, "h")), "map[]"},
				{"lasting is emptied", ask(base.Get(ctx, "lasting")), " false"},
				{"fenced", ask(base.Get(ctx, "fenced")), "new true"},
				{"what only the late one wrote", ask(base.Get(ctx, "its own")), "late true"},
				{"a removal is never refused", ask(base.Get(ctx, "removed")), " false"},
			})
		})
	}
}

// A removal under a lock leaves its token: an older holder cannot set the key again.
func TestTombstones(t *testing.T) {
	for name, base := range bases(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			check(t, []step{
				{"remove", ask(base.Set(ctx, "k", "v", 0)) + ask(base.RemoveFenced(ctx, "k", 7)), "true"},
				{"remove nothing", ask(base.RemoveFenced(ctx, "k", 6)), "false"},
				{"an older one sets", ask(base.SetFenced(ctx, "k", "late", 0, 6)), "false"},
				{"nothing is there", ask(base.Exists(ctx, "k")), "false"},
				{"a newer one sets", ask(base.SetFenced(ctx, "k", "new", 0, 8)), "true"},
				{"an older removal", ask(base.RemoveFenced(ctx, "k", 7)), "true"},
				{"does not lower the token", ask(base.SetFenced(ctx, "k", "late", 0, 7)), "false"},
				{"no token", ask(base.RemoveFenced(ctx, "k", 0)), string(fault.ScriptError)},
			})
		})
	}
}

// How long tokens are kept: the longest time that any of their writes asked for.
func TestHowLongTokensAreKept(t *testing.T) {
	r, client, prefix := onRedis(t)
	ctx, base := t.Context(), r.For("default")
	s := cache.NewStaged(base)
	mark := func(key string) time.Duration {
		return client.PTTL(ctx, "{"+prefix+":c:default:"+key+"}:f").Val().Round(time.Hour)
	}
	check(t, []step{
		{"set", ask(base.SetFenced(ctx, "k", "v", time.Second, 1)) + ask(base.RemoveFenced(ctx, "r", 1)), "truefalse"},
		{"flush", ask(s.Set(ctx, "k", "v", 0)) + ask(s.Set(ctx, "f", "v", 0)) + ask(s.Flush(ctx, 2)), ""},
		{"set, then flushed", mark("k").String(), cache.Keep.String()},
		{"removed", mark("r").String(), cache.KeepFlushed.String()},
		{"flushed", mark("f").String(), cache.KeepFlushed.String()},
	})
	synctest.Test(t, func(t *testing.T) {
		e := embedded(t, cache.EmbeddedConfig{})
		ctx, base := t.Context(), e.For("default")
		late := func(wait time.Duration) string {
			time.Sleep(wait)
			return ask(base.SetFenced(ctx, "k", "late", 0, 1))
		}
		s := cache.NewStaged(base)
		check(t, []step{
			{"set", ask(base.SetFenced(ctx, "k", "v", 0, 2)), "true"},
			{"flush", ask(s.Set(ctx, "k", "v", 0)) + ask(s.Flush(ctx, 2)), ""},
			{"a minute less", late(cache.Keep - time.Minute), "false"},
			{"two minutes later", late(2 * time.Minute), "true"},
		})
		e.Close()
	})
}

// What a lock in the same place does with a release, here without the lock.
func TestEffects(t *testing.T) {
	r, client, _ := onRedis(t)
	apply := map[string]func(effects any, held bool) string{
		"embedded": func(effects any, held bool) string { return fmt.Sprint(effects.(func(bool) int)(held)) },
		"redis": func(effects any, held bool) string {
			e := effects.(cache.RedisEffects)
			run := redis.NewScript(e.Script + "return effects(ARGV[1] == '1', 2, 2)")
			flag := map[bool]int{true: 1}[held]
			return fmt.Sprint(run.Run(t.Context(), client, append([]string{"first"}, e.Keys...), append([]any{flag}, e.Args...)...).Val())
		},
	}
	for name, base := range map[string]*cache.View{"embedded": embeddedView(t), "redis": r.For("default")} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), cache.NewStaged(base)
			stage := func() string {
				return strings.Join([]string{
					ask(s.Set(ctx, "k", "new", 0)), ask(s.Remove(ctx, "gone")), ask(s.HashSet(ctx, "h", "f", "new")),
					ask(s.Expire(ctx, "lasting", time.Hour)), ask(s.SetFenced(ctx, "fenced", "new", 0, 3))}, " ")
			}
			all := func() string {
				return strings.Join([]string{ask(base.Get(ctx, "k")), ask(base.Get(ctx, "gone")), ask(base.HashGetAll(ctx, "h")),
					ask(base.Get(ctx, "lasting")), ask(base.Get(ctx, "fenced"))}, ", ")
			}
			check(t, []step{
				{"before", ask(base.Set(ctx, "lasting", "old", 0)) + ask(base.Set(ctx, "gone", "old", 0)), ""},
				{"stage", stage(), " true  true true"},
				{"held", apply[name](s.Effects(3), true), "0"},
				{"is a flush", all(), "new true,  false, map[f:new], old true, new true"},
				{"held again", apply[name](s.Effects(3), true), "0"},
				{"is the same", all(), "new true,  false, map[f:new], old true, new true"},
				{"a fenced write leaves its token", ask(base.SetFenced(ctx, "fenced", "late", 0, 2)), "false"},
				{"a plain one none", ask(base.SetFenced(ctx, "k", "late", 0, 2)), "true"},
				{"not held", apply[name](s.Effects(3), false), "0"},
				{"removes", all(), " false,  false, map[],  false,  false"},
				{"another kind meanwhile", ask(base.Set(ctx, "h", "string", 0)), ""},
				{"one fails", apply[name](s.Effects(3), true), "1"},
				{"and costs its key alone", all(), "new true,  false, map[],  false, new true"},
				{"all waits on", fmt.Sprint(s.Empty()), "false"},
			})
		})
	}
}

// A server that does not know the script yet, or no more, is given its text.
func TestFlushAfterScriptsWereForgotten(t *testing.T) {
	server := testserver.NewRedis(t)
	r, client := connect(t, server.URL(), "p")
	ctx := context.Background()
	s := cache.NewStaged(r.For("default"))
	for round := range 2 {
		if err := client.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		check(t, []step{
			{"stage", ask(s.Set(ctx, "a", fmt.Sprint(round), 0)) + ask(s.Set(ctx, "b", fmt.Sprint(round), 0)), ""},
			{"flush", ask(s.Flush(ctx, 5)), ""},
			{"all is there", ask(s.Get(ctx, "a")) + ask(s.Get(ctx, "b")), fmt.Sprintf("%d true%d true", round, round)},
		})
	}
}
