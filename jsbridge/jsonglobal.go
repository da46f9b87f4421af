package jsbridge

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"
)

// installJSON replaces JSON.parse and JSON.stringify: goja's own end the process on deep
// input and take several times as long (BenchmarkJSON).
func (m *machine) installJSON() {
	obj := m.rt.Get("JSON").(*goja.Object)
	for name, f := range map[string]struct {
		params int
		call   nativeCall
	}{"parse": {2, m.jsonParse}, "stringify": {3, m.jsonStringify}} {
		fn := m.native(name, f.call)
		_ = fn.DefineDataProperty("length", m.rt.ToValue(f.params), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
		hide(obj, name, fn)
	}
	for _, name := range []string{"rawJSON", "isRawJSON"} { // ours would not heed what they make
		_ = obj.Delete(name)
	}
}

func (m *machine) jsonParse(call goja.FunctionCall) goja.Value {
	r := m.cur
	r.checkStopped()
	text := m.text(call.Argument(0)).String()
	var v goja.Value
	var err error
	f, hasReviver := goja.AssertFunction(call.Argument(1))
	if hasReviver {
		v, err = parseJSON(m, text, false)
	} else {
		v, err = r.jsonValue(text, false)
	}
	var wrong *jsonSyntaxError
	switch {
	case errors.As(err, &wrong) && wrong.large:
		panic(m.newError("RangeError", "JSON.parse: "+err.Error()))
	case err != nil:
		panic(m.newError("SyntaxError", err.Error()))
	case !hasReviver:
		return v
	}
	holder := m.rt.NewObject()
	_ = holder.Set("", v)
	return (&reviver{m: m, f: f}).walk(holder, "")
}

// newError makes an error of one of the language's own classes.
func (m *machine) newError(class, msg string) *goja.Object {
	obj, err := m.rt.New(m.rt.Get(class), m.rt.ToValue(msg))
	if err != nil {
		panic(err)
	}
	return obj
}

func (m *machine) jsonStringify(call goja.FunctionCall) goja.Value {
	r := m.cur
	r.checkStopped()
	w := jsonWriter{r: r, max: maxStringify, exact: true, gap: m.gapOf(call.Argument(2)), buf: m.scratch[:0]}
	m.scratch = nil // it is in use
	if f, ok := goja.AssertFunction(call.Argument(1)); ok {
		w.replacer = f
	} else if list, ok := call.Argument(1).(*goja.Object); ok && m.isArray(list) {
		w.allow = m.keyList(list)
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

// gapOf is the third argument of JSON.stringify: a number of spaces, or a text.
func (m *machine) gapOf(v goja.Value) string {
	v = unboxText(v)
	switch {
	case goja.IsNumber(v):
		return strings.Repeat(" ", int(min(10, max(0, v.ToInteger()))))
	case goja.IsString(v):
		units := utf16.Encode([]rune(v.String()))
		return string(utf16.Decode(units[:min(10, len(units))]))
	}
	return ""
}

// unboxText is the number or text that new Number(3) or new String('ab') stands for; what
// is neither stays as it is.
func unboxText(v goja.Value) goja.Value {
	if obj, ok := v.(*goja.Object); ok {
		switch obj.ClassName() {
		case "Number":
			return obj.ToNumber()
		case "String":
			return obj.ToString()
		}
	}
	return v
}

// keyList reads the second argument of JSON.stringify when it is a list of keys.
func (m *machine) keyList(list *goja.Object) []unistring.String {
	out := []unistring.String{}
	seen := map[unistring.String]bool{}
	for i := range orUndefined(list.Get("length")).ToInteger() {
		if i%1024 == 0 {
			m.check()
		}
		v := orUndefined(list.Get(strconv.FormatInt(i, 10)))
		if obj, ok := v.(*goja.Object); ok && (obj.ClassName() == "Number" || obj.ClassName() == "String") {
			v = obj.ToString() // of a number too, by the language
		}
		if !goja.IsString(v) && !goja.IsNumber(v) {
			continue
		}
		name := textName(m.text(v))
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
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
