package jsbridge

import (
	"fmt"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"
)

// reviver is JSON.parse's walk over what was parsed, with its second argument. The function
// may put new values before the walk, so its depth is not that of the text.
type reviver struct {
	m     *machine
	f     goja.Callable
	depth int
}

// walk calls the function with each value below holder[key], the inner ones first, and
// returns what it makes of holder[key].
func (w *reviver) walk(holder *goja.Object, key unistring.String) goja.Value {
	m := w.m
	m.check()
	v := m.get(holder, key)
	if obj, ok := v.(*goja.Object); ok {
		w.inside(obj)
	}
	return mustCall(w.f, holder, m.nameText(key), v)
}

func (w *reviver) inside(obj *goja.Object) {
	m := w.m
	if w.depth++; w.depth > maxJSONDepth {
		panic(m.newError("RangeError", fmt.Sprintf("JSON.parse: the reviver makes more than %d levels", maxJSONDepth)))
	}
	level := m.deepen()
	if m.isArray(obj) {
		n := orUndefined(obj.Get("length")).ToInteger()
		if n > maxItems {
			m.tooLarge("JSON.parse", maxItems, "items")
		}
		for i := range n {
			w.replace(obj, indexName(i))
		}
	} else {
		if items(obj) > maxItems { // a typed array, whose elements are its keys
			m.tooLarge("JSON.parse", maxItems, "items")
		}
		for _, key := range m.keys(obj) {
			w.replace(obj, key)
		}
	}
	m.level = level
	w.depth--
}

// replace puts what the function makes of obj[key] in its place, where obj lets it.
func (w *reviver) replace(obj *goja.Object, key unistring.String) {
	v := w.walk(obj, key)
	if lossy(key) {
		w.replaceLossy(obj, w.m.nameText(key), v)
		return
	}
	if goja.IsUndefined(v) {
		_ = obj.Delete(key.String())
		return
	}
	_ = obj.DefineDataProperty(key.String(), v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
}

func (w *reviver) replaceLossy(obj *goja.Object, key, v goja.Value) {
	m := w.m
	if goja.IsUndefined(v) {
		mustCall(m.reflectDelete, goja.Undefined(), obj, key)
		return
	}
	own := m.rt.NewObject()
	for _, flag := range []string{"writable", "enumerable", "configurable"} {
		_ = own.Set(flag, true)
	}
	_ = own.Set("value", v)
	mustCall(m.reflectDefine, goja.Undefined(), obj, key, own)
}
