package jsbridge

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
)

// oneMachine is a bridge that must use the same runtime for every run.
func oneMachine(t *testing.T) *Bridge {
	return newBridge(t, Config{MaxIdle: 1})
}

// TestNothingLeaks: each script leaves something behind in every way there is; the next
// run in the same runtime must not find it.
func TestNothingLeaks(t *testing.T) {
	for _, c := range []struct{ name, leave, look string }{
		{"global property", `globalThis.leak = 1; this.leak = 1`, `return typeof leak`},
		{"implicit global", `leak = 1; return leak`, `return typeof leak`},
		{"var and function", `var leak = 1; function leaked(){}`, `return typeof leak + typeof leaked`},
		{"global this in a function", `(function(){ this.leak = 1 })()`, `return typeof leak`},
		{"defineProperty on the global", `Object.defineProperty(globalThis, 'leak', {value:1})`, `return typeof leak`},
		{"object prototype", `Object.prototype.leak = 1`, `return typeof ({}).leak`},
		{"object prototype by literal", `({}).__proto__.leak = 1`, `return typeof ({}).leak`},
		{"object prototype method", `Object.prototype.toString = function(){ return 'leak' }`, `return String({})`},
		{"functions behind accessors", `({}).toString.leak = 1; [].constructor.leak = 1; Error.prototype.toString.leak = 1; (function(){}).call.leak = 1; Promise.resolve(1).then.leak = 1`, `return [typeof ({}).toString.leak, typeof [].constructor.leak, typeof Error.prototype.toString.leak, typeof (function(){}).call.leak, typeof Promise.resolve(1).then.leak]`},
		{"array prototype", `Array.prototype.push = function(){ return 'leak' }; [].__proto__.leak = 1`, `return [typeof [].leak, [].push(1)]`},
		{"array index on the prototype", `Array.prototype[0] = 'leak'`, `return typeof [][0]`},
		{"function prototype", `Function.prototype.call = function(){ return 'leak' }; (function(){}).__proto__.leak = 1`, `return [typeof (function(){}).leak, (function(){ return 1 }).call()]`},
		{"constructor chain", `({}).constructor.leak = 1; ''.constructor.leak = 1; (async()=>{}).constructor.leak = 1`, `return [typeof Object.leak, typeof String.leak, typeof (async()=>{}).constructor.leak]`},
		{"prototype of prototype", `try { Object.setPrototypeOf(Array.prototype, {leak: 1}) } catch (e) {} try { Object.setPrototypeOf(globalThis, {leak: 1}) } catch (e) {}`, `return [typeof [].leak, typeof leak]`},
		{"built-in function", `JSON.stringify = function(){ return 'leak' }; JSON.parse.leak = 1; Math.max.leak = 1`, `return [JSON.stringify(1), typeof JSON.parse.leak, typeof Math.max.leak]`},
		{"built-in constructor", `Date = 1; Map.leak = 1; Promise.resolve = function(){ return 'leak' }`, `return [typeof Date, typeof Map.leak, typeof Promise.resolve(1)]`},
		{"delete a built-in", `delete globalThis.JSON; delete Array.prototype.map; delete Object.prototype.toString`, `return [typeof JSON, typeof [].map, typeof ({}).toString]`},
		{"error prototype", `Error.prototype.leak = 1; TypeError.prototype.message = 'leak'; Error.stackTraceLimit = 1`, `return [typeof new Error('').leak, new TypeError().message, typeof Error.stackTraceLimit]`},
		{"iterator prototypes", `Object.getPrototypeOf([][Symbol.iterator]()).next = function(){ return {done: true} }; Object.getPrototypeOf(new Map().entries()).leak = 1; Object.getPrototypeOf('a'.matchAll(/a/g)).leak = 1`, `return [[...[1,2]].length, typeof new Map().entries().leak, typeof 'a'.matchAll(/a/g).leak]`},
		{"generator prototypes", `var g = (function*(){})(); Object.getPrototypeOf(Object.getPrototypeOf(g)).leak = 1; Object.getPrototypeOf(function*(){}).leak = 1`, `return [typeof (function*(){})().leak, typeof (function*(){}).leak]`},
		{"typed array prototype", `Object.getPrototypeOf(Uint8Array.prototype).leak = 1; Object.getPrototypeOf(Uint8Array).leak = 1`, `return [typeof new Uint8Array(1).leak, typeof Uint8Array.leak]`},
		{"well-known symbols", `Array.prototype[Symbol.iterator] = 1; Object.prototype[Symbol.toPrimitive] = function(){ return 'leak' }; RegExp.prototype[Symbol.replace] = null`, `return [[...[1]].length, '' + {}, 'a'.replace(/a/, 'b')]`},
		{"registered symbols", `Symbol.for('leak').constructor.leak = 1; Object.getPrototypeOf(Symbol.for('leak')).leak = 1`, `return [typeof Symbol.for('leak').leak, typeof Symbol.leak]`},
		{"pattern state", `var r = /a/g; r.test('aaa'); r.leak = 1; /b/g.lastIndex = 5`, `var r = /a/g; return [r.lastIndex, typeof r.leak, typeof RegExp.$1]`},
		{"tagged template", `function tag(s){ try { s.leak = 1 } catch (e) {} try { s.raw.leak = 1 } catch (e) {} return s } tag` + "`x`", `function tag(s){ return s } var s = tag` + "`x`" + `; return [typeof s.leak, typeof s.raw.leak]`},
		{"pending promise", `new Promise(function(ok){ globalThis.ok = ok }).then(function(){ V8.Cache.Set('leak', '1') }); (async function(){ await new Promise(function(){}); V8.Cache.Set('leak', '1') })()`, `return V8.Cache.Get('leak')`},
		{"suspended generator", `function* g(){ try { yield 1 } finally { V8.Cache.Set('leak', '1') } } g().next()`, `return V8.Cache.Get('leak')`},
		{"getter on a result", `return {get a(){ globalThis.leak = V8; Object.prototype.leak = V8; return 1 }}`, `return [typeof leak, typeof ({}).leak]`},
		{"V8 itself", `V8.leak = 1; V8.Result = 'leak'; V8.Param.leak = 1`, `return [Object.keys(V8), V8.Result === undefined, typeof V8.Param.leak]`},
		{"V8 prototype", `Object.getPrototypeOf(V8).leak = 1; Object.getPrototypeOf(Object.getPrototypeOf(V8)).leak = 1; try { Object.setPrototypeOf(Object.getPrototypeOf(V8), null) } catch (e) {}`, `return ['leak' in V8, typeof V8.Cache]`},
		{"V8 namespaces", `V8.Cache.Get = function(){ return 'leak' }; V8.Cache.leak = 1; V8.Cache.Get.leak = 1; V8.Db.leak = 1; V8.Db.FromSql.leak = 1; V8.Response.leak = 1; V8.Dbs.leak = 1`, `return [V8.Cache.Get('x'), 'leak' in V8.Cache, typeof V8.Cache.Get.leak, 'leak' in V8.Db, typeof V8.Db.FromSql.leak, 'leak' in V8.Response, 'leak' in V8.Dbs]`},
		{"V8 namespaces defined", `try { Object.defineProperty(V8.Cache, 'Get', {value: 1}) } catch (e) {}`, `return typeof V8.Cache.Get`},
		{"console and added globals", `console.log = 1; console.leak = 1; DateNow.leak = 1; System.Convert.leak = 1; URL.prototype.leak = 1; structuredClone.leak = 1; crypto.leak = 1`, `return [typeof console.log, typeof console.leak, typeof DateNow.leak, 'leak' in System.Convert, typeof new URL('http://a/').leak, typeof structuredClone.leak, typeof crypto.leak]`},
		{"global accessors' functions", `var d = Object.getOwnPropertyDescriptor(Object.prototype, 'toString'); d.get.leak = 1; d.set.leak = 1`, `var d = Object.getOwnPropertyDescriptor(Object.prototype, 'toString'); return [typeof d.get.leak, typeof d.set.leak]`},
		{"override accessor on the prototype", `try { Object.prototype.valueOf = 1 } catch (e) {} Reflect.set(Object.prototype, 'constructor', 1, Object.prototype)`, `return [typeof ({}).valueOf, typeof ({}).constructor]`},
		{"thrown value", `try { V8.Cache.Get() } catch (e) { e.__proto__.leak = 1; e.constructor.leak = 1; throw e }`, `try { V8.Cache.Get() } catch (e) { return [typeof e.leak, typeof e.constructor.leak] }`},
		{"arguments and callee", `arguments.callee.leak = 1; arguments.leak = 1`, `return [typeof arguments.callee.leak, arguments.length <= 1]`},
		{"stack overflow", `function f(){ f() } f()`, `return 'undefined'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			// what the look finds in a runtime that was never used
			fresh := env()
			fresh.Cache = &memCache{}
			want := result(t, newBridge(t, Config{}), fresh, c.look)
			if strings.Contains(want, "leak") {
				t.Fatalf("the look itself says %s", want)
			}
			b := oneMachine(t)
			for range 2 {
				first := env()
				first.Cache = &memCache{}
				_, _ = b.Run(context.Background(), compile(t, c.leave), first)
				second := env()
				second.Cache = &memCache{}
				if got := result(t, b, second, c.look); got != want {
					t.Errorf("found %s, want %s", got, want)
				}
			}
		})
	}
}

// TestServicesFollowTheRun: objects of one run that another could somehow hold reach only
// what the running run was given.
func TestServicesFollowTheRun(t *testing.T) {
	b := oneMachine(t)
	first, second := env(), env()
	first.Cache = &memCache{strings: map[string]string{"k": "first"}}
	second.Cache = &memCache{strings: map[string]string{"k": "second"}}
	for range 3 {
		if got := result(t, b, first, `return V8.Cache.Get('k')`); got != "first" {
			t.Errorf("first run reads %s", got)
		}
		if got := result(t, b, second, `return V8.Cache.Get('k')`); got != "second" {
			t.Errorf("second run reads %s", got)
		}
	}
	if got := result(t, b, env(), `try { return V8.Cache.Get('k') } catch (e) { return e.Kind }`); got != "forbidden" {
		t.Errorf("a run without a cache reads %s", got)
	}
}

func TestTenantsShareNoRuntime(t *testing.T) {
	b := newBridge(t, Config{})
	one, err := b.take("one")
	if err != nil {
		t.Fatal(err)
	}
	b.put(one)
	two, err := b.take("two")
	if err != nil {
		t.Fatal(err)
	}
	if one == two {
		t.Error("two tenants were given one runtime")
	}
	b.put(two)
	again, err := b.take("one")
	if err != nil || again != one {
		t.Errorf("the tenant's own runtime was not kept: %v", err)
	}
	b.put(again)
}

// TestRuntimesThrownAway: after what may leave a runtime odd, and after MaxRuns.
func TestRuntimesThrownAway(t *testing.T) {
	for _, c := range []struct {
		name, code string
		keeps      bool
	}{
		{"a result", `return 1`, true},
		{"a throw", `throw new Error('x')`, true},
		{"deadline", `for(;;){}`, false},
		{"stack", `function f(){ f() } f()`, false},
		{"invalid result", `var o = {}; o.o = o; return o`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBridge(t, Config{})
			e := env()
			e.Limits.Deadline = time.Now().Add(300 * time.Millisecond)
			_, _ = b.Run(context.Background(), compile(t, c.code), e)
			if got := b.idle.Load() == 1; got != c.keeps {
				t.Errorf("kept: %v, want %v", got, c.keeps)
			}
		})
	}
	b := newBridge(t, Config{MaxRuns: 2})
	for range 2 {
		result(t, b, env(), `return 1`)
	}
	if b.idle.Load() != 0 {
		t.Error("a runtime was kept past MaxRuns")
	}
}

// TestEverythingFrozen walks a runtime that was used, from a fixed list of names, and
// finds no object that could be changed.
func TestEverythingFrozen(t *testing.T) {
	b := newBridge(t, Config{})
	m, err := newMachine(b, "t")
	if err != nil {
		t.Fatal(err)
	}
	if m.frozen < 500 {
		t.Errorf("only %d objects were frozen: the walk did not see the built-ins", m.frozen)
	}
	walk, err := m.rt.RunString(`(function(names, more){
		const bad = [], seen = new Set(), todo = [[more[0], 'V8']];
		for (const n of names) todo.push([globalThis[n], n]);
		while (todo.length) {
			const [x, path] = todo.pop();
			if (x === null || typeof x !== 'object' && typeof x !== 'function' || seen.has(x)) continue;
			seen.add(x);
			if (!Object.isFrozen(x)) bad.push(path);
			todo.push([Object.getPrototypeOf(x), path + '.__proto__']);
			for (const k of Reflect.ownKeys(x)) {
				const d = Reflect.getOwnPropertyDescriptor(x, k), p = path + '.' + String(k);
				if (d) todo.push([d.value, p], [d.get, p + ' get'], [d.set, p + ' set']);
			}
		}
		return bad.join(' ');
	})`)
	if err != nil {
		t.Fatal(err)
	}
	var names []any
	for _, n := range append(append([]string{}, intrinsics...), additions...) {
		names = append(names, n)
	}
	bad, err := callable(walk)(goja.Undefined(), m.rt.NewArray(names...), m.rt.NewArray(m.v8Proto))
	if err != nil {
		t.Fatal(err)
	}
	if bad.String() != "" {
		t.Errorf("not frozen: %s", bad)
	}
}

// TestGlobalNames is the golden list: nothing else is in reach.
func TestGlobalNames(t *testing.T) {
	b := newBridge(t, Config{})
	got := result(t, b, env(), `
		return Object.getOwnPropertyNames(globalThis).sort().join(' ')`)
	want := map[string]bool{}
	for _, n := range append(append([]string{}, intrinsics...), additions...) {
		want[n] = true
	}
	for _, n := range strings.Fields(got) {
		if !want[n] {
			t.Errorf("unexpected global %s", n)
		}
		delete(want, n)
	}
	for n := range want {
		t.Errorf("missing global %s", n)
	}
	for _, n := range []string{"require", "process", "fetch", "WebAssembly", "module", "exports", "global", "window", "GoError"} {
		if got := result(t, b, env(), `return typeof `+n); got != "undefined" {
			t.Errorf("%s is %s", n, got)
		}
	}
}

// TestOverridesWork: frozen prototypes do not get into the way of ordinary code.
func TestOverridesWork(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{`var o = {}; o.toString = function(){ return 'mine' }; return '' + o`, "mine"},
		{`function P(){} P.prototype.toString = function(){ return 'p' }; return '' + new P()`, "p"},
		{`class E extends Error { constructor(m){ super(m); this.name = 'E'; this.message = m + '!' } } var e = new E('x'); return e.name + e.message + (e instanceof E)`, "Ex!true"},
		{`var a = []; a.toString = function(){ return 'arr' }; a.constructor = 1; return a + ''`, "arr"},
		{`function F(){} F.name2 = 1; F.call = 2; return F.call`, "2"},
		{`function B(){} B.prototype = Object.create({}); B.prototype.constructor = B; return new B().constructor === B`, "true"},
		{`var o = {constructor: 1, valueOf: 2, hasOwnProperty: 3}; return o.constructor + o.valueOf + o.hasOwnProperty`, "6"},
		{`var o = JSON.parse('{"toString":1,"constructor":2,"__proto__":3}'); return Object.keys(o)`, `["toString","constructor","__proto__"]`},
		{`return Object.prototype.toString.call([]) + ({}).hasOwnProperty('x') + [1,2].toString()`, "[object Array]false1,2"},
		{`var e = new Error('a'); e.name = 'N'; e.stack = 's'; return String(e) + e.stack`, "N: as"},
		{`var d = new Date(0); d.toJSON = function(){ return 'j' }; return [d]`, `["j"]`},
		{`var p = Promise.resolve(1); p.then = 5; return p.then`, "5"},
		{`'use strict'; var o = {}; o.valueOf = function(){ return 7 }; return o * 1`, "7"},
		{`return [function f(){}.name, (function(){}).length, ({}).constructor.name, [].constructor === Array, (() => 1) instanceof Function]`, `["f",0,"Object",true,true]`},
		{`class A extends Array { push2(x){ this.push(x); return this.length } } var a = new A(); return [a.push2(1), a instanceof A, a.map(x => x) instanceof A]`, `[1,true,true]`},
		{`var m = new Map([[1, 2]]); m.get2 = 1; return [m.get(1), [...m.keys()]]`, `[2,[1]]`},
	} {
		if got := result(t, b, env(), c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}
