package jsbridge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"apiengine/fault"
)

// guardedScripts mean the same with every guard in them.
var guardedScripts = []struct{ code, want string }{
	{`return String([2n ** 10n, 3n * 4n, 1n << 70n, 256n >> 4n, 256n >> -1n, -7n / 2n, -7n % 2n, 5n - 7n])`, "1024,12,1180591620717411303424,16,512,-3,-1,-2"},
	{`return [2 ** 10, 3 * 4, 1 << 4, 256 >> 4, '6' * '7', null * 5, [3] * [4], -(2 ** 2), 2 ** -1]`, `[1024,12,16,16,42,0,12,-4,0.5]`},
	{`var a = 3n; a **= 4n; a *= 2n; a <<= 2n; a >>= 1n; return String(a)`, "324"},
	{`var o = {p: {q: 2n}}, k = 'q'; o.p.q **= 5n; o.p[k] **= 2n; return String(o.p.q)`, "1024"},
	{`class A { #x = 2n; up() { this.#x **= 3n; return String(this.#x) } } return new A().up()`, "8"},
	{`var o = {valueOf: function () { return 3n }}; return String([o * o, o ** 2n, 1n << o])`, "9,9,8"},
	{`var d = new Date(6); return [d * 2, d ** 2, d << 1]`, `[12,36,12]`},
	{`try { 2n * 3 } catch (e) { return e.name }`, "TypeError"},
	{`try { var x = 2n, y = 3; x ** y } catch (e) { return e.name }`, "TypeError"},
	{`try { 2n ** -1n } catch (e) { return e.name }`, "RangeError"},
	{`try { Symbol() * 2n } catch (e) { return e.name }`, "TypeError"},
	{`return [1n == 1, 1n == '1', 1n != '2', 2n > 1, '3' < 4n, 2n >= 2n, 1n === 1n, 'a' == 'a', null == undefined, NaN != NaN]`, `[true,true,true,true,true,true,true,true,true,true]`},
	{`return String([BigInt.asUintN(8, 257n), BigInt.asIntN(8, 255n), BigInt('0xff'), BigInt(' 12 '), BigInt(true)])`, "1,-1,255,12,1"},
	{`try { return BigInt64Array.of(1n, 2n) } catch (e) { return e.name }`, "TypeError"},
	{`var v = new DataView(new ArrayBuffer(8)); v.setBigInt64(0, {valueOf: function () { return -5n }}, {}); return [String(v.getBigInt64({valueOf: function () { return 0 }}, true)), String(v.getBigUint64(0))]`, `["-5","18158513697557839871"]`},
	{`var a = 5n, b = 3n; a *= b; a <<= 2n; a >>= 1n; var o = {x: 2n, y: [1n, 2n]}, i = 0; o.x *= a; o.y[1] <<= o.x; o.y[i++] *= b; o.y[--i] <<= b; return String([a, o.x, ...o.y])`, "30,60,24,2305843009213693952"},
	{`var l = [], o = n => ({valueOf() { l.push(n); return n }, toString() { return 'x' }}); var r = [o(1) < o(2), o(3) >= 3n, o(4) == 4n, 5n != o(5), o(6) == o(6), null == o(7), o(8) == undefined]; return [r, l.join('')]`, `[[true,true,true,false,false,false,false],"12345"]`},
	{`return [1n == {valueOf(){return 1}}, {valueOf(){return 2n}} < 3, null == 1n, undefined == {}, [1] == 1n, [2n] > 1n, 1n < 'x', Object(1n) == 1n, new Date(5) > 4n, true == 1n, String(new Date(5)) == new Date(5)]`, `[true,true,false,false,true,true,false,true,true,true,true]`},
	{`try { return 1n < {[Symbol.toPrimitive](h) { return {} }, valueOf: 5} } catch (e) { return e.name }`, "TypeError"},
	{`return [{[Symbol.toPrimitive](h) { return h }} == 'default', {[Symbol.toPrimitive]: null, toString() { return '7' }} == 7n]`, `[true,true]`},
	{`var big = 1n << 60000n; return String(big / big) + String(big * 3n).length`, "118063"},
	{`var log = []; function f(x) { log.push(x); return BigInt(x) } f(2) ** f(3); f(4) * f(5); f(6) < f(7); return log`, `[2,3,4,5,6,7]`},
	{`return Math.max(...[1, 5, 3]) + new Array(...[1, 2]).length + [...'ab', ...new Set([1])].length`, "10"},
	{`function f(a, ...r) { return r.length + arguments.length } return f(...[1, 2], 3, ...'xy')`, "9"},
	{`return {...{a: 1}, ...'xy', ...null, ...[7], b: 2}`, `{"0":7,"1":"y","a":1,"b":2}`},
	{`var {a, ...r} = {a: 1, b: 2, length: 3}; return [a, r]`, `[1,{"b":2,"length":3}]`},
	{`var {a = 5, ...r} = {b: 2}; var {x: {y, ...s}, ...t} = {x: {y: 1, z: 2}, w: 3}; return [a, r, y, s, t]`, `[5,{"b":2},1,{"z":2},{"w":3}]`},
	{`function f({a, ...r}, [b, {...c}] = [1, {d: 4}]) { return [a, r, b, c] } return f({a: 1, e: 2})`, `[1,{"e":2},1,{"d":4}]`},
	{`var a, r; ({a, ...r} = {a: 1, b: 2}); for (var {k, ...q} of [{k: 1, z: 2}]); return [a, r, k, q]`, `[1,{"b":2},1,{"z":2}]`},
	{`var f = ({a, ...r}) => r; return [f.length, f({a: 1, b: 2}), f(Object.create(null, {c: {value: 1, enumerable: true}})), f('xy'), f(7)]`, `[1,{"b":2},{"c":1},{"0":"x","1":"y"},{}]`},
	{`try { var {...r} = null } catch (e) { return e.name }`, "TypeError"},
	{"var a = 1, b = 'x'; return `${a}-${b}-${a}${b}:${a}${a}${b}${b} ${[1, 2]} ${a + 1}!`", "1-x-1x:11xx 1,2 2!"},
	{"var log = []; var o = n => ({toString() { log.push(n); return n }}); `${o('a')}${o('b')}${o('c')}${o('d')}${o('e')}${o('f')}`; return log.join('')", "abcdef"},
	{"function t(s, ...v) { return s.raw.join('|') + v.length } return t`a${1}b${2}c${3}d${4}e${5}f${6}g`", "a|b|c|d|e|f|g6"},
	{"return [arguments.length, typeof this, (function () { return arguments.length })(...[1, 2])]", `[1,"object",2]`},
	{`'use strict'; return [(function () { return this === undefined })(), Math.min(...[2, 1])]`, `[true,1]`},
	{`var a = 1, b = 'x', n = null, u, l = [1, 2], f = 1.5; return [a + b, b + a, a + a, a + f, b + n, a + n, a + u, b + u, l + l, b + l, a + true + b, (a ? b : l) + b]`, `["1x","x1",2,2.5,"xnull",1,null,"xundefined","1,21,2","x1,2","2x","xx"]`},
	{`var d = new Date(0), b = '', k = 5; return [(b + d) === String(d), (k + d) === '5' + d, typeof (d + d), d + d === String(d) + String(d)]`, `[true,true,"string",true]`},
	{`var o = {valueOf() { return 7 }, toString() { return 's' }}, b = 'x', k = 1; b += o; k += o; return [b, k, ` + "`${b}${o}`" + `, [] + o, o + o]`, `["x7",8,"x7s","7",14]`},
	{`var h = {[Symbol.toPrimitive](hint) { return hint }}, b = ''; return [b + h, ` + "`${b}${h}`" + `]`, `["default","string"]`},
	{`var l = [], o = n => ({valueOf() { l.push(n); return n }}), s = 0; s += o(1); s = s + o(2); s = o(3) + s; return [s, l]`, `[6,[1,2,3]]`},
	{`try { var b = '', y = Symbol('q'); return b + y } catch (e) { return e.name }`, "TypeError"},
	{"try { var b = '', y = Symbol('q'); return `${b}${y}` } catch (e) { return e.name }", "TypeError"},
	{`try { var b = '', y = {valueOf: null, toString() { return {} }}; return b + y } catch (e) { return e.name }`, "TypeError"},
	{`var a = 5n, b = 3n, s = ''; a += b; s += a; return s + b`, "83"},
	{`try { var a = 5n, b = 3; return a + b } catch (e) { return e.name }`, "TypeError"},
	{`var o = {n: 1, get g() { return this.n++ }}, k = 'n'; o[k] += o.g; o.n += o[k]; return o.n`, "4"},
	{`return await Promise.all([...[1, 2]].map(async x => x * 2))`, `[2,4]`},
}

