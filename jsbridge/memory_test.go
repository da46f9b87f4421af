package jsbridge

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"apiengine/fault"
)

// TestMemoryEndsTheRunThatGrew: of several runs at once the one that grows is ended, and
// no other, wherever it allocates.
func TestMemoryEndsTheRunThatGrew(t *testing.T) {
	for name, code := range map[string]string{
		"objects":       `var a = []; for (;;) a.push({a: 1})`,
		"below natives": `function f(n) { return n ? [1].map(function () { return f(n - 1) }) : grow() } function grow() { var a = []; for (;;) a.push([1, 2]) } f(60)`,
		"caught":        `var a = []; for (;;) { try { for (;;) a.push({a: 1}) } catch (e) { } }`,
		"in a promise":  `await null; var a = []; for (;;) a.push([1])`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBridge(t, Config{Memory: 1 << 30, RunMemory: 24 << 20})
			cache := &memCache{strings: map[string]string{}}
			others := make(chan error)
			for range 3 {
				go func() {
					_, err := b.Run(context.Background(), compile(t, `while (!V8.Cache.Exists('stop')) { var a = []; for (var i = 0; i < 100; i++) a.push({i: i}); }`), patient(cache))
					others <- err
				}()
			}
			_, err := b.Run(context.Background(), compile(t, code), patient(cache))
			var limit *LimitError
			if !errors.As(err, &limit) || limit.K != fault.LimitMemory {
				t.Errorf("the growing run ended with %v", err)
			}
			_ = cache.Set(context.Background(), "stop", "1", 0)
			for range 3 {
				if err := <-others; err != nil {
					t.Errorf("another run: %v", err)
				}
			}
		})
	}
}

// patient is a run that may take a minute and call as often as it likes.
func patient(c Cache) *Env {
	e := env()
	e.Cache = c
	e.Limits.Deadline, e.Limits.MaxHostCalls = time.Now().Add(time.Minute), 1<<40
	return e
}

// TestMemoryGarbageIsNoGrowth: a run that makes much and keeps little goes on.
func TestMemoryGarbageIsNoGrowth(t *testing.T) {
	b := newBridge(t, Config{Memory: 1 << 30, RunMemory: 32 << 20})
	if got := result(t, b, patient(nil), `var n = 0; for (var i = 0; i < 200; i++) n += 'x'.repeat(1 << 19).length; return n`); got != "104857600" {
		t.Error(got)
	}
}

// TestMemoryBudget: runs that are each below their own share and together above the
// budget end one after the other until the rest fits; the heap comes back.
func TestMemoryBudget(t *testing.T) {
	b := newBridge(t, Config{Memory: 96 << 20, RunMemory: 80 << 20})
	cache := &memCache{strings: map[string]string{}}
	p := compile(t, `var a = []; for (var i = 0; i < 16; i++) a.push('x'.repeat(1 << 21) + i); while (!V8.Cache.Exists('stop')) a.length; return a.length`)
	ends := make(chan error)
	for range 5 {
		go func() {
			_, err := b.Run(context.Background(), p, patient(cache))
			ends <- err
		}()
	}
	for range 3 {
		if err := <-ends; fault.Of(err) != fault.LimitMemory {
			t.Fatalf("ended with %v", err)
		}
	}
	_ = cache.Set(context.Background(), "stop", "1", 0)
	for range 2 {
		if err := <-ends; err != nil && fault.Of(err) != fault.LimitMemory {
			t.Error(err)
		}
	}
	b.Close()
	runtime.GC()
	if heap := b.memory.heap(); heap > 64<<20 {
		t.Errorf("%d MiB stay", heap>>20)
	}
}

// TestMemoryOfOthers: what fills the heap is not the run's, and nothing is won by ending it.
func TestMemoryOfOthers(t *testing.T) {
	b := newBridge(t, Config{Memory: 512 << 20, RunMemory: 64 << 20})
	cache := &memCache{strings: map[string]string{}}
	ended := make(chan error)
	go func() {
		_, err := b.Run(context.Background(), compile(t, `while (!V8.Cache.Exists('stop')) { }`), patient(cache))
		ended <- err
	}()
	full := make([]byte, 600<<20) // above the budget, below the last resort; nobody touches it
	for deadline := time.Now().Add(20 * time.Second); b.memory.quiet.Load() < 600<<20; time.Sleep(memoryTick) {
		if time.Now().After(deadline) {
			t.Fatal("nobody has judged")
		}
	}
	runtime.KeepAlive(full)
	_ = cache.Set(context.Background(), "stop", "1", 0)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestMemorySleeps: without runs nothing looks at the heap, and the next run wakes the watch.
func TestMemorySleeps(t *testing.T) {
	b := newBridge(t, Config{Memory: 1 << 30, RunMemory: 32 << 20})
	for deadline := time.Now().Add(20 * time.Second); !b.memory.asleep.Load(); time.Sleep(memoryTick) {
		if time.Now().After(deadline) {
			t.Fatal("it never sleeps")
		}
	}
	if err := failure(t, b, patient(nil), `var a = []; for (;;) a.push({a: 1})`); fault.Of(err) != fault.LimitMemory {
		t.Error(err)
	}
}
