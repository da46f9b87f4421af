package jsbridge

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/dop251/goja"
)

// TestGuardedBuiltInsMeanTheSame: what counts and refuses also does its work as before.
func TestGuardedBuiltInsMeanTheSame(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{`return [[1, null, undefined, 'x', [2, [3]], true, 1n].join(), [1, 2].join(''), [1, 2].join('-'), [].join(), [null].join(), [1, 2].join(null), [,1].join('ä')]`, `["1,,,x,2,3,true,1","12","1-2","","","1null2","ä1"]`},
		{`return [Array.prototype.join.call({length: 2, 0: 'a', 1: 'b'}), Array.prototype.join.call('ab', '+'), [{toString() { return 'o' }}].join()]`, `["a,b","a+b","o"]`},
		{`try { [Symbol()].join() } catch (e) { return e.name }`, "TypeError"},
		{`return [1.5, -0, 1e21, 'ß\ud800'].join('|') === '1.5|0|1e+21|ß\ud800'`, "true"},
		{`return 'aXbX'.replace(/X/g, '[$&$$$1]') + 'ab'.replace(/(a)(?<n>b)/, '$2$1$<n>') + 'abc'.replace('b', "$'$` + "`" + `")`, "a[X$$1]b[X$$1]babaca" + "c"},
		{`return 'aaa'.replace(/a/g, (m, i) => i) + 'aaa'.replaceAll('a', (m, i) => i) + 'a.a'.replaceAll('.', '$&$&')`, "012012a..a"},
		{`return 'x1y2'.replace(/\d/g, m => 'ab'.replace(/b/, m)) + 'aab'.replaceAll(/a/g, 'x')`, "xa1ya2xxb"},
		{`return RegExp.prototype[Symbol.replace].call(/a/g, 'banana', 'o')`, "bonono"},
		{`return [[[1], [2, 3], 4].flatMap(x => x), [1, 2].flatMap((x, i, a) => [x, i, a.length]), [1].concat([2], 3, [[4]])]`, `[[1,2,3,4],[1,0,2,2,1,2],[1,2,3,[4]]]`},
		{"return [String.raw`a\\n${1}b`, String.raw({raw: ['x', 'y']}, 1), 'a'.concat(1, null, 'b')]", `["a\\n1b","x1y","a1nullb"]`},
		{`return [Object.keys('ab'), Object.entries([7]), Object.values(new Uint8Array([1])), Object.assign({}, 'x', [1]), Reflect.ownKeys({a: 1}), Object.keys({length: 1e9})]`, `[["0","1"],[["0",7]],[1],{"0":1},["a"],["length"]]`},
		{`return [new Uint8Array([3, 1]).sort().join('-'), 'É'.normalize('NFD').length, 'a'.localeCompare('b'), 'ä'.toUpperCase()]`, `["1-3",2,-1,"Ä"]`},
		{`return ['aba'.match('b').index, 'aba'.search('b'), [...'aba'.matchAll('a')].length, RegExp('a').test('a'), new RegExp(/x/gi).flags]`, `[1,1,2,true,"gi"]`},
		{`return [Array.isArray(Array(3)), [].constructor === Array, Object(1) instanceof Number, new Date(0).constructor === Date, Array.from.call(Array, [1])[0], Array.prototype.values === Array.prototype[Symbol.iterator], String.prototype.trimStart.name]`, `[true,true,true,true,1,true,"trimStart"]`},
	} {
		if got := result(t, b, env(), c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

// TestEveryNativeIsGuarded: every function of Go that a script can come to looks for the
// interrupt before it does anything.
func TestEveryNativeIsGuarded(t *testing.T) {
	b := newBridge(t, Config{})
	m, err := newMachine(b, "t")
	if err != nil {
		t.Fatal(err)
	}
	m.cur = &run{m: m, env: env()}
	m.cur.Context, m.cur.cancel = context.WithCancel(context.Background())
	if err := m.rt.Set("roots", append(slices.Clone(intrinsics), additions...)); err == nil {
		t.Fatal("the global object is not frozen")
	}
	walk, err := m.rt.RunString(`(function (roots, more) {
		var seen = new Set(), found = [];
		var visit = function (x) {
			if ((typeof x !== 'object' || x === null) && typeof x !== 'function' || seen.has(x)) return;
			seen.add(x);
			if (typeof x === 'function' && /\[native code\]\s*\}$/.test(Function.prototype.toString.call(x))) found.push(x);
			visit(Object.getPrototypeOf(x));
			Reflect.ownKeys(x).forEach(function (k) {
				var d = Object.getOwnPropertyDescriptor(x, k);
				visit(d.value); visit(d.get); visit(d.set);
				if (d.get) { try { visit(x[k]) } catch (e) {} }
			});
		};
		roots.forEach(function (n) { visit(globalThis[n]) });
		more.forEach(visit);
		return found;
	})`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := callable(walk)(goja.Undefined(), m.rt.ToValue(append(slices.Clone(intrinsics), additions...)), m.rt.NewArray(m.v8Proto, m.queryProto, m.dbProto, m.lockProto))
	if err != nil {
		t.Fatal(err)
	}
	m.cur.stopped.Store(true)
	n := list.(*goja.Object).Get("length").ToInteger()
	for i := range n {
		fn := list.(*goja.Object).Get(strconv.FormatInt(i, 10)).(*goja.Object)
		_, err := callable(fn)(goja.Undefined())
		if interrupted := (*goja.InterruptedError)(nil); !errors.As(err, &interrupted) {
			name := fn.Get("name")
			t.Errorf("%v does not look for the interrupt: %v", name, err)
		}
	}
	if n < 500 {
		t.Errorf("only %d functions were found", n)
	}
	t.Logf("%d functions", n)
}
