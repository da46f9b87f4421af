package jsbridge

import (
	"fmt"
	"math/big"
	"reflect"
	"strings"

	"github.com/dop251/goja"
)

// maxBigInt bounds a BigInt that is multiplied, raised, shifted or read from a text.
const maxBigInt = 64 << 10 // bits

// maxStep bounds what a step such as a[f()] *= b adds to a BigInt that nobody looks at.
const maxStep = 1 << 10 // bits

// maxBigDigits are the digits of the longest text that becomes a BigInt, in any base.
const maxBigDigits = maxBigInt

// items is how many values v counts as a list: an array, a typed array or a text. Other
// objects have none, whatever their length says.
func items(v goja.Value) int64 {
	switch v := v.(type) {
	case goja.String:
		return int64(v.Length())
	case *goja.Object:
		if k := v.ExportType(); k != nil && k.Kind() == reflect.Slice || v.ClassName() == "String" {
			return orUndefined(v.Get("length")).ToInteger()
		}
	}
	return 0
}

func (m *machine) limitItems(name string, v goja.Value, limit int) {
	if items(v) > int64(limit) {
		m.tooLarge(name, limit, "items")
	}
}

// installSizes guards the built-ins that make more than they were given, or that list
// every element, and those of BigInt.
func (m *machine) installSizes() error {
	g := hooks{m: m}
	for _, name := range strings.Fields("keys values entries assign getOwnPropertyNames getOwnPropertyDescriptors freeze seal isFrozen isSealed defineProperties preventExtensions") {
		g.before("Object", name, m.listing(name))
	}
	g.before("Reflect", "ownKeys", m.listing("ownKeys"))
	for _, name := range []string{"Object", "Reflect"} {
		g.before(name, "setPrototypeOf", m.listing("setPrototypeOf"))
	}
	typed := g.get("Uint8Array").Prototype().Get("prototype").(*goja.Object)
	for _, name := range strings.Fields("sort toSorted join toLocaleString") {
		g.beforeOf(typed, name, func(call goja.FunctionCall) { m.limitItems(name, call.This, maxItems) })
	}
	text := m.prototype("String")
	for _, name := range []string{"normalize", "localeCompare"} {
		g.beforeOf(text, name, func(call goja.FunctionCall) {
			if length(call.This)+length(call.Argument(0)) > maxItems {
				m.tooLarge(name, maxItems, "characters")
			}
		})
	}
	for _, name := range []string{"toUpperCase", "toLowerCase", "toLocaleUpperCase", "toLocaleLowerCase"} {
		g.beforeOf(text, name, func(call goja.FunctionCall) {
			if length(call.This) > maxString/4 {
				m.tooLarge(name, maxString/4, "characters")
			}
		})
	}
	g.beforeOf(text, "concat", func(call goja.FunctionCall) { m.sum("concat", maxString, "characters", call, length) })
	g.beforeOf(m.prototype("Array"), "concat", func(call goja.FunctionCall) { m.sum("concat", maxItems, "items", call, spreadable) })
	g.before("String", "raw", m.limitRaw)
	g.aroundOf(m.prototype("Array"), "flatMap", m.countFlatMap)
	pattern := func(call goja.FunctionCall) {
		if v := call.Argument(0); goja.IsString(v) && (length(v) > maxItems || nesting(v.String()) > maxNesting) {
			m.tooLarge("RegExp", maxNesting, "nested groups, or too long a pattern")
		}
	}
	g.beforeFunc(g.get("RegExp"), pattern)
	for _, name := range []string{"match", "matchAll", "search"} {
		g.beforeOf(text, name, pattern)
	}
	g.beforeFunc(g.get("parseFloat"), func(call goja.FunctionCall) {
		if length(call.Argument(0)) > maxString/4 && goja.IsString(call.Argument(0)) {
			m.tooLarge("parseFloat", maxString/4, "characters")
		}
	})
	g.aroundOf(m.prototype("Function"), "bind", m.guardBound)
	m.hookPrototypes(&g)
	m.hookReplace(&g)
	m.hookBigInts(&g)
	return g.err
}

