package jsbridge

import (
	"strings"
	"testing"
)

// TestJSONAsTheLanguageSays: JSON of this package's own where it was not that of the language.
// The right values are those of other engines.
func TestJSONAsTheLanguageSays(t *testing.T) {
	b := newBridge(t, Config{})
	long := `'{"\\ud800":1,"\\ud801":2,"z":"` + strings.Repeat("x", 300) + `"}'`
	for _, c := range []struct{ name, code, want string }{
		{"two keys that are lone surrogates", `var o = JSON.parse('{"\\ud800":1,"\\ud801":2}'); return [Object.keys(o).length, o['\ud800'], o['\ud801'], Object.keys(o)[1] === '\ud801']`, `[2,1,2,true]`},
		{"the same in a long text", `var o = JSON.parse(` + long + `); return [Object.keys(o).length, o['\ud801']]`, `[3,2]`},
		{"a pair is one character", `return JSON.parse('{"\\ud83d\\ude00":1}')['😀']`, `1`},
		{"a key written", `return JSON.stringify({'a\udc00': 1})`, `{"a\udc00":1}`},
		{"a key of what is no plain object", `class A { constructor() { this['\ud800'] = 1; this['é'] = 2 } }; return JSON.stringify(new A())`, `{"\ud800":1,"é":2}`},
		{"such keys in a list", `return JSON.stringify({'\ud800': 1, '\ud801': 2, b: 3}, ['\ud801', 'b'])`, `{"\ud801":2,"b":3}`},
		{"such a key for toJSON", `var k; JSON.stringify({'\ud801': {toJSON: function(key){ k = key }}}); return k === '\ud801'`, `true`},
		{"such a key for a replacer", `var k = []; JSON.stringify({'\ud801': 1}, function(key, v){ k.push(key === '\ud801'); return v }); return k`, `[false,true]`},
		{"such a key for a reviver", `var o = JSON.parse('{"\\ud800":1,"\\ud801":2,"\\ud802":3}', function(k, v){ return k === '\ud800' ? undefined : k === '\ud801' ? 5 : v }); return [Object.keys(o).length, o['\ud801'], o['\ud802']]`, `[2,5,3]`},

		{"an indent that is a Number", `return JSON.stringify({a: 1}, null, new Number(3))`, "{\n   \"a\": 1\n}"},
		{"an indent that is a String", `return JSON.stringify({a: 1}, null, new String('ab'))`, "{\nab\"a\": 1\n}"},
		{"an indent that is long", `return JSON.stringify([1], null, 'éééééééééééé')`, "[\néééééééééé1\n]"},
		{"an indent of 2.9", `return JSON.stringify([1], null, 2.9)`, "[\n  1\n]"},
		{"an indent that is an object", `return JSON.stringify([1], null, {})`, "[1]"},
		{"keys that are boxed", `return JSON.stringify({1: 1, b: 2, c: 3}, [new Number(1), new String('b')])`, `{"1":1,"b":2}`},
		{"keys that are named twice", `return JSON.stringify({1: 1, b: 2}, ['b', 1, new String('b'), '1', {}, null])`, `{"b":2,"1":1}`},
		{"a boxed BigInt", `try { return JSON.stringify(Object(1n)) } catch (e) { return e.name }`, `TypeError`},
		{"a boxed BigInt inside", `try { return JSON.stringify({a: [Object(1n)]}) } catch (e) { return e.name }`, `TypeError`},

		{"the text is a Symbol", `try { return JSON.parse(Symbol()) } catch (e) { return e.name }`, `TypeError`},
		{"the text is an object", `return JSON.parse({toString: function(){ return '[1]' }})`, `[1]`},
		{"numbers of parameters", `return [JSON.parse.length, JSON.stringify.length, JSON.parse.name, JSON.stringify.name]`, `[2,3,"parse","stringify"]`},
		{"no rawJSON", `return [typeof JSON.rawJSON, typeof JSON.isRawJSON]`, `["undefined","undefined"]`},
		{"as many items as are taken", `return JSON.parse('[' + '1,'.repeat(1048575) + '1]').length`, `1048576`},
		{"an item more", `try { JSON.parse('[' + '1,'.repeat(1048576) + '1]') } catch (e) { return e.name }`, `RangeError`},
		{"an item more, with a reviver", `try { JSON.parse('[' + '1,'.repeat(1048576) + '1]', function(k, v){ return v }) } catch (e) { return e.name }`, `RangeError`},

		{"a reviver visits holes", `var k = []; JSON.parse('[1,2,3]', function(key, v){ if (key === '0') delete this[1]; k.push(key); return v }); return k`, `["0","1","2",""]`},
		{"a reviver visits what it shortened", `var k = []; JSON.parse('[1,2]', function(key, v){ if (key === '0') this.length = 1; k.push([key, v === undefined]); return v }); return k`, `[["0",false],["1",true],["",false]]`},
		{"a reviver defines, it does not assign", `var hit = 0; var o = JSON.parse('{"a":1,"b":2}', function(k, v){ if (k === 'a') Object.defineProperty(this, 'b', {set: function(){ hit++ }, get: function(){ return 7 }, configurable: true, enumerable: true}); return v }); return [hit, o.b]`, `[0,7]`},
		{"a reviver and a frozen holder", `return JSON.parse('{"a":1,"b":2}', function(k, v){ if (k === 'a') Object.freeze(this); return k === '' ? v : 5 })`, `{"a":1,"b":2}`},
		{"a reviver and __proto__", `return JSON.stringify(JSON.parse('{"__proto__":1,"toString":2}', function(k, v){ return k === '' ? v : v + 1 }))`, `{"__proto__":2,"toString":3}`},
		{"a reviver without an end on a list", `try { JSON.parse('[1,2]', function(k, v){ if (k === '0') this[1] = this; return v }) } catch (e) { return e.name }`, `RangeError`},
		{"a reviver without an end on an object", `try { JSON.parse('{"a":1,"b":2}', function(k, v){ if (k === 'a') this.b = {a: 1, b: 2}; return v }) } catch (e) { return e.name }`, `RangeError`},
		{"a text as deep as is taken", `var n = 0; JSON.parse('['.repeat(512) + ']'.repeat(512), function(k, v){ n++; return v }); return n`, `512`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := result(t, b, env(), c.code); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
