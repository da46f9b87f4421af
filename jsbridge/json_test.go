package jsbridge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
)

func TestParseJSON(t *testing.T) {
	rt := goja.New()
	m := bareMachine(t, rt)
	for _, c := range []struct{ text, want string }{
		{`{"a":1,"b":[true,false,null,"x"]}`, `{"a":1,"b":[true,false,null,"x"]}`},
		{` [ 1 , 2 ] `, `[1,2]`},
		{`{"a":1,"a":2}`, `{"a":2}`},
		{`[1e3,-0.5,1E-2,0]`, `[1000,-0.5,0.01,0]`},
		{`"\u00e9\n\"\\\/\b\f\r\t\ud83d\ude00"`, `"é\n\"\\/\b\f\r\t😀"`},
		{`[9007199254740991,9007199254740992,-9007199254740993,123456789012345678901234567890]`, `[9007199254740991,9007199254740992,"-9007199254740993","123456789012345678901234567890"]`},
		{`{"__proto__":1}`, `{"__proto__":1}`},
	} {
		v, err := parseJSON(m, c.text, true)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		_ = rt.Set("v", v)
		got, err := rt.RunString(`JSON.stringify(v)`)
		if err != nil || got.String() != c.want {
			t.Errorf("%s: got %s, want %s (%v)", c.text, got, c.want, err)
		}
	}
	for _, text := range []string{``, ` `, `{`, `[1,]`, `{"a":1,}`, `{a:1}`, `01`, `1.`, `.5`, `-`, `+1`, `1e`, `"`, `"\x"`, `"\u12"`, "\"\n\"", `tru`, `nul`, `[1] 2`, `{"a" 1}`, `'a'`, `NaN`, `[1 2]`} {
		if _, err := parseJSON(m, text, true); err == nil {
			t.Errorf("%q was accepted", text)
		}
		if _, err := checkJSON(text); err == nil {
			t.Errorf("%q was found valid", text)
		}
	}
}

// bareMachine is rt with what JSON needs, and nothing that keeps scripts in.
func bareMachine(t testing.TB, rt *goja.Runtime) *machine {
	in, err := newLayout()
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{rt: rt, in: in}
	m.objectProto, m.arrayProto = m.prototype("Object"), m.prototype("Array")
	return m
}

// FuzzJSON: what the check accepts is what encoding/json accepts (but for depth), and
// what the parser builds is written back as the same value.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x\u0000\ud800"],"__proto__":{}}`, `[[[]]]`, `"\ud83d\ude00"`, `-0`, `1e400`, "\xff", `{"a":1,"a":2}`, `123456789012345678901`} {
		f.Add(s)
	}
	rt := goja.New()
	m := bareMachine(f, rt)
	theirs := callable(rt.Get("JSON").(*goja.Object).Get("stringify"))
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "[")+strings.Count(text, "{") > maxJSONDepth {
			if len(text) < 1<<16 {
				_, _ = checkJSON(text)
			}
			return
		}
		_, err := checkJSON(text)
		valid := json.Valid([]byte(text))
		if (err == nil) != valid {
			t.Fatalf("%q: %v, encoding/json says valid %v", text, err, valid)
		}
		v, err := parseJSON(m, text, false)
		if (err == nil) != valid {
			t.Fatalf("%q: parse error %v, valid %v", text, err, valid)
		}
		topCode(text)
		if err == nil {
			r := &run{m: m}
			w := jsonWriter{r: r, max: 1 << 30}
			if _, err := w.write(goja.Undefined(), "", v); err != nil || !json.Valid(w.buf) {
				t.Fatalf("%q was written as %q, %v", text, w.buf, err)
			}
			if same, err := theirs(goja.Undefined(), v); err != nil || same.String() != string(w.buf) && !strings.Contains(text, `\u`) {
				t.Fatalf("%q was written as %q, by the engine itself as %v (%v)", text, w.buf, same, err)
			}
		}
	})
}