func TestGuardedScriptsMeanTheSame(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range guardedScripts {
		if got := result(t, b, env(), c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
		p, err := compile(t, c.code).withBigInts()
		if err != nil {
			t.Fatalf("%s: %v", c.code, err)
		}
		rep, err := b.Run(context.Background(), p, env())
		if got := rep.Outcome.Text + string(rep.Outcome.Result); err != nil || got != c.want && got != `"`+c.want+`"` && !strings.HasSuffix(got, string(rep.Outcome.Result)) {
			t.Errorf("with every guard, %s: got %s %v, want %s", c.code, got, err, c.want)
		}
	}
}

// TestGuardsLeaveNoTrace: a script finds no guard, and errors keep the author's position.
func TestGuardsLeaveNoTrace(t *testing.T) {
	b := newBridge(t, Config{})
	if got := result(t, b, env(), `var f = function (...a) { return {...a} }; return [f.toString(), typeof ga, Object.keys(globalThis).length, f.length]`); got != `["function (...a) { return {...a} }","undefined",0,0]` {
		t.Error(got)
	}
	err := failure(t, b, env(), "var a = 2n;\nreturn a *\n  (1n << 99999999n);")
	var script *ScriptError
	if !errors.As(err, &script) || script.Line != 3 || !strings.Contains(script.Msg, "RangeError") {
		t.Errorf("%v", err)
	}
}

// TestHiddenBigInts: a script that hides the name gets no BigInt, nor does a library bring
// one to a script that was not compiled for it.
func TestHiddenBigInts(t *testing.T) {
	b := newBridge(t, Config{})
	lib := compile(t, `return {power: (a, b) => a ** b, one: 1n}`)
	plain := compile(t, `return {power: (a, b) => a ** b}`)
	for _, c := range []struct {
		lib  *Program
		code string
		want string
	}{
		{lib, `var B = globalThis['Big' + 'Int']; try { B(1) } catch (e) { return e.name }`, "TypeError"},
		{lib, `try { return V8['Us' + 'e']('x') && 'came' } catch (e) { return e.name }`, "TypeError"},
		{lib, `try { return String(V8.Use('x').power(3n, 99999n)) } catch (e) { return e.name }`, "RangeError"},
		{plain, `try { return String(V8.Use('x').power(3n, 99999n)) } catch (e) { return e.name }`, "RangeError"},
		{plain, `return V8.Use('x').power(3, 2)`, "9"},
		{plain, `return V8['Us' + 'e']('x').power(3, 2)`, "9"},
	} {
		e := env()
		e.Library = func(context.Context, string) (*Program, error) { return c.lib, nil }
		if got := result(t, b, e, c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

func TestPowerTarget(t *testing.T) {
	_, err := Compile(Source{Name: "x.js", Code: "var a = [2n], i = 0;\na[i++] **= 2n; return 1"})
	if fault.Of(err) != fault.ScriptSyntax {
		t.Errorf("%v", err)
	}
	if _, err := Compile(Source{Name: "x.js", Code: "var a = [2], i = 0; a[i++] **= 2; return 1"}); err != nil {
		t.Errorf("without BigInts: %v", err)
	}
}

// FuzzCompile: no source ends the process or takes long, and every refusal is a
// *SyntaxError inside the source.
func FuzzCompile(f *testing.F) {
	for _, c := range guardedScripts {
		f.Add(c.code, false)
	}
	for _, code := range []string{"return /[/]\\//g.test(`${'`'}`)", "if (a) /x/.test(b)\nelse c / d / e", "a\n/b/g", "x = {} / 1", "/* */ // \n <!-- x", "`${`${`${1}`}`}`", "return 'é\\u2028' + /(?<a>x)\\k<a>/u", "})(function(){", "label: for (;;) { continue label }", "async () => { for await (x of y); }", "interface A { b: string } return 1 as A"} {
		f.Add(code, true)
	}
	f.Fuzz(func(t *testing.T, code string, ts bool) {
		src := Source{Name: "f.js", Code: code}
		if ts {
			src.Language = "ts"
		}
		start := time.Now()
		_, err := Compile(src)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		var syntax *SyntaxError
		if err != nil && !errors.As(err, &syntax) {
			t.Fatalf("%T %v", err, err)
		}
		if err != nil && syntax.Line > strings.Count(code, "\n")+1 {
			t.Errorf("line %d of %d", syntax.Line, strings.Count(code, "\n")+1)
		}
	})
}
