package jsbridge

import (
	"fmt"

	"github.com/dop251/goja"

	"apiengine/fault"
)

// The runtime counts the frames of scripts only. What calls itself in Go between two of them
// (bound functions of bound functions, JSON.parse's walk with a reviver) takes the goroutine's
// stack, whose end is the end of the process. So every built-in counts itself, and so does
// each level of a walk over nested values.

// maxLevels is how many built-ins and levels of walks may work inside one another. A level
// takes some kilobytes at most, so all of them together are a small part of what Go allows a stack; and
// unwinding what has panicked through each takes time with the square of their number.
const maxLevels = 2000

// deepen counts one level more, and ends the run that has too many. Who calls it puts
// m.level back to what is returned, also after a panic; what is called by a built-in may
// leave that to it.
func (m *machine) deepen() (level int) {
	level = m.level
	if m.level++; m.level > maxLevels && m.cur != nil {
		m.cur.end(&LimitError{K: fault.LimitStack, Limit: fmt.Sprintf("%d built-ins inside one another", maxLevels)})
	}
	return level
}

// maxProxies is how many proxies one run may make. A lookup that nothing is found for goes
// through a proxy to what it stands for, and on to that object's prototype, which may be a
// proxy again: each a call inside the other, of which no built-in knows.
const maxProxies = 50_000

// countProxy is called before a proxy is made.
func (m *machine) countProxy() {
	r := m.cur
	if r == nil {
		return
	}
	if r.proxies++; r.proxies > maxProxies {
		m.tooLarge("Proxy", maxProxies, "proxies in one run")
	}
}

// guardBound makes the functions that bind makes count as built-ins do: each calls the one
// that it was made of.
func (m *machine) guardBound(f nativeCall, call goja.FunctionCall) goja.Value {
	v := f(call)
	if obj, ok := v.(*goja.Object); ok && m.cur != nil {
		if err := m.guard(obj); err != nil {
			panic(err)
		}
	}
	return v
}

// maxPrototypes is how many objects may stand behind a prototype that is set.
const maxPrototypes = 10_000

// checkPrototype refuses to set a prototype that is a proxy, or has one behind it. The
// language looks for no circle through a proxy, and a lookup in such a circle calls itself in
// Go without an end; only an object that exists already can be closed into one, so an object
// that is made with such a prototype is none.
func (m *machine) checkPrototype(v goja.Value) {
	obj, _ := v.(*goja.Object)
	for range maxPrototypes {
		if obj == nil {
			return
		}
		if obj.ExportType() == typeProxy {
			panic(m.rt.NewTypeError("a proxy cannot be set as a prototype; make the object with Object.create"))
		}
		obj = obj.Prototype()
	}
	m.tooLarge("setPrototypeOf", maxPrototypes, "prototypes")
}

// hookPrototypes looks at what is set as a prototype, in the three ways to do that.
func (m *machine) hookPrototypes(g *hooks) {
	check := func(arg int) func(goja.FunctionCall) {
		return func(call goja.FunctionCall) {
			if m.cur != nil {
				m.checkPrototype(call.Argument(arg))
			}
		}
	}
	g.before("Object", "setPrototypeOf", check(1))
	g.before("Reflect", "setPrototypeOf", check(1))
	own := mustCall(callable(g.get("Object").Get("getOwnPropertyDescriptor")), goja.Undefined(), m.objectProto, m.rt.ToValue("__proto__"))
	g.beforeOf(own.(*goja.Object), "set", check(0))
}