func TestJSONGlobals(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{`return JSON.stringify({a: [1, {b: 2}]}, null, 2)`, "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ]\n}"},
		{`return JSON.stringify([[], {}], null, '--')`, "[\n--[],\n--{}\n]"},
		{`return JSON.stringify({a: 1, b: 2, c: {a: 3}}, ['a', 'c'])`, `{"a":1,"c":{"a":3}}`},
		{`return JSON.stringify({a: 1, b: 'x'}, function(k, v){ return typeof v === 'number' ? v + 1 : v })`, `{"a":2,"b":"x"}`},
		{`return String(JSON.stringify(undefined)) + JSON.stringify(function(){})`, `undefinedundefined`},
		{`try { var c = {}; c.c = c; JSON.stringify(c) } catch (e) { return e.name }`, `TypeError`},
		{`try { JSON.stringify(1n) } catch (e) { return e.name }`, `TypeError`},
		{`return JSON.parse('{"a":[1,2]}', function(k, v){ return typeof v === 'number' ? v * 2 : v })`, `{"a":[2,4]}`},
		{`return JSON.parse('{"a":1,"b":2}', function(k, v){ return k === 'a' ? undefined : v })`, `{"b":2}`},
		{`try { JSON.parse('{"a":}') } catch (e) { return e.name + ': ' + e.message }`, `SyntaxError: Unexpected token '}' in JSON at position 5`},
		{`return JSON.parse('9007199254740993')`, `9007199254740992`},
		{`return [JSON.parse('"\\ud800"').length, JSON.parse('"\\ud800"').charCodeAt(0)]`, `[1,55296]`},
		{`return JSON.parse(' 5 ') + JSON.parse('"a"')`, `5a`},
		{`return JSON.stringify('a\ud800')`, `"a\ud800"`},
		{`return JSON.stringify({d: new Date(NaN)})`, `{"d":null}`},
	} {
		if got := result(t, b, env(), c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

// lazySuite looks at a value in every way that a script can.
var lazySuite = []string{
	`return v`, `return [v, v]`, `return {Code: 1, Data: v}`, `return Object.keys(v)`, `return Array.isArray(v)`,
	`return [v instanceof Array, v instanceof Object, Object.prototype.toString.call(v), typeof v]`,
	`return {...v}`, `var r = []; for (var k in v) r.push(k); return r`, `return JSON.stringify(v)`, `return JSON.stringify(v, null, 1)`,
	`return structuredClone(v)`, `return ['first' in v, 0 in v, 'none' in v, v.hasOwnProperty('first')]`,
	`delete v.first; delete v[0]; return v`, `v.first = 5; v[0] = 6; return v`, `v.added = {x: 1}; return v`,
	`return [Object.isFrozen(Object.freeze(v)), v]`, `Object.freeze(v); v.first = 9; v[0] = 9; return v`, `Object.seal(v); v.none = 1; return v`,
	`return Object.getOwnPropertyNames(v)`, `return Object.entries(v)`, `return [v.length, v.first, v[0], v.none]`,
	`return Object.getOwnPropertyDescriptor(v, 'first') || Object.getOwnPropertyDescriptor(v, '0')`, `var d = Object.getOwnPropertyDescriptors(v); delete d.length; return d`,
	`return Array.isArray(v) ? v.map(function(x){ return x }).concat(v).length : Object.assign({}, v)`,
	`return Array.isArray(v) ? [...v].reverse() : Object.values(v)`, `if (Array.isArray(v)) { v.push(1); v.sort(); v.splice(0, 1) } return v`,
	`return Array.isArray(v) ? [].concat(v) : [].concat(v, v)`, `return Array.isArray(v) ? Math.max.apply(null, v.map(Number)) : String(v)`,
	`Object.defineProperty(v, 'first', {value: 1, enumerable: true}); return v`, `Object.defineProperty(v, 'g', {get: function(){ return 7 }, enumerable: true}); return v`,
	`Object.setPrototypeOf(v, {inherited: 1}); return [v.inherited, Object.keys(v)]`, `var c = Object.create(v); c.first = 1; c.other = 2; return [c, v]`,
	`v[Symbol.toStringTag] = 'T'; return Object.prototype.toString.call(v)`, `return [v === v, v == v, new Map([[v, 1]]).get(v)]`,
	`var {first, ...rest} = v; return [first, rest]`, `return [Reflect.ownKeys(v), Reflect.has(v, 'first'), Reflect.get(v, 'first')]`,
	`v.toJSON = function(){ return 'mine' }; return v`, `return [Object.isExtensible(v), Object.isSealed(v)]`, `Object.preventExtensions(v); v.none = 1; return v`,
	`return (function(){ return arguments[0] })(v)`, `return await v`, `return Promise.resolve(v)`, `return Array.from(v).length`,
	`var n = 0; if (Array.isArray(v)) for (var x of v) n++; return n`, `return V8.Cache.Set('x', JSON.stringify(v)) && V8.Cache.Get('x')`,
	`console.log(v); return v`, `v.self = v; return Object.keys(v)`, `return v.toString === Object.prototype.toString`, `return Object.fromEntries(Object.entries(v))`,
	`'use strict'; try { Object.freeze(v).first = 1; return 'set' } catch (e) { return e.name }`, `return v.constructor.name`, `return (v.__proto__ === Array.prototype) + '' + (v.__proto__ === Object.prototype)`,
}

// TestLazyIsTheValue: a lazy value cannot be told from one that was parsed at once.
func TestLazyIsTheValue(t *testing.T) {
	b := newBridge(t, Config{})
	pad := strings.Repeat("x", lazyFrom)
	for _, text := range []string{`{"10":3,"first":1,"b":{"c":[1,2]},"__proto__":{"p":1},"length":4,"pad":"` + pad + `"}`, `[3,1,{"a":2},"` + pad + `"]`} {
		for _, code := range lazySuite {
			e := env()
			e.Param, _ = json.Marshal(map[string]string{"text": text})
			e.Cache = &memCache{}
			lazy := result(t, b, e, `var v = JSON.parse(V8.Param.text); `+code)
			plain := result(t, b, e, `var v = JSON.parse(V8.Param.text, function(k, x){ return x }); `+code)
			if lazy != plain {
				t.Errorf("%s:\nlazy  %s\nplain %s", code, lazy, plain)
			}
		}
	}
}

// TestUntouchedIsSpliced: text that nobody looked at leaves as it came.
func TestUntouchedIsSpliced(t *testing.T) {
	b := newBridge(t, Config{})
	text := `{ "n": 12345678901234567890, "a": 1.50, "pad": "` + strings.Repeat("y", lazyFrom) + `" }`
	e := env()
	e.Cache = &memCache{strings: map[string]string{"k": text}}
	if got := result(t, b, e, `return {Code: 1, Data: JSON.parse(V8.Cache.Get('k'))}`); got != `{"Code":1,"Data":`+text+`}` {
		t.Errorf("got %s", got)
	}
	if got := result(t, b, e, `return JSON.stringify(JSON.parse(V8.Cache.Get('k'))).slice(0, 39)`); got != `{"n":12345678901234567000,"a":1.5,"pad"` {
		t.Errorf("stringify shows the raw text: %s", got)
	}
	if got := result(t, b, e, `var d = JSON.parse(V8.Cache.Get('k')); d.a; return d`); got == text {
		t.Error("a touched value was spliced")
	}
	e.Param = json.RawMessage(text)
	if got := result(t, b, e, `return V8.Param`); got != text {
		t.Errorf("param: got %s", got)
	}
	if got := result(t, b, e, `return V8.Param.n`); got != `12345678901234567890` {
		t.Errorf("param: got %s", got)
	}
}

// TestRandomJSON: random values come back from parse and write as they went in.
func TestRandomJSON(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var value func(depth int) any
	value = func(depth int) any {
		switch n := rnd.IntN(8); {
		case n < 2 && depth < 5:
			out := map[string]any{}
			for range rnd.IntN(5) {
				out[fmt.Sprintf("k%d\u00e9", rnd.IntN(100))] = value(depth + 1)
			}
			return out
		case n < 4 && depth < 5:
			out := []any{}
			for range rnd.IntN(5) {
				out = append(out, value(depth+1))
			}
			return out
		case n == 5:
			return string(rune(rnd.IntN(0xd7ff))) + "x"
		case n == 6:
			return float64(rnd.IntN(1 << 40))
		}
		return rnd.IntN(2) == 0
	}
	b := newBridge(t, Config{})
	p := compile(t, `return JSON.parse(JSON.stringify({v: V8.Param.v})).v`)
	for range 200 {
		want, _ := json.Marshal(value(0))
		e := env()
		e.Param = json.RawMessage(`{"v":` + string(want) + `}`)
		rep, err := b.Run(t.Context(), p, e)
		if err != nil {
			t.Fatal(err)
		}
		var x, y any
		got := rep.Outcome.Result
		if rep.Outcome.IsText {
			got, _ = json.Marshal(rep.Outcome.Text)
		}
		if json.Unmarshal(want, &x) != nil || json.Unmarshal(got, &y) != nil || fmt.Sprint(x) != fmt.Sprint(y) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
