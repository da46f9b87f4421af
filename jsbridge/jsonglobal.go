package jsbridge

import (
	"errors"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

// installJSON replaces JSON.parse and JSON.stringify: goja's own end the process on deep
// input and take two to four times as long.
func (m *machine) installJSON() {
	obj := m.rt.Get("JSON").(*goja.Object)
	hide(obj, "parse", m.native("parse", m.jsonParse))
	hide(obj, "stringify", m.native("stringify", m.jsonStringify))
}

func (m *machine) jsonParse(call goja.FunctionCall) goja.Value {
	r := m.cur
	r.checkStopped()
	text := call.Argument(0).String()
	var v goja.Value
	var err error
	reviver, hasReviver := goja.AssertFunction(call.Argument(1))
	if hasReviver {
		v, err = parseJSON(m, text, false)
	} else {
		v, err = r.jsonValue(text, false)
	}
	if err != nil {
		panic(m.newError("SyntaxError", err.Error()))
	}
	if !hasReviver {
		return v
	}
	holder := m.rt.NewObject()
	_ = holder.Set("", v)
	return m.revive(reviver, holder, "")
}

// newError makes an error of one of the language's own classes.
func (m *machine) newError(class, msg string) *goja.Object {
	obj, err := m.rt.New(m.rt.Get(class), m.rt.ToValue(msg))
	if err != nil {
		panic(err)
	}
	return obj
}

// revive walks a freshly parsed value as JSON.parse's second argument wants it; its depth
// is that of the text.
func (m *machine) revive(f goja.Callable, holder *goja.Object, key string) goja.Value {
	m.check()
	v := orUndefined(holder.Get(key))
	if obj, ok := v.(*goja.Object); ok {
		keys := obj.Keys()
		for _, k := range keys {
			if nv := m.revive(f, obj, k); goja.IsUndefined(nv) {
				_ = obj.Delete(k)
			} else {
				_ = putOwn(obj, k, nv)
			}
		}
	}
	return mustCall(f, holder, m.rt.ToValue(key), v)
}

func (m *machine) jsonStringify(call goja.FunctionCall) goja.Value {
	r := m.cur
	r.checkStopped()
	w := jsonWriter{r: r, max: maxStringify, exact: true, gap: gapOf(call.Argument(2)), buf: m.scratch[:0]}
	m.scratch = nil // it is in use
	if f, ok := goja.AssertFunction(call.Argument(1)); ok {
		w.replacer = f
	} else if list, ok := call.Argument(1).(*goja.Object); ok && m.isArray(list) {
		w.allow = keyList(list)
	}
	var holder goja.Value = goja.Undefined()
	if w.replacer != nil {
		obj := m.rt.NewObject()
		_ = obj.Set("", call.Argument(0))
		holder = obj
	}
	wrote, err := w.write(holder, "", call.Argument(0))
	switch {
	case errors.Is(err, errSize):
		panic(m.newError("RangeError", "JSON.stringify: more than "+strconv.Itoa(maxStringify)+" bytes"))
	case err != nil:
		panic(m.rt.NewTypeError("JSON.stringify: %s", err.Error()))
	case !wrote:
		return goja.Undefined()
	}
	text := string(w.buf)
	if cap(w.buf) <= maxScratch {
		m.scratch = w.buf
	}
	return m.rt.ToValue(text)
}

// maxScratch is how much a runtime keeps for the next text.
const maxScratch = 256 << 10

func gapOf(v goja.Value) string {
	switch {
	case goja.IsNumber(v):
		return strings.Repeat(" ", int(min(10, max(0, v.ToInteger()))))
	case goja.IsString(v):
		s := v.String()
		return s[:min(10, len(s))]
	}
	return ""
}

// keyList reads the second argument of JSON.stringify when it is a list of keys.
func keyList(list *goja.Object) []string {
	out := []string{}
	seen := map[string]bool{}
	for i := range orUndefined(list.Get("length")).ToInteger() {
		v := orUndefined(list.Get(strconv.FormatInt(i, 10)))
		if !goja.IsString(v) && !goja.IsNumber(v) || seen[v.String()] {
			continue
		}
		seen[v.String()] = true
		out = append(out, v.String())
	}
	return out
}

// putOwn makes key an own property of an object, also where the prototype has an accessor
// of that name.
func putOwn(obj *goja.Object, key string, v goja.Value) error {
	if inheritedName(key) {
		return obj.DefineDataProperty(key, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	return obj.Set(key, v)
}

// inheritedName tells whether Object.prototype has a property of that name.
func inheritedName(key string) bool {
	switch key {
	case "constructor", "toString", "toLocaleString", "valueOf", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable":
		return true
	}
	return strings.HasPrefix(key, "__")
}