// listing refuses to name each element of what has very many.
func (m *machine) listing(name string) func(goja.FunctionCall) {
	return func(call goja.FunctionCall) {
		for _, v := range call.Arguments {
			m.limitItems(name, v, maxItems)
		}
	}
}

// sum refuses a call whose receiver and arguments are together too large.
func (m *machine) sum(name string, limit int64, what string, call goja.FunctionCall, size func(goja.Value) int64) {
	n := size(call.This)
	for _, v := range call.Arguments {
		if n += size(v); n > limit {
			m.tooLarge(name, int(limit), what)
		}
	}
}

// spreadable is how many values concat takes out of v.
func spreadable(v goja.Value) int64 {
	if obj, ok := v.(*goja.Object); ok && orUndefined(obj.GetSymbol(goja.SymIsConcatSpreadable)).ToBoolean() {
		return length(obj)
	}
	return items(v)
}

// limitRaw counts what String.raw would make of its list.
func (m *machine) limitRaw(call goja.FunctionCall) {
	obj, ok := call.Argument(0).(*goja.Object)
	if !ok {
		return
	}
	raw, ok := orUndefined(obj.Get("raw")).(*goja.Object)
	if !ok {
		return
	}
	n := length(raw)
	if n > maxSpread {
		m.tooLarge("String.raw", maxSpread, "items")
	}
	size := int64(0)
	for i := range n {
		if size += length(orUndefined(raw.Get(fmt.Sprint(i)))); size > maxString {
			m.tooLarge("String.raw", maxString, "characters")
		}
	}
}

// countFlatMap adds up what the callback returns.
func (m *machine) countFlatMap(f nativeCall, call goja.FunctionCall) goja.Value {
	if inner, ok := goja.AssertFunction(call.Argument(0)); ok {
		made := int64(0)
		call.Arguments[0] = m.native("", func(c goja.FunctionCall) goja.Value {
			v := mustCall(inner, c.This, c.Arguments...)
			if made += 1 + items(v); made > maxItems {
				m.tooLarge("flatMap", maxItems, "items")
			}
			return v
		})
	}
	return f(call)
}

func (m *machine) hookBigInts(g *hooks) {
	named := func(goja.FunctionCall) {
		if m.cur != nil && !m.cur.p.bigints {
			panic(m.rt.NewTypeError("a script that works with BigInts must name BigInt, or have one as a literal"))
		}
	}
	// text looks at the arguments up to last that become a BigInt or a number.
	text := func(last int) func(goja.FunctionCall) {
		return func(call goja.FunctionCall) {
			named(call)
			for i, v := range call.Arguments[:min(last+1, len(call.Arguments))] {
				if obj, ok := v.(*goja.Object); ok {
					v = mustCall(m.primitive, goja.Undefined(), obj, m.rt.ToValue("number"))
					call.Arguments[i] = v
				}
				m.limitBigText(v)
			}
		}
	}
	g.beforeFunc(g.get("BigInt"), text(0))
	for _, name := range []string{"asIntN", "asUintN"} {
		g.before("BigInt", name, func(call goja.FunctionCall) {
			if bits := call.Argument(0); !goja.IsBigInt(bits) && bits.ToInteger() > maxBigInt {
				m.tooLarge("BigInt."+name, maxBigInt, "bits")
			}
			text(1)(call)
		})
	}
	// A text that is assigned to an element becomes a BigInt in a step that nothing guards.
	for _, name := range []string{"BigInt64Array", "BigUint64Array"} {
		g.beforeFunc(g.get(name), func(goja.FunctionCall) {
			if m.cur != nil {
				panic(m.rt.NewTypeError(name + " is not offered: keep BigInts in an array; setBigInt64 of a DataView writes their bytes"))
			}
		})
	}
	for _, name := range []string{"getBigInt64", "getBigUint64"} {
		g.beforeOf(m.prototype("DataView"), name, text(0))
	}
	for _, name := range []string{"setBigInt64", "setBigUint64"} {
		g.beforeOf(m.prototype("DataView"), name, text(1))
	}
}

// limitBigText refuses text that would be read as a very long number.
func (m *machine) limitBigText(v goja.Value) {
	if goja.IsString(v) && length(v) > maxBigDigits {
		m.tooLarge("BigInt", maxBigDigits, "digits")
	}
}

