package jsbridge

import (
	"testing"

	"github.com/dop251/goja"
)

// sameJSON are values whose JSON is that of the engine's own JSON.stringify: everything that
// an object or an array can be beside plain.
var sameJSON = []string{
	`{b: 1, a: 2, 10: 'x', 9: 'y', '-1': 0, '01': 1}`,
	`Object.defineProperty({a: 1}, 'b', {value: 2})`,
	`Object.defineProperty({a: 1}, 'b', {get: function () { return this.a + 1 }, enumerable: true})`,
	`{get a() { delete this.b; return 1 }, b: 2, c: 3}`,
	`{get a() { this.d = 4; return 1 }, b: 2}`,
	`{get a() { Object.defineProperty(this, 'b', {enumerable: false}); return 1 }, b: 2, c: 3}`,
	`{a: {toJSON: function () { return 'own ' + arguments[0] }}, toJSON: 5}`,
	`{toJSON: function (k) { return [typeof k, k] }}`,
	`[{toJSON: function (k) { return k }}, [{toJSON: function (k) { return k + 1 }}]]`,
	`Object.freeze({a: [Object.freeze([1, {b: 2}])]})`,
	`Object.create({inherited: 1, toJSON: function () { return 'from above' }})`,
	`Object.create(null, {a: {value: 1, enumerable: true}})`,
	`new (class A { constructor() { this.x = 1 } get y() { return 2 } toJSON() { return {x: this.x, y: this.y} } })()`,
	`new (class L extends Array {})(3).fill(7)`,
	`[1, , 3, undefined, function () {}, Symbol('x'), null, NaN, Infinity, -Infinity, -0]`,
	`Object.assign([1, 2], {extra: 3})`,
	`Object.assign([1, 2], {toJSON: function () { return 'a list' }})`,
	`Object.defineProperty([1, 2, 3], 1, {get: function () { return 'got' }, enumerable: true})`,
	`(function () { var a = [1, 2, 3]; a.length = 5; return a })()`,
	`(function () { var a = [1]; a[100] = 2; delete a[100]; a.length = 3; return a })()`,
	`[{get a() { list.length = 2; return 1 }}, 2, 3, 4]`,
	`[Object(1), Object('s'), Object(false), new Date(0), /x/, new Map([[1, 2]]), new Set([1]), new Error('e')]`,
	`[0, 1, -1, 1023, 1024, 1.5, 0.1, 1e21, 1e-7, 123456789.125, 5e-324, 1.7976931348623157e308, 9007199254740993, 1e20, 123e-20]`,
	`{'': 1, 'a"b\\': 'c"d\\\n\u0001', 'é价': '价格𝒳\u2028', 'k\ud83d\ude00': '\ud83d\ude00'}`,
	`(function () { return arguments })(1, 2)`,
	`{a: undefined, b: function () {}, c: Symbol()}`,
	`[[1], {a: 1}, [[2]], [{b: 3}]]`,
	`new Proxy({a: 1}, {get: function (t, k) { return k === 'toJSON' ? undefined : 'p' }})`,
	`new Proxy([1, 2], {})`,
	`new Uint8Array([1, 2])`,
	`(function () { var o = {a: 1, b: 2, c: 3}; delete o.a; o.a = 4; return o })()`,
	`(function () { var o = {}; for (var i = 0; i < 30; i++) o['k' + i] = i; return o })()`,
	`JSON.parse('{"b":1,"a":{"2":1,"1":2},"__proto__":{"x":1},"a":3,"constructor":4,"toString":[5]}')`,
	`(function () { var o = JSON.parse('{"a":1,"b":[1,2]}'); o.c = 3; delete o.a; o.b.push(3); o.b.length = 2; o.a = 5; return o })()`,
	`(function () { var o = JSON.parse('[1,2,{"x":1}]'); o.push(4); o.splice(0, 1); o[7] = 1; return o })()`,
	`Object.keys(JSON.parse('{"b":1,"a":2,"2":3,"1":4,"b":5}'))`,
	`Object.entries(Object.assign({}, JSON.parse('{"x":1.0,"y":-0,"z":1e3,"s":"\\u0041é"}')))`,
	`[1.0, 2e0, -0].concat(JSON.parse('[1.0,2e0,-0,70.5,300,1024,-5]')).map(function (x) { return Object.is(x, -0) ? 'minus' : x === 300 ? typeof x : x })`,
}

// TestStringifyAsTheEngine: the short ways of JSON.parse and JSON.stringify change nothing
// that a script can see.
func TestStringifyAsTheEngine(t *testing.T) {
	b := newBridge(t, Config{})
	for _, value := range sameJSON {
		for _, more := range []string{"", ", null, 2", ", ['a', 'b', '1', 'x']", ", function (k, v) { return typeof v === 'number' ? v + 1 : v }"} {
			code := "var list = " + value + "; return JSON.stringify(list" + more + ")"
			want, err := goja.New().RunString("(function () {" + code + "})()")
			if err != nil {
				t.Fatalf("%s: %v", code, err)
			}
			if got := result(t, b, env(), code); got != want.String() {
				t.Errorf("%s\n got %s\nwant %s", code, got, want)
			}
		}
	}
}
