package jsbridge

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/dop251/goja"
)

// goja looks for an interrupt between two steps of a script, never inside a built-in. One
// built-in is bounded by the sizes that it may be given; but built-ins can call each other
// without a step of the script in between ([...{next: Array}] never ends). So each
// function of Go that a script can reach begins by looking for the interrupt itself.
//
// A function that stood in the place of another would be another function: identities,
// species and goja's own comparisons would change, and each would be an object more. So
// the Go function inside goja's function object is replaced. That field is private; a goja
// that keeps it elsewhere fails the making of the first runtime, and with it every test.

type (
	nativeCall      = func(goja.FunctionCall) goja.Value
	nativeConstruct = func([]goja.Value, *goja.Object) *goja.Object
)

var errNativeField = errors.New("jsbridge: goja keeps its native functions elsewhere than this package knows")

// native are the places of the Go functions inside a function object; nil for functions
// that are written in JavaScript.
type native struct {
	call      *nativeCall
	construct *nativeConstruct
}

func nativeOf(obj *goja.Object) (native, error) {
	_ = obj.Get("length") // goja makes some functions at their first use
	self := reflect.ValueOf(obj).Elem().FieldByName("self")
	if !self.IsValid() || self.Kind() != reflect.Interface || self.Elem().Kind() != reflect.Pointer {
		return native{}, errNativeField
	}
	impl := self.Elem().Elem()
	call, construct := impl.FieldByName("f"), impl.FieldByName("construct")
	if !call.IsValid() || !construct.IsValid() {
		if !impl.FieldByName("prg").IsValid() { // not JavaScript either
			return native{}, fmt.Errorf("%w: %s", errNativeField, impl.Type())
		}
		return native{}, nil
	}
	if call.Type() != reflect.TypeFor[nativeCall]() || construct.Type() != reflect.TypeFor[nativeConstruct]() {
		return native{}, fmt.Errorf("%w: %s", errNativeField, impl.Type())
	}
	return native{(*nativeCall)(unsafe.Pointer(call.UnsafeAddr())), (*nativeConstruct)(unsafe.Pointer(construct.UnsafeAddr()))}, nil
}

// guard makes the function object obj look for the interrupt; functions written in
// JavaScript are left as they are.
func (m *machine) guard(obj *goja.Object) error {
	n, err := nativeOf(obj)
	if err != nil || n.call == nil {
		return err
	}
	if *n.call != nil {
		*n.call = m.guardedCall(*n.call)
	}
	if *n.construct != nil {
		*n.construct = m.guardedConstruct(*n.construct)
	}
	return nil
}

func (m *machine) guardedCall(f nativeCall) nativeCall {
	return func(call goja.FunctionCall) goja.Value {
		if r := m.cur; r != nil {
			r.checkStopped()
			m.checkText(call.This)
			for _, v := range call.Arguments {
				m.checkText(v)
			}
		}
		level := m.deepen()
		defer func() { m.level = level }()
		if m.level%spellEvery == 0 {
			var v goja.Value
			spell(m.number, func() { v = f(call) })
			return v
		}
		return f(call)
	}
}

func (m *machine) guardedConstruct(f nativeConstruct) nativeConstruct {
	return func(args []goja.Value, target *goja.Object) *goja.Object {
		if r := m.cur; r != nil {
			r.checkStopped()
			for _, v := range args {
				m.checkText(v)
			}
		}
		level := m.deepen()
		defer func() { m.level = level }()
		return f(args, target)
	}
}

// checkText refuses text that only adding strings up can have made: what a built-in does
// with a text takes time and memory in proportion to it.
func (m *machine) checkText(v goja.Value) {
	if s, ok := v.(goja.String); ok && s.Length() > maxString {
		panic(m.newError("RangeError", fmt.Sprintf("a text of more than %d characters", maxString)))
	}
}