// bits is the length of a BigInt, 0 of anything else.
func bits(v goja.Value) int {
	if !goja.IsBigInt(v) {
		return 0
	}
	n, _ := v.Export().(*big.Int)
	return n.BitLen()
}

// guardValues are the guards that instrument puts into scripts, in the order of guardNames.
// host.numeric and its kin are those of the prelude, which are shorter in JavaScript.
func (m *machine) setGuards(host *goja.Object) {
	set := func(name string, f func(v goja.Value)) {
		_ = host.Set(name, m.native(name[1:], func(call goja.FunctionCall) goja.Value {
			f(call.Argument(0))
			return call.Argument(0)
		}))
	}
	set("%args", func(v goja.Value) { m.limitItems("a call", v, maxSpread) })
	set("%own", func(v goja.Value) { m.limitItems("...", v, maxItems) })
	for name, hint := range map[string]string{"%text": "default", "%shown": "string"} {
		hint := m.rt.ToValue(hint)
		_ = host.Set(name, m.native(name[1:], func(call goja.FunctionCall) goja.Value {
			v := call.Argument(0)
			if obj, ok := v.(*goja.Object); ok {
				v = mustCall(m.primitive, goja.Undefined(), obj, hint)
			}
			m.checkText(v)
			return v
		}))
	}
	_ = host.Set("restOf", m.native("rest", func(call goja.FunctionCall) goja.Value {
		m.limitItems("...", call.This, maxItems)
		return m.rt.ToValue(0)
	}))
	_ = host.Set("%big", m.native("big", func(call goja.FunctionCall) goja.Value {
		v := call.Argument(0)
		if obj, ok := v.(*goja.Object); ok {
			v = mustCall(m.numeric, goja.Undefined(), obj)
		}
		if bits(v) > maxBigInt {
			m.tooLarge("BigInt", maxBigInt, "bits")
		}
		return v
	}))
	_ = host.Set("limitPower", m.native("power", m.limitPower))
	_ = host.Set("limitShift", m.native("shift", func(call goja.FunctionCall) goja.Value {
		if v := call.Argument(0); goja.IsBigInt(v) {
			if n := v.Export().(*big.Int); !n.IsInt64() || n.Int64() > maxBigInt || n.Int64() < -maxBigInt {
				m.tooLarge("BigInt", maxBigInt, "bits")
			}
		}
		return goja.Undefined()
	}))
	_ = host.Set("limitStep", m.native("step", m.limitStep))
	_ = host.Set("limitCompare", m.native("compare", func(call goja.FunctionCall) goja.Value {
		a, b := call.Argument(0), call.Argument(1)
		if goja.IsBigInt(a) {
			m.limitBigText(b)
		}
		if goja.IsBigInt(b) {
			m.limitBigText(a)
		}
		return goja.Undefined()
	}))
}

// limitPower bounds base ** exponent.
func (m *machine) limitPower(call goja.FunctionCall) goja.Value {
	base, exp := call.Argument(0), call.Argument(1)
	if !goja.IsBigInt(base) || !goja.IsBigInt(exp) {
		return goja.Undefined()
	}
	e := exp.Export().(*big.Int)
	if n := bits(base); n > 1 && (!e.IsInt64() || e.Int64() > int64(maxBigInt/(n-1))) {
		m.tooLarge("BigInt", maxBigInt, "bits")
	}
	return goja.Undefined()
}

// limitStep bounds the right side of a step such as a[f()] *= b, or <<= when its second
// argument says so.
func (m *machine) limitStep(call goja.FunctionCall) goja.Value {
	v := call.Argument(0)
	if !goja.IsBigInt(v) {
		return goja.Undefined()
	}
	n := v.Export().(*big.Int)
	if shift := call.Argument(1).ToBoolean(); !shift && n.BitLen() > maxStep || shift && n.CmpAbs(big.NewInt(maxStep)) > 0 {
		m.tooLarge("BigInt", maxStep, "bits in one step on this target; write a = a * b")
	}
	return goja.Undefined()
}
