package cache_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"apiengine/cache"
	"apiengine/fault"
)

// subject is one run's cache; flush makes what it staged real.
type subject struct {
	cache.Cache
	flush func(testing.TB)
}

// contract runs the suite. fresh makes an empty place and returns what gives each run its
// cache there.
func contract(t *testing.T, fresh func(testing.TB) (run func() subject)) {
	for name, test := range map[string]func(*testing.T, func() subject){
		"strings":                           stringsAreKept,
		"hashes":                            hashesAreKept,
		"numbers":                           numbers,
		"one kind is not the other":         wrongKind,
		"entries end with their ttl":        entriesEnd,
		"what keeps a ttl and what doesn't": ttlRules,
		"bad arguments":                     badArguments,
		"odd keys and values":               oddKeys,
		"keys of the original platform":     fullKeys,
		"races":                             races,
		"fenced writes":                     fencedWrites,
		"fenced writes race":                fencedRace,
		"a context that has ended":          endedContext,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

// ask turns an operation's answer into text, the error's Kind included.
func ask(answer ...any) string {
	if err, ok := answer[len(answer)-1].(error); ok {
		return string(fault.Of(err))
	}
	return strings.TrimSuffix(fmt.Sprintln(answer[:len(answer)-1]...), "\n")
}

type step struct{ what, got, want string }

func check(t *testing.T, steps []step) {
	t.Helper()
	for i, s := range steps {
		if s.got != s.want {
			t.Errorf("step %d, %s: got %q, want %q", i+1, s.what, s.got, s.want)
		}
	}
}

func stringsAreKept(t *testing.T, run func() subject) {
	c, ctx := run(), t.Context()
	check(t, []step{
		{"get nothing", ask(c.Get(ctx, "k")), " false"},
		{"remove nothing", ask(c.Remove(ctx, "k")), "false"},
		{"expire nothing", ask(c.Expire(ctx, "k", time.Hour)), "false"},
		{"take nothing", ask(c.GetAndRemove(ctx, "k")), " false"},
		{"compare nothing with nothing", ask(c.CompareAndSet(ctx, "k", "", "v", 0)), "false"},
		{"set", ask(c.Set(ctx, "k", "a", 0)), ""},
		{"get", ask(c.Get(ctx, "k")), "a true"},
		{"exists", ask(c.Exists(ctx, "k")), "true"},
		{"set again", ask(c.Set(ctx, "k", "", 0)), ""},
		{"an empty string is a value", ask(c.Get(ctx, "k")), " true"},
		{"compare wrongly", ask(c.CompareAndSet(ctx, "k", "x", "b", 0)), "false"},
		{"compare rightly", ask(c.CompareAndSet(ctx, "k", "", "b", 0)), "true"},
		{"it is set", ask(c.Get(ctx, "k")), "b true"},
		{"set if missing, but it isn't", ask(c.SetIfNotExists(ctx, "k", "c", 0)), "false"},
		{"remove", ask(c.Remove(ctx, "k")), "true"},
		{"it is gone", ask(c.Get(ctx, "k")), " false"},
		{"exists no more", ask(c.Exists(ctx, "k")), "false"},
		{"set if missing", ask(c.SetIfNotExists(ctx, "k", "c", 0)), "true"},
		{"take", ask(c.GetAndRemove(ctx, "k")), "c true"},
		{"it is gone", ask(c.Get(ctx, "k")), " false"},
	})
}

func hashesAreKept(t *testing.T, run func() subject) {
	c, ctx := run(), t.Context()
	check(t, []step{
		{"all of nothing", ask(c.HashGetAll(ctx, "h")), "map[]"},
		{"a field of nothing", ask(c.HashGet(ctx, "h", "f")), " false"},
		{"delete from nothing", ask(c.HashDelete(ctx, "h", "f")), "false"},
		{"that made no hash", ask(c.Exists(ctx, "h")), "false"},
		{"set", ask(c.HashSet(ctx, "h", "f", "1")), ""},
		{"set another", ask(c.HashSet(ctx, "h", "g", "")), ""},
		{"set again", ask(c.HashSet(ctx, "h", "f", "2")), ""},
		{"get", ask(c.HashGet(ctx, "h", "f")), "2 true"},
		{"all", ask(c.HashGetAll(ctx, "h")), "map[f:2 g:]"},
		{"count", ask(c.HashIncrement(ctx, "h", "f", -5)), "-3"},
		{"count a new one", ask(c.HashIncrement(ctx, "h", "n", 7)), "7"},
		{"count what is no number", ask(c.HashIncrement(ctx, "h", "g", 1)), "script_error"},
		{"delete", ask(c.HashDelete(ctx, "h", "f")), "true"},
		{"delete again", ask(c.HashDelete(ctx, "h", "f")), "false"},
		{"the rest", ask(c.HashGetAll(ctx, "h")), "map[g: n:7]"},
		{"delete", ask(c.HashDelete(ctx, "h", "g")), "true"},
		{"delete the last", ask(c.HashDelete(ctx, "h", "n")), "true"},
		{"an empty hash is gone", ask(c.Exists(ctx, "h")), "false"},
		{"and can become a string", ask(c.SetIfNotExists(ctx, "h", "s", 0)), "true"},
		{"remove it", ask(c.Remove(ctx, "h")), "true"},
		{"a hash again", ask(c.HashSet(ctx, "h", "f", "3")), ""},
		{"without the old fields", ask(c.HashGetAll(ctx, "h")), "map[f:3]"},
		{"remove a hash", ask(c.Remove(ctx, "h")), "true"},
		{"it is gone", ask(c.HashGetAll(ctx, "h")), "map[]"},
		{"a failed count of a new field makes no hash", ask(c.HashIncrement(ctx, "h", "x", 0)), "0"},
	})
	got, err := c.HashGetAll(ctx, "h")
	if err != nil {
		t.Fatal(err)
	}
	got["intruder"] = "x"
	if again := ask(c.HashGetAll(ctx, "h")); again != "map[x:0]" {
		t.Errorf("a caller's change of the answer reached the cache: %s", again)
	}
}

func numbers(t *testing.T, run func() subject) {
	c, ctx := run(), t.Context()
	check(t, []step{
		{"from nothing", ask(c.Increment(ctx, "n", 2, 0)), "2"},
		{"down", ask(c.Increment(ctx, "n", -5, 0)), "-3"},
		{"by nothing", ask(c.Increment(ctx, "n", 0, 0)), "-3"},
		{"it is a string", ask(c.Get(ctx, "n")), "-3 true"},
		{"set to the largest", ask(c.Set(ctx, "n", fmt.Sprint(math.MaxInt64-1), 0)), ""},
		{"the largest", ask(c.Increment(ctx, "n", 1, time.Hour)), fmt.Sprint(math.MaxInt64)},
		{"beyond", ask(c.Increment(ctx, "n", 1, 0)), "script_error"},
		{"is unchanged", ask(c.Get(ctx, "n")), fmt.Sprint(math.MaxInt64) + " true"},
		{"the smallest", ask(c.Increment(ctx, "m", math.MinInt64, time.Hour)), fmt.Sprint(math.MinInt64)},
		{"beyond", ask(c.Increment(ctx, "m", -1, time.Hour)), "script_error"},
	})
	for _, text := range []string{"", "x", "1.0", "01", "+1", " 1", "1 ", "-0", "1e3", "9223372036854775808"} {
		check(t, []step{
			{"set", ask(c.Set(ctx, "t", text, 0)), ""},
			{"count " + text, ask(c.Increment(ctx, "t", 1, 0)), "script_error"},
			{"count with a ttl " + text, ask(c.Increment(ctx, "t", 1, time.Hour)), "script_error"},
			{"is unchanged", ask(c.Get(ctx, "t")), text + " true"},
		})
	}
}

func wrongKind(t *testing.T, run func() subject) {
	c, ctx := run(), t.Context()
	check(t, []step{
		{"a string", ask(c.Set(ctx, "s", "1", 0)), ""},
		{"a hash", ask(c.HashSet(ctx, "h", "f", "1")), ""},
		{"HashSet", ask(c.HashSet(ctx, "s", "f", "1")), "script_error"},
		{"HashGet", ask(c.HashGet(ctx, "s", "f")), "script_error"},
		{"HashGetAll", ask(c.HashGetAll(ctx, "s")), "script_error"},
		{"HashDelete", ask(c.HashDelete(ctx, "s", "f")), "script_error"},
		{"HashIncrement", ask(c.HashIncrement(ctx, "s", "f", 1)), "script_error"},
		{"Get", ask(c.Get(ctx, "h")), "script_error"},
		{"Increment", ask(c.Increment(ctx, "h", 1, 0)), "script_error"},
		{"Increment with a ttl", ask(c.Increment(ctx, "h", 1, time.Hour)), "script_error"},
		{"CompareAndSet", ask(c.CompareAndSet(ctx, "h", "1", "2", 0)), "script_error"},
		{"GetAndRemove", ask(c.GetAndRemove(ctx, "h")), "script_error"},
		{"SetIfNotExists", ask(c.SetIfNotExists(ctx, "h", "1", 0)), "false"},
		{"both are unchanged", ask(c.Get(ctx, "s")) + ask(c.HashGetAll(ctx, "h")), "1 truemap[f:1]"},
		{"Set replaces a hash", ask(c.Set(ctx, "h", "v", 0)), ""},
		{"by a string", ask(c.Get(ctx, "h")), "v true"},
	})
}

// ends waits until key is gone and reports how long that took.
func ends(t *testing.T, c cache.Cache, key string) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		exists, err := c.Exists(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if !exists {
			return time.Since(start)
		}
		if time.Since(start) > 10*time.Second {
			t.Fatalf("%s does not end", key)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

const soon = 150 * time.Millisecond

func entriesEnd(t *testing.T, run func() subject) {
	c, ctx := run(), t.Context()
	check(t, []step{
		{"Set", ask(c.Set(ctx, "set", "v", soon)), ""},
		{"SetIfNotExists", ask(c.SetIfNotExists(ctx, "nx", "v", soon)), "true"},
		{"Increment", ask(c.Increment(ctx, "inc", 1, soon)), "1"},
		{"CompareAndSet", ask(c.Set(ctx, "cas", "a", 0)) + ask(c.CompareAndSet(ctx, "cas", "a", "b", soon)), "true"},
		{"Expire", ask(c.Set(ctx, "exp", "v", 0)) + ask(c.Expire(ctx, "exp", soon)), "true"},
		{"Expire of a hash", ask(c.HashSet(ctx, "hash", "f", "v")) + ask(c.Expire(ctx, "hash", soon)), "true"},
	})
	c.flush(t)
	for _, key := range []string{"set", "nx", "inc", "cas", "exp", "hash"} {
		ends(t, c, key)
	}
	check(t, []step{
		{"an ended key is a new one", ask(c.SetIfNotExists(ctx, "nx", "w", 0)), "true"},
		{"its number begins again", ask(c.Increment(ctx, "inc", 1, 0)), "1"},
		{"its fields are gone", ask(c.HashGetAll(ctx, "hash")), "map[]"},
	})
}

func ttlRules(t *testing.T, run func() subject) {
	c, ctx := run(), t.Context()
	const second = 700 * time.Millisecond
	for _, key := range []string{"inc", "hash", "set", "cas", "persist"} {
		if key == "hash" {
			check(t, []step{{"hash", ask(c.HashSet(ctx, key, "f", "1")), ""}})
		} else {
			check(t, []step{{"set", ask(c.Set(ctx, key, "1", 0)), ""}})
		}
		check(t, []step{{"expire", ask(c.Expire(ctx, key, second)), "true"}})
	}
	check(t, []step{{"short", ask(c.Set(ctx, "tiny", "v", time.Microsecond)), ""}})
	c.flush(t)
	start := time.Now()
	check(t, []step{
		{"Increment keeps the ttl", ask(c.Increment(ctx, "inc", 1, time.Hour)), "2"},
		{"HashSet keeps it", ask(c.HashSet(ctx, "hash", "g", "2")), ""},
		{"HashIncrement keeps it", ask(c.HashIncrement(ctx, "hash", "f", 1)), "2"},
		{"Set removes it", ask(c.Set(ctx, "set", "2", 0)), ""},
		{"CompareAndSet removes it", ask(c.CompareAndSet(ctx, "cas", "1", "2", 0)), "true"},
		{"Expire with 0 removes it", ask(c.Expire(ctx, "persist", 0)), "true"},
		{"and again", ask(c.Expire(ctx, "persist", 0)), "true"},
		{"a ttl of 300 years is for ever", ask(c.Set(ctx, "long", "v", math.MaxInt64)), ""},
	})
	c.flush(t)
	ends(t, c, "tiny")
	for _, key := range []string{"inc", "hash"} {
		ends(t, c, key)
		if d := time.Since(start); d < second-100*time.Millisecond {
			t.Errorf("%s ended after %v, its ttl was %v", key, d, second)
		}
	}
	for _, key := range []string{"set", "cas", "persist", "long"} {
		check(t, []step{{key + " stays", ask(c.Exists(ctx, key)), "true"}})
	}
}

func badArguments(t *testing.T, run func() subject) {
	c, ctx := run(), t.Context()
	for name, key := range map[string]string{
		"empty": "", "long": strings.Repeat("k", cache.MaxKey+1), "a megabyte": strings.Repeat("k", 1<<20),
		"not UTF-8": "a\xff", "another tenant's": "Microi:other:k", "an empty full key": "Microi:default:",
		"another tenant's empty one": "Microi::k",
	} {
		for op, got := range map[string]string{
			"Get": ask(c.Get(ctx, key)), "Set": ask(c.Set(ctx, key, "v", 0)), "Remove": ask(c.Remove(ctx, key)),
			"Exists": ask(c.Exists(ctx, key)), "Expire": ask(c.Expire(ctx, key, 1)),
			"SetIfNotExists": ask(c.SetIfNotExists(ctx, key, "v", 0)), "Increment": ask(c.Increment(ctx, key, 1, 0)),
			"GetAndRemove": ask(c.GetAndRemove(ctx, key)), "CompareAndSet": ask(c.CompareAndSet(ctx, key, "a", "b", 0)),
			"HashSet": ask(c.HashSet(ctx, key, "f", "v")), "HashGet": ask(c.HashGet(ctx, key, "f")),
			"HashGetAll": ask(c.HashGetAll(ctx, key)), "HashDelete": ask(c.HashDelete(ctx, key, "f")),
			"HashIncrement": ask(c.HashIncrement(ctx, key, "f", 1)),
		} {
			if got != string(fault.ScriptError) {
				t.Errorf("%s with a key that is %s: %q", op, name, got)
			}
		}
	}
	big := strings.Repeat("v", cache.MaxValue+1)
	for name, got := range map[string]string{
		"a large value":      ask(c.Set(ctx, "k", big, 0)),
		"a large NX value":   ask(c.SetIfNotExists(ctx, "k", big, 0)),
		"a large CAS value":  ask(c.CompareAndSet(ctx, "k", "a", big, 0)),
		"a large hash value": ask(c.HashSet(ctx, "k", "f", big)),
		"an empty field":     ask(c.HashSet(ctx, "k", "", "v")),
		"a long field":       ask(c.HashGet(ctx, "k", strings.Repeat("f", cache.MaxKey+1))),
		"a negative ttl":     ask(c.Set(ctx, "k", "v", -1)),
		"a negative expire":  ask(c.Expire(ctx, "k", -time.Hour)),
		"a negative NX ttl":  ask(c.SetIfNotExists(ctx, "k", "v", -1)),
		"a negative inc ttl": ask(c.Increment(ctx, "k", 1, -1)),
	} {
		if got != string(fault.ScriptError) {
			t.Errorf("%s: %q", name, got)
		}
	}
	check(t, []step{{"nothing was stored", ask(c.Exists(ctx, "k")), "false"}})
}

func oddKeys(t *testing.T, run func() subject) {
	c, ctx := run(), t.Context()
	odd := []string{"a{b}c", "a%7Bb%7Dc", "{", "%", "%25", "a\x00b", "a\nb", "a b", "产品:1", "a:b", ":", "*", "\x7f", "\U0001F600",
		"Microi", "Microi:", "Microi:k", "microi:other:k", strings.Repeat("k", cache.MaxKey)}
	values := []string{"", "\x00", "a\r\nb", "\xff", "产品", strings.Repeat("v", 1<<20)}
	for i, key := range odd {
		check(t, []step{{key, ask(c.Set(ctx, key, fmt.Sprint(i, values[i%len(values)]), 0)), ""}})
	}
	for i, key := range odd {
		check(t, []step{{key, ask(c.Get(ctx, key)), fmt.Sprint(i, values[i%len(values)]) + " true"}})
		check(t, []step{{"field " + key, ask(c.HashSet(ctx, "hash", key, values[i%len(values)])), ""}})
	}
	all, err := c.HashGetAll(ctx, "hash")
	if err != nil || len(all) != len(odd) {
		t.Errorf("%d fields (%v), want %d", len(all), err, len(odd))
	}
}

func fullKeys(t *testing.T, run func() subject) {
	c, ctx := run(), t.Context()
	check(t, []step{
		{"set in full", ask(c.Set(ctx, "Microi:default:product:1", "v", 0)), ""},
		{"get the short form", ask(c.Get(ctx, "product:1")), "v true"},
		{"another spelling of the tenant", ask(c.Get(ctx, "Microi:Default:product:1")), "v true"},
		{"the short form again", ask(c.Set(ctx, "product:1", "w", 0)), ""},
		{"get in full", ask(c.Get(ctx, "Microi:default:product:1")), "w true"},
	})
}

func races(t *testing.T, run func() subject) {
	const workers, each = 8, 25
	var first, took, swapped atomic.Int32
	seen := make([]map[string]bool, workers)
	ctx := t.Context()
	check(t, []step{{"something to take", ask(run().SetIfNotExists(ctx, "take", "v", 0)), "true"}})
	var wg sync.WaitGroup
	for w := range workers {
		seen[w] = map[string]bool{}
		wg.Go(func() {
			c := run()
			count := func(n *atomic.Int32, ok bool, err error) {
				if err != nil {
					t.Error(err)
				} else if ok {
					n.Add(1)
				}
			}
			ok, err := c.SetIfNotExists(ctx, "once", fmt.Sprint(w), 0)
			count(&first, ok, err)
			_, ok, err = c.GetAndRemove(ctx, "take")
			count(&took, ok, err)
			for range each {
				seen[w][ask(c.Increment(ctx, "n", 1, time.Hour))] = true
				seen[w][ask(c.HashIncrement(ctx, "h", "f", 1))] = true
				if _, err := c.SetIfNotExists(ctx, "cas", "0", 0); err != nil {
					t.Error(err)
				}
				old, _, err := c.Get(ctx, "cas")
				if err != nil {
					t.Error(err)
				}
				ok, err := c.CompareAndSet(ctx, "cas", old, old+"+", 0)
				count(&swapped, ok, err)
			}
		})
	}
	wg.Wait()
	all := map[string]bool{}
	for _, m := range seen {
		maps.Copy(all, m)
	}
	if first.Load() != 1 || took.Load() != 1 || len(all) != workers*each {
		t.Errorf("%d first, %d took, %d different counts of %d", first.Load(), took.Load(), len(all), workers*each)
	}
	c := run()
	check(t, []step{
		{"count", ask(c.Get(ctx, "n")), fmt.Sprint(workers*each) + " true"},
		{"hash count", ask(c.HashGet(ctx, "h", "f")), fmt.Sprint(workers*each) + " true"},
		{"swaps", ask(c.Get(ctx, "cas")), "0" + strings.Repeat("+", int(swapped.Load())) + " true"},
	})
}

func endedContext(t *testing.T, run func() subject) {
	c := run()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check(t, []step{
		{"Get", ask(c.Get(ctx, "k")), "canceled"},
		{"Increment", ask(c.Increment(ctx, "k", 1, 0)), "canceled"},
		{"HashGetAll", ask(c.HashGetAll(ctx, "k")), "canceled"},
		{"nothing happened", ask(c.Exists(t.Context(), "k")), "false"},
	})
}
