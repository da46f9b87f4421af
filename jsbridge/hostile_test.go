package jsbridge

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"apiengine/fault"
)

// hostile is one script of testdata/hostile. Its first line names the ends that are right
// for it: Kinds, or "ok".
type hostile struct {
	name, code string
	expect     []string
}

func hostiles(t *testing.T) (out []hostile) {
	t.Helper()
	files, err := filepath.Glob("testdata/hostile/*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "\n")
		expect, ok := strings.CutPrefix(head, "// expect: ")
		if !ok {
			t.Fatalf("%s does not say what to expect", f)
		}
		out = append(out, hostile{strings.TrimSuffix(filepath.Base(f), ".js"), string(text), strings.Fields(expect)})
	}
	return out
}

// budget is the time that the script gets: little where running out of it is the right end,
// much where it is not: a deadline that comes early hides what would end the process.
func (h hostile) budget() time.Duration {
	switch {
	case h.expect[0] == "timeout":
		return 100 * time.Millisecond
	case !slices.Contains(h.expect, "timeout"):
		return 30 * time.Second
	}
	return 5 * time.Second
}

// hostileStack is the most that a goroutine's stack may grow to while the corpus runs: half
// of what Go allows, so that what comes near the end of the process is seen.
const hostileStack = 512 << 20

// run compiles and runs the script and returns how it ended.
func (h hostile) run(b *Bridge) (string, error) {
	p, err := Compile(Source{Name: h.name + ".js", Code: h.code})
	if err != nil {
		return string(fault.Of(err)), err
	}
	e := env()
	e.Cache = &memCache{}
	e.Param = jsonRaw(`{"x":[1,2,3]}`)
	e.Limits.Deadline = time.Now().Add(h.budget())
	e.Limits.MaxHostCalls = 10_000
	if _, err = b.Run(context.Background(), p, e); err != nil {
		return string(fault.Of(err)), err
	}
	return "ok", nil
}

// hostileGrace is the second that a run has to stop, on a machine with other work to do.
const hostileGrace = 4 * time.Second

// TestHostile: every script of the corpus ends as its first line says, soon after its
// deadline, and the next call is served.
func TestHostile(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(hostileStack))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20)) // as a server does: three quarters are for scripts
	before := runtime.NumGoroutine()
	b := newBridge(t, Config{Memory: 192 << 20, RunMemory: 64 << 20, StuckGrace: hostileGrace})
	next := compile(t, `return {Code: 1}`)
	for _, h := range hostiles(t) {
		t.Run(h.name, func(t *testing.T) {
			if raceEnabled {
				t.Skip("too much for the race detector; make hostile runs it")
			}
			start := time.Now()
			got, err := h.run(b)
			if !slices.Contains(h.expect, got) {
				t.Errorf("ended as %s, want one of %v: %.200v", got, h.expect, err)
			}
			if took := time.Since(start); took > h.budget()+hostileGrace {
				t.Errorf("took %v", took)
			}
			if b.Stuck() != 0 {
				t.Fatal("it did not stop")
			}
			if _, err := b.Run(context.Background(), next, env()); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
	b.Close()
	runtime.GC()
	if heap := b.memory.heap(); heap > 64<<20 {
		t.Errorf("%d MiB of heap stay", heap>>20)
	}
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) { // the clock of the pattern library ends by itself
			t.Fatalf("%d goroutines stay", runtime.NumGoroutine()-before)
		}
	}
}

func TestHostileIsWhole(t *testing.T) {
	families := map[string]int{}
	for _, h := range hostiles(t) {
		family, _, _ := strings.Cut(h.name, "_")
		families[family]++
	}
	for _, family := range strings.Fields("bigint code deep grow host levels loop native output reach regex size source stack") {
		if families[family] < 5 {
			t.Errorf("only %d scripts of the family %s", families[family], family)
		}
	}
}
