package jsbridge

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"

	"apiengine/fault"
)

// How large a single built-in may make something. A built-in cannot be interrupted, and
// an allocation that fails ends the process, so the size is checked before it starts.
const (
	maxString = 16 << 20
	maxItems  = 1 << 20
	maxBuffer = 64 << 20
	maxSpread = 64 << 10
	maxNested = 200
)

// wrap puts check in front of the built-in method name of obj.
func (m *machine) wrap(obj *goja.Object, name string, check func(call goja.FunctionCall)) {
	original := obj.Get(name)
	f, ok := goja.AssertFunction(orUndefined(original))
	if !ok {
		return
	}
	wrapped := m.native(name, func(call goja.FunctionCall) goja.Value {
		check(call)
		return mustCall(f, call.This, call.Arguments...)
	})
	_ = wrapped.DefineDataProperty("length", original.(*goja.Object).Get("length"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	hide(obj, name, wrapped)
}

func (m *machine) tooLarge(name string, limit int, what string) {
	panic(m.newError("RangeError", fmt.Sprintf("%s: more than %d %s", name, limit, what)))
}

func (m *machine) prototype(class string) *goja.Object {
	return m.rt.Get(class).(*goja.Object).Get("prototype").(*goja.Object)
}

func (m *machine) installCaps() {
	str := m.prototype("String")
	m.wrap(str, "repeat", func(call goja.FunctionCall) {
		if n := call.Argument(0).ToInteger(); n > 0 && n > maxString/max(1, length(call.This)) {
			m.tooLarge("repeat", maxString, "characters")
		}
	})
	for _, name := range []string{"padStart", "padEnd"} {
		m.wrap(str, name, func(call goja.FunctionCall) {
			if call.Argument(0).ToInteger() > maxString {
				m.tooLarge(name, maxString, "characters")
			}
		})
	}
	m.wrap(str, "split", func(call goja.FunctionCall) {
		if by := call.Argument(0); length(call.This) > maxItems && goja.IsString(by) &&
			(length(by) == 0 || strings.Count(call.This.String(), by.String()) >= maxItems) {
			m.tooLarge("split", maxItems, "items")
		}
	})
	m.wrap(str, "replaceAll", func(call goja.FunctionCall) {
		if find, with := call.Argument(0), call.Argument(1); goja.IsString(find) && goja.IsString(with) {
			s := call.This.String()
			if n := int64(strings.Count(s, find.String())); n*length(with)+int64(len(s)) > maxString {
				m.tooLarge("replaceAll", maxString, "characters")
			}
		}
	})
	m.capArrays()
	m.capArguments()
}

// length is that of a string or of any object that has one.
func length(v goja.Value) int64 {
	switch v := v.(type) {
	case goja.String:
		return int64(v.Length())
	case *goja.Object:
		return orUndefined(v.Get("length")).ToInteger()
	}
	return 0
}

// capArrays guards every array method that walks the whole length in Go, and the depth of
// those that go into nested arrays.
func (m *machine) capArrays() {
	proto := m.prototype("Array")
	for _, name := range strings.Fields(`copyWithin fill indexOf lastIndexOf includes reverse sort splice slice
		concat forEach map filter some every find findIndex findLast findLastIndex reduce reduceRight shift
		unshift toReversed toSorted toSpliced with flatMap`) {
		m.wrap(proto, name, func(call goja.FunctionCall) {
			m.check()
			if length(call.This) > maxItems {
				m.tooLarge(name, maxItems, "items")
			}
		})
	}
	for _, name := range []string{"join", "toString", "toLocaleString", "flat"} {
		m.wrapNested(proto, name)
	}
	array := m.rt.Get("Array").(*goja.Object)
	m.wrap(array, "from", func(call goja.FunctionCall) {
		if length(call.Argument(0)) > maxItems {
			m.tooLarge("Array.from", maxItems, "items")
		}
	})
}

// wrapNested guards a method that calls itself for nested arrays without any script frame
// in between, so that only a count of its own ends it.
func (m *machine) wrapNested(proto *goja.Object, name string) {
	f := callable(proto.Get(name))
	depth := 0
	hide(proto, name, m.native(name, func(call goja.FunctionCall) goja.Value {
		m.check()
		if n := length(call.This); n > maxItems {
			m.tooLarge(name, maxItems, "items")
		}
		if depth >= maxNested {
			panic(m.newError("RangeError", fmt.Sprintf("%s: nested more than %d deep", name, maxNested)))
		}
		if name == "flat" {
			m.checkFlat(call)
		}
		depth++
		defer func() { depth-- }()
		if name == "join" {
			return m.join(call)
		}
		return mustCall(f, call.This, call.Arguments...)
	}))
}

// join is Array.prototype.join with an eye on what it makes.
func (m *machine) join(call goja.FunctionCall) goja.Value {
	obj := call.This.ToObject(m.rt)
	n, sep := length(obj), goja.Value(m.rt.ToValue(","))
	if v := call.Argument(0); !goja.IsUndefined(v) {
		sep = v
	}
	text := m.text(sep)
	var out goja.StringBuilder
	size := int64(text.Length()) * max(0, n-1)
	for i := range n {
		if i%1024 == 0 {
			m.check()
		}
		if i > 0 {
			out.WriteString(text)
		}
		v := orUndefined(obj.Get(strconv.FormatInt(i, 10)))
		if goja.IsUndefined(v) || goja.IsNull(v) {
			continue
		}
		item := m.text(v)
		if size += int64(item.Length()); size > maxString {
			m.tooLarge("join", maxString, "characters")
		}
		out.WriteString(item)
	}
	return out.String()
}

// text is what the language makes of v where it wants a text.
func (m *machine) text(v goja.Value) goja.String {
	if obj, ok := v.(*goja.Object); ok {
		v = obj.ToString()
	}
	if s, ok := v.(goja.String); ok {
		return s
	}
	if _, ok := v.(*goja.Symbol); ok {
		panic(m.rt.NewTypeError("Cannot convert a Symbol value to a string"))
	}
	return m.rt.ToValue(v.String()).(goja.String)
}

// checkFlat counts what flat would make: shared arrays double with every level.
func (m *machine) checkFlat(call goja.FunctionCall) {
	levels := int64(1)
	if v := call.Argument(0); !goja.IsUndefined(v) {
		levels = v.ToInteger()
	}
	n := 0
	var count func(obj *goja.Object, left int64, depth int)
	count = func(obj *goja.Object, left int64, depth int) {
		if depth > maxNested {
			m.tooLarge("flat", maxNested, "levels")
		}
		for _, k := range obj.Keys() {
			if n++; n > maxItems {
				m.tooLarge("flat", maxItems, "items")
			}
			if inner, ok := obj.Get(k).(*goja.Object); ok && left > 0 && m.isArray(inner) {
				count(inner, left-1, depth+1)
			}
		}
	}
	if obj, ok := call.This.(*goja.Object); ok {
		count(obj, levels, 0)
	}
}

// capArguments guards the ways to call with a list of arguments.
func (m *machine) capArguments() {
	guard := func(name string, arg int) func(goja.FunctionCall) {
		return func(call goja.FunctionCall) {
			if length(call.Argument(arg)) > maxSpread {
				m.tooLarge(name, maxSpread, "arguments")
			}
		}
	}
	m.wrap(m.prototype("Function"), "apply", guard("apply", 1))
	reflect := m.rt.Get("Reflect").(*goja.Object)
	m.wrap(reflect, "apply", guard("Reflect.apply", 2))
	m.wrap(reflect, "construct", guard("Reflect.construct", 1))
	m.wrap(m.rt.Get("String").(*goja.Object), "raw", func(call goja.FunctionCall) {
		if obj, ok := call.Argument(0).(*goja.Object); ok && length(orUndefined(obj.Get("raw"))) > maxItems {
			m.tooLarge("String.raw", maxItems, "items")
		}
	})
}

// capGenerators bounds how deep generators run one another: yield* takes no frame of the
// call stack that the runtime counts.
func (m *machine) capGenerators() error {
	v, err := m.rt.RunString(`Object.getPrototypeOf(function*(){}).prototype`)
	if err != nil {
		return err
	}
	proto := v.(*goja.Object)
	depth := 0
	for _, name := range []string{"next", "return", "throw"} {
		f := callable(proto.Get(name))
		hide(proto, name, m.native(name, func(call goja.FunctionCall) goja.Value {
			if depth >= maxNested && m.cur != nil {
				m.cur.end(&LimitError{K: fault.LimitStack, Limit: fmt.Sprintf("%d nested generators", maxNested)})
			}
			depth++
			defer func() { depth-- }()
			return mustCall(f, call.This, call.Arguments...)
		}))
	}
	return nil
}

// ---- regular expressions

// regexLimit is the longest that one match may take.
const regexLimit = time.Second

// limitRegex sets the time after which a backtracking match gives up. The library has one
// value for the whole process and reads it when a pattern is compiled, so it is the same
// for every Bridge and is set before any source is compiled.
var limitRegex = sync.OnceFunc(func() { regexp2.DefaultMatchTimeout = regexLimit })

// installRegExpLimit ends the run when one regular expression call took as long as the
// match limit: goja turns a match that gave up into "no match", which must not go on.
// With exec replaced, goja calls it for every match that its other methods make.
func (m *machine) installRegExpLimit() {
	m.timed(m.prototype("RegExp"), "exec")
	m.timed(m.prototype("RegExp"), "test")
}

// noMatch tells that exec or test found nothing, as both say too when the match gave up.
func noMatch(v goja.Value) bool { return !v.ToBoolean() }

func (m *machine) timed(obj *goja.Object, name string) {
	const limit = regexLimit * 9 / 10 // the library's clock ticks coarsely
	f := callable(obj.Get(name))
	hide(obj, name, m.native(name, func(call goja.FunctionCall) goja.Value {
		start := time.Now()
		v := mustCall(f, call.This, call.Arguments...)
		if name == "exec" && m.growing != nil {
			m.countMatch(v)
		}
		if m.cur != nil && time.Since(start) >= limit && noMatch(v) { // cur is nil while the prelude runs, on a machine that stalls
			m.check()
			m.cur.end(&LimitError{K: fault.LimitRegex, Limit: fmt.Sprintf("%v in one regular expression", regexLimit)})
		}
		return v
	}))
}
