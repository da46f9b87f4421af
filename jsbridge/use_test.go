package jsbridge

import (
	"context"
	"errors"
	"testing"

	"apiengine/fault"
)

// libraries are programs by name, compiled once.
func libraries(code map[string]string) func(context.Context, string) (*Program, error) {
	programs := map[string]*Program{}
	return func(_ context.Context, name string) (*Program, error) {
		text, ok := code[name]
		if !ok {
			return nil, fault.New(fault.NotFound, "there is no library %q", name)
		}
		if programs[name] == nil {
			p, err := Compile(Source{Name: name + ".js", Code: text})
			if err != nil {
				return nil, err
			}
			programs[name] = p
		}
		return programs[name], nil
	}
}

func TestUse(t *testing.T) {
	b := newBridge(t, Config{})
	code := map[string]string{
		"money": `var made = 0; return { cents: function (x) { made++; return Math.round(x * 100) }, made: function () { return made } };`,
		"order": `var money = V8.Use('lib/money'); return { total: items => items.reduce((s, i) => s + money.cents(i), 0), param: () => V8.Param };`,
		"a":     `return { b: V8.Use('b') };`, "b": `return V8.Use('c');`, "c": `return V8.Use('a');`, "self": `return V8.Use('self');`,
		"late":   `return { go: function () { return V8.Use('late').n }, n: 7 };`,
		"awaits": `await null; return {};`, "nothing": ``, "text": `return 'just text';`,
		"throws": "\n\nthrow new Error('in the library');", "later": "return {\n  fail: function () {\n    null.x;\n  },\n  reject: async function () { await null;\n throw new Error('async') } };",
		"global": `leak = 1; return leak;`, "async": `return { f: async function () { return await V8.Cache.GetAsync('none') } };`,
	}
	run := func() *Env {
		e := env()
		e.Library, e.Cache, e.Param = libraries(code), &memCache{}, jsonRaw(`{"p":1}`)
		return e
	}
	for _, c := range []struct{ code, want string }{
		{`return V8.Use('money').cents(1.25)`, `125`}, {`return V8.Use('lib/order').total([1, 2.5])`, `350`},
		{`var m = V8.Use('money'); m.cents(1); return [V8.Use('lib/money') === m, V8.Use('money').made()]`, `[true,1]`},
		{`return V8.Use('money').made()`, `0`}, // each run has its own
		{`return V8.Use('order').param()`, `{"p":1}`}, {`return V8.Use('late').go()`, `7`}, {`return [V8.Use('nothing'), V8.Use('text')]`, `[null,"just text"]`},
		{`V8.Use('global'); return typeof leak`, `undefined`}, {`return [await V8.Use('async').f(), (await V8.UseAsync('money')).made()]`, `[null,0]`},
		{`try { V8.Use('a') } catch (e) { return e.message }`, `V8.Use: libraries use one another in a circle: a.js -> b.js -> c.js -> a.js`},
		{`try { V8.Use('self') } catch (e) { return e.message }`, `V8.Use: libraries use one another in a circle: self.js -> self.js`},
		{`try { V8.Use('awaits') } catch (e) { return e.message }`, `V8.Use: the library awaits.js awaits at its top; only the functions it returns may be async`},
		{`try { V8.Use('throws') } catch (e) { try { V8.Use('throws') } catch (e2) { return e2.message + V8.Use('text') } }`, `in the libraryjust text`},
		{`try { V8.Use('none') } catch (e) { return [e.Kind, e.message] }`, `["not_found","there is no library \"none\""]`},
	} {
		if got := result(t, b, run(), c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
	for _, c := range []struct {
		code, file string
		line       int
	}{
		{"V8.Use('throws')", "throws.js", 3}, {"\nV8.Use('later').fail()", "later.js", 3}, {"return V8.Use('later').reject()", "later.js", 6}, {"\nV8.Use('a')", "c.js", 1}, {"\nV8.Use('none')", "test.js", 2},
	} {
		var se *ScriptError
		if err := failure(t, b, run(), c.code); !errors.As(err, &se) || se.File != c.file || se.Line != c.line {
			t.Errorf("%s: %+v, want %s line %d", c.code, se, c.file, c.line)
		}
	}
}
