package jsbridge

import (
	"fmt"

	"github.com/dop251/goja"
)

// hooks puts Go code before or around built-ins without changing which function they are
// (see guard). It keeps the first failure.
type hooks struct {
	m   *machine
	err error
}

// get is a global object or function.
func (h *hooks) get(name string) *goja.Object { return h.m.rt.Get(name).(*goja.Object) }

func (h *hooks) before(global, name string, check func(goja.FunctionCall)) {
	h.beforeOf(h.get(global), name, check)
}

func (h *hooks) beforeOf(obj *goja.Object, name string, check func(goja.FunctionCall)) {
	h.aroundOf(obj, name, func(f nativeCall, call goja.FunctionCall) goja.Value {
		check(call)
		return f(call)
	})
}

func (h *hooks) aroundOf(obj *goja.Object, name string, with func(nativeCall, goja.FunctionCall) goja.Value) {
	fn, ok := obj.Get(name).(*goja.Object)
	if !ok {
		h.fail(name)
		return
	}
	h.around(fn, with)
}

func (h *hooks) around(fn *goja.Object, with func(nativeCall, goja.FunctionCall) goja.Value) {
	native, err := nativeOf(fn)
	if err != nil || native.call == nil {
		h.fail(fn.String())
		return
	}
	if f := *native.call; f != nil {
		*native.call = func(call goja.FunctionCall) goja.Value { return with(f, call) }
	}
}

// beforeFunc guards a function that is a constructor too.
func (h *hooks) beforeFunc(fn *goja.Object, check func(goja.FunctionCall)) {
	h.around(fn, func(f nativeCall, call goja.FunctionCall) goja.Value {
		check(call)
		return f(call)
	})
	native, _ := nativeOf(fn)
	if native.construct == nil || *native.construct == nil {
		return
	}
	f := *native.construct
	*native.construct = func(args []goja.Value, target *goja.Object) *goja.Object {
		check(goja.FunctionCall{Arguments: args})
		return f(args, target)
	}
}

func (h *hooks) fail(name string) {
	if h.err == nil {
		h.err = fmt.Errorf("%w: %s", errNativeField, name)
	}
}
