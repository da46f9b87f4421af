package jsbridge

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja"
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
