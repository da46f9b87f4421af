package jsbridge

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"

	"apiengine/fault"
)

// TestCounters: a name holds numbers when all that it is ever given are.
func TestCounters(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"var i = 0, j, s = '', n = list.length; for (let k = 0; k < 3; k++) i++; i += 2; j = -i; j *= x; s += i", "i j k"},
		{"var a = 1; a = f()", ""},
		{"var a = 1; a += 'x'", ""},
		{"var a = 1; a -= 'x'; a ||= 2", "a"},
		{"var a = 1; a ||= 'x'", ""},
		{"var a = b > 1 ? 2 : ~c, d = a ? 1 : 'x'", "a"},
		{"var a = 1 + 2, b = 1 + c, e = 2n * f, g = typeof a, h = void 0", "a e"},
		{"var a = 1; function f(a) { }", ""},
		{"var a = 1; function g({ b, c: [a] }, ...d) { var d = 1, b = 2 }", ""},
		{"var a = 1, b = 1, c = 1, d = 1; [a] = x; ({ b, e: c } = x); for (d of x);", ""},
		{"var a = 1, b = 1, c = 1; for (var a in x); for (const { b } of x); try { } catch (c) { }", ""},
		{"var a = 1, B = 1; function a() { } class B { }", ""},
		{"var a = 1; with (x) { a + a }", ""},
		{"var f = (a = 1) => a, b = function c() { }", ""},
	} {
		tree, err := goja.Parse("", c.code)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(counters(tree))), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.code, got, c.want)
		}
	}
}

// TestTextsGrowByLittle: whatever adds texts up refuses a right side of more than 16 Mi
// characters, and what is small by its form costs no guard.
func TestTextsGrowByLittle(t *testing.T) {
	b := newBridge(t, Config{Memory: 4 << 30, RunMemory: 1 << 30})
	for _, code := range []string{
		"var s = 'x'; for (;;) s += s", "var s = 'x'; for (;;) s = s + s", "var o = {s: 'x'}; for (;;) o.s += o.s", "var s = 'x'; for (;;) s = `${s}${s}`",
		"var s = 'x'; for (;;) s = `a${s}b${1}c${2}d${3}e${4}f${s}`", "var a = 'x', b = 'y'; for (;;) { a = a + b; b = b + a }",
		"var s = 'x'; for (;;) s += {toString() { return s }}", "var s = 'x'; for (;;) s = `${s}${{toString() { return s }}}`", "var s = 'x', f = () => s; for (;;) s += f()",
	} {
		e := env()
		e.Limits.Deadline = time.Now().Add(time.Minute)
		if err := failure(t, b, e, code); fault.Of(err) != fault.ScriptError || !strings.Contains(err.Error(), "more than 16777216 characters") {
			t.Errorf("%s: %v", code, err)
		}
	}
	for _, code := range []string{"var s = ''; s += 'x'; s = s + 1; s = 'a' + s + `b`; return `${s}!`", "var n = 0, s = ''; for (var i = 0; i < 9; i++) { n += i; s += i; s += i * 2 } return s + -n + (i ? 1 : 'x')"} {
		if compile(t, code).guarded {
			t.Errorf("guarded: %s", code)
		}
	}
}

// TestAbsentGlobals: what is said to be absent is, in a run and in what check knows.
func TestAbsentGlobals(t *testing.T) {
	b := newBridge(t, Config{})
	for name, hint := range absentGlobals {
		want := name + " is not defined: " + hint
		if err := failure(t, b, env(), "return "+name); !strings.Contains(fault.Public(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if got := KnownNames().Global(name, false); got != want {
			t.Errorf("check says %s, want %s", got, want)
		}
	}
	for _, name := range append(absentTimers, generators...) {
		code := name + "('1')"
		if err := failure(t, b, env(), code); !strings.Contains(fault.Public(err), "is not available") || !strings.Contains(KnownNames().Global(name, true), "is not available") {
			t.Errorf("%s: %v", code, err)
		}
	}
}
