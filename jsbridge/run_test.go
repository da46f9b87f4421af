package jsbridge

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"apiengine/fault"
)

// TestRunResults: what a script's value becomes.
func TestRunResults(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ name, code, want string }{
		{"object", `return {Code:1, Data:{Hello:'world'}}`, `{"Code":1,"Data":{"Hello":"world"}}`},
		{"nothing", `var x = 1`, `undefined`},
		{"null", `return null`, `null`},
		{"string is text", `return 'a"b'`, `a"b`},
		{"array", `return [1,,undefined,function(){}, NaN, Infinity, -0]`, `[1,null,null,null,null,null,0]`},
		{"skips undefined, functions, symbols", `return {a:undefined, b:function(){}, c:Symbol('x'), d:1, [Symbol('y')]:2}`, `{"d":1}`},
		{"V8.Result", `V8.Result = {Code: 1}`, `{"Code":1}`},
		{"return wins over V8.Result", `V8.Result = {Code: 1}; return {Code: 2}`, `{"Code":2}`},
		{"V8.Result in a function", `(function(){ V8.Result = {Code: 3}; return 5 })()`, `{"Code":3}`},
		{"toJSON", `return {a:{toJSON(k){ return 'json of ' + k }}}`, `{"a":"json of a"}`},
		{"getter", `return {get a(){ return 1 + 1 }}`, `{"a":2}`},
		{"date", `return {d:new Date(0)}`, `{"d":"1970-01-01T00:00:00.000Z"}`},
		{"boxed", `return [new Number(3), new String('s'), new Boolean(false), Object(true)]`, `[3,"s",false,true]`},
		{"map and set have no members", `return [new Map([[1,2]]), new Set([1]), /x/, new Error('e')]`, `[{},{},{},{}]`},
		{"proxy", `return [new Proxy({a:1}, {}), new Proxy([1,2], {})]`, `[{"a":1},[1,2]]`},
		{"class", `class P { constructor(){ this.x = 1 } get y(){ return 2 } } return new P()`, `{"x":1}`},
		{"shared is no cycle", `var s = {}; return [s, s]`, `[{},{}]`},
		{"key order", `return {b:1, a:2, 1:3}`, `{"1":3,"b":1,"a":2}`},
		{"lone surrogate", `return ['\ud800x', '\ud83d\ude00']`, `["\ud800x","😀"]`},
		{"control characters", `return ['\u0000\u001f\n\t"\\<>&\u2028']`, "[\"\\u0000\\u001f\\n\\t\\\"\\\\<>&\u2028\"]"},
		{"numbers", `return [1e21, 0.1, 1/3, 123456789012, -5, 1.0]`, `[1e+21,0.1,0.3333333333333333,123456789012,-5,1]`},
		{"proto member", `var o = {}; Object.defineProperty(o, '__proto__', {value:1, enumerable:true}); return o`, `{"__proto__":1}`},
		{"await", `var x = await Promise.resolve(41); return {x: x + 1}`, `{"x":42}`},
		{"returned promise", `return new Promise(function(ok){ ok({a:1}) })`, `{"a":1}`},
		{"async function's promise", `async function f(){ await null; return [1] } return f()`, `[1]`},
		{"await in an inner function only", `const f = async () => { await 1; return 2 }; return f()`, `2`},
		{"await as a name", `var await = 3; return await + 1`, `4`},
		{"V8.Result from await", `await null; V8.Result = {Code:1}`, `{"Code":1}`},
		{"for await", `var s = 0; for await (const x of [1, Promise.resolve(2)]) s += x; return s`, `3`},
		{"jobs run before the result is read", `var o = {}; Promise.resolve().then(function(){ o.late = 1 }); return o`, `{"late":1}`},
		{"last line comment", `return 1 // the end`, `1`},
		{"strict", `'use strict'; return this === undefined`, `true`},
		{"V8 redeclared", `var V8 = V8 || {}; return typeof V8.Cache`, `object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := result(t, b, env(), c.code); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestImplicitGlobals(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{`x = 1; function f(){ y = x + 1 } f(); return [x, y]`, `[1,2]`},
		{`for (i = 0; i < 3; i++) {} return i`, `3`},
		{`for (k in {a:1}) {} for (v of [7]) {} return [k, v]`, `["a",7]`},
		{`[p, {q, r: s}] = [1, {q: 2, r: 3}]; return [p, q, s]`, `[1,2,3]`},
		{`[a = 5, ...rest] = [undefined, 2, 3]; return [a, rest]`, `[5,[2,3]]`},
		{`{ let z = 1; z = 2 } return typeof z`, `undefined`},
		{`{ let z = 1 } z = 3; return z`, `3`},
		{`try { throw 1 } catch (e) { e = 2 } return typeof e`, `undefined`},
		{`var f = function g(){ g = 1; return typeof g }; return f()`, `function`},
		{`function f(){ var URL = 1; URL = 2; return URL } return [f(), typeof URL]`, `[2,"function"]`},
		{`JSON = 1; return typeof JSON.parse`, `function`},
		{`n++; return String(n)`, `NaN`},
		{`class A { static { B = 4 } } return B`, `4`},
	} {
		if got := result(t, b, env(), c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
	if err := failure(t, b, env(), `'use strict'; undeclared = 1`); fault.Of(err) != fault.ScriptError {
		t.Errorf("strict: %v", err)
	}
}

func TestOutcome(t *testing.T) {
	b := newBridge(t, Config{})
	big := `{"Code":2,"Data":"` + strings.Repeat("x", 500) + `"}`
	for _, c := range []struct {
		code     string
		isObject bool
		hasCode  float64 // -1: none
	}{
		{`return {Code: 1}`, true, 1},
		{`return {Code: '1'}`, true, -1},
		{`return {Data: {Code: 1}}`, true, -1},
		{`return [{Code: 1}]`, false, -1},
		{`return 5`, false, -1},
		{`return {toJSON: function(){ return {Code: 0} }}`, true, 0},
		{`return JSON.parse(V8.Param.text)`, true, 2},
		{`return new Proxy({Code: 7}, {})`, true, 7},
	} {
		e := env()
		text, _ := json.Marshal(map[string]string{"text": big})
		e.Param = text
		rep, err := b.Run(context.Background(), compile(t, c.code), e)
		if err != nil {
			t.Fatal(err)
		}
		code := -1.0
		if rep.Outcome.Code != nil {
			code = *rep.Outcome.Code
		}
		if rep.Outcome.IsObject != c.isObject || code != c.hasCode {
			t.Errorf("%s: object %v code %v, want %v %v", c.code, rep.Outcome.IsObject, code, c.isObject, c.hasCode)
		}
	}
}

// TestRunFailures: every way to end badly has its Kind.
func TestRunFailures(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct {
		name, code string
		kind       fault.Kind
		text       string
	}{
		{"throw", `throw new Error('no stock')`, fault.ScriptError, "no stock"},
		{"throw TypeError", `null.x`, fault.ScriptError, "TypeError"},
		{"throw string", `throw 'plain'`, fault.ScriptError, "plain"},
		{"throw object", `throw {a: 1}`, fault.ScriptError, `{"a":1}`},
		{"throw envelope", `throw {Code: 0, Msg: 'refused'}`, fault.ScriptError, "refused"},
		{"throw nothing", `throw undefined`, fault.ScriptError, "undefined"},
		{"throw cycle", `var c = {}; c.c = c; throw c`, fault.ScriptError, "Object"},
		{"hostile message", `throw {get message(){ throw 1 }}`, fault.ScriptError, "cannot be read"},
		{"rejected", `await Promise.reject(new Error('later'))`, fault.ScriptError, "later"},
		{"unknown name", `return notThere`, fault.ScriptError, "notThere"},
		{"cycle", `var o = {}; o.a = [o]; return o`, fault.ResultInvalid, "a[0]"},
		{"BigInt", `return {n: 1n}`, fault.ResultInvalid, "BigInt"},
		{"function", `return function(){}`, fault.ResultInvalid, "function"},
		{"symbol", `return Symbol('x')`, fault.ResultInvalid, "symbol"},
		{"never settled", `return new Promise(function(){})`, fault.ResultInvalid, "never settled"},
		{"never awaited", `await new Promise(function(){})`, fault.ResultInvalid, "never settled"},
		{"deep", `var o = {}; for (var i = 0; i < 600; i++) o = {o: o}; return o`, fault.ResultInvalid, "512"},
		{"large", `return 'x'.repeat(9 << 20).split('y')`, fault.LimitOutput, "bytes"},
		{"throwing getter", `return {get a(){ throw new Error('in getter') }}`, fault.ScriptError, "in getter"},
		{"host calls", `for (;;) NewGuid()`, fault.LimitOutput, "host calls"},
		{"regex", `return /^(a+)+(?=b)$/.test('a'.repeat(40))`, fault.LimitRegex, "regular"},
		{"regex in replace", `return 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.replace(/^(a+)+(?=b)$/, 'x')`, fault.LimitRegex, "regular"},
		{"regex by symbol", `return /^(a+)+(?=b)$/[Symbol.replace]('a'.repeat(40), 'x')`, fault.LimitRegex, "regular"},
		{"timers", `setTimeout(function(){}, 1)`, fault.ScriptError, "task"},
		{"no service", `V8.Cache.Get('k')`, fault.ScriptError, "not available"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := failure(t, b, env(), c.code)
			if fault.Of(err) != c.kind || !strings.Contains(fault.Public(err), c.text) {
				t.Errorf("got %s %q, want %s %q", fault.Of(err), fault.Public(err), c.kind, c.text)
			}
		})
	}
}

func TestPositions(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct {
		name      string
		src       Source
		line, col int
	}{
		{"first line", Source{Code: `throw new Error('x')`}, 1, 7},
		{"first line, shifted", Source{Code: `throw new Error('x')`, FirstLine: 9}, 9, 7},
		{"later line", Source{Code: "var a = 1;\n\n   a.b.c()"}, 3, 6},
		{"wide characters", Source{Code: `var s = '订单😀'; throw new Error(s)`}, 1, 23},
		{"after await", Source{Code: "await null;\nthrow new Error('x')"}, 2, 7},
		{"TypeScript", Source{Code: "type T = {a: string};\ninterface I {}\nconst t: T = {a: 'x'};\n  throw new Error(t.a)", Language: "ts"}, 4, 9},
		{"TypeScript, first line", Source{Code: "const f = (a: number): never => { throw new Error('x') }; f(1)", Language: "ts"}, 1, 41},
		{"TypeScript, shifted", Source{Code: "const a: number = 1;\nthrow new Error('x' + a)", Language: "ts", FirstLine: 12}, 13, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.src.Name = "pos"
			p, err := Compile(c.src)
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.Run(context.Background(), p, env())
			var se *ScriptError
			if !errors.As(err, &se) || se.Line != c.line || se.Column != c.col || se.File != "pos" {
				t.Errorf("got %+v, want %d:%d", se, c.line, c.col)
			}
			if se != nil && !strings.Contains(se.Stack, "pos:") {
				t.Errorf("stack %q", se.Stack)
			}
		})
	}
}

func TestDeadlineAndCancel(t *testing.T) {
	b := newBridge(t, Config{})
	short := func() *Env {
		e := env()
		e.Limits.Deadline = time.Now().Add(50 * time.Millisecond)
		return e
	}
	for _, code := range []string{
		`for(;;){}`,
		`for(;;){ try { for(;;){} } catch(e){} finally {} }`,
		`return {get a(){ for(;;){} }}`,
		`return {toJSON(){ for(;;){} }}`,
		`(function f(){ Promise.resolve().then(f) })()`,
		`var a = []; for(;;) { a.push(1); if (a.length > 1000) a = [] }`,
		`[1].map(function(){ for(;;){} })`,
		`throw {get message(){ for(;;){} }}`,
		`for(;;) V8.Cache.Get('k')`,
		`var a = [1]; for (var i = 0; i < 60; i++) a = [a, a]; for (;;) try { JSON.stringify(a) } catch (e) {}`,
		`for(;;) { try { V8.Cache.Get('k') } catch (e) {} }`,
	} {
		e := short()
		e.Cache = &memCache{}
		e.Limits.MaxHostCalls = 1 << 30
		start := time.Now()
		err := failure(t, b, e, code)
		if fault.Of(err) != fault.Timeout || time.Since(start) > 2*time.Second {
			t.Errorf("%s: %v after %v", code, err, time.Since(start))
		}
	}
	lost := fault.New(fault.LeaseLost, "lost")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(20*time.Millisecond, func() { cancel(lost) })
	_, err := b.Run(ctx, compile(t, `try { for(;;){} } catch (e) { return 1 }`), env())
	if !errors.Is(err, lost) {
		t.Errorf("got %v, want the context's cause", err)
	}
	if got := result(t, b, env(), `return 1`); got != "1" {
		t.Errorf("the bridge does not go on: %s", got)
	}
	if _, err := b.Run(ctx, compile(t, `return 1`), env()); !errors.Is(err, lost) {
		t.Errorf("a dead context started a run: %v", err)
	}
	past := env()
	past.Limits.Deadline = time.Now().Add(-time.Second)
	if err := failure(t, b, past, `return 1`); fault.Of(err) != fault.Timeout {
		t.Errorf("past deadline: %v", err)
	}
}

func TestRecursion(t *testing.T) {
	b := newBridge(t, Config{})
	for _, code := range []string{
		`function f(){ f() } f()`,
		`function f(){ try { f() } catch (e) { f() } finally { f() } } f()`,
		`function f(){ [1].map(f) } f()`,
		`function f(){ [2,1].sort(f) } f()`,
		`function f(){ 'a'.replace(/a/, f) } f()`,
		`var o = {get x(){ return this.x }}; o.x`,
		`var o = {toString(){ return '' + this }}; '' + o`,
		`var o = {toJSON(){ return JSON.stringify(this) }}; JSON.stringify(o)`,
		`var p = new Proxy({}, {get(t, k, r){ return r[k] }}); p.x`,
		`class A { constructor(){ new A() } } new A()`,
		`function* g(){ yield* g() } for (const x of g()) {}`,
		`var f = () => f.call(); f()`,
		`function f(){ return Reflect.apply(f, null, []) } f()`,
		`JSON.parse('[1]', function f(){ return JSON.parse('[1]', f) })`,
	} {
		start := time.Now()
		err := failure(t, b, env(), code)
		if k := fault.Of(err); k != fault.LimitStack || time.Since(start) > 2*time.Second {
			t.Errorf("%s: %s %v after %v", code, k, err, time.Since(start))
		}
	}
}
