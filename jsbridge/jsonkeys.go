package jsbridge

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"
)

// A key may hold a lone surrogate, which no text of Go can: read by goja's Get and Keys it is
// another key. So keys are unistring.String here, goja's own form, and those that a text of Go
// cannot hold are looked up by built-ins.

// unitsName is the key of these UTF-16 units.
func unitsName(units []uint16) unistring.String {
	for _, u := range units {
		if u >= utf8.RuneSelf {
			return unistring.FromUtf16(append([]uint16{unistring.BOM}, units...))
		}
	}
	return unistring.String(utf16.Decode(units))
}

// textName is the key that a text of the runtime is.
func textName(s goja.String) unistring.String {
	text := s.String()
	if !strings.ContainsRune(text, utf8.RuneError) {
		return unistring.NewFromString(text)
	}
	units := make([]uint16, s.Length())
	for i := range units {
		units[i] = s.CharAt(i)
	}
	return unitsName(units)
}

func indexName(i int64) unistring.String { return unistring.String(strconv.FormatInt(i, 10)) }

// nameText is a key as a text of the runtime.
func (m *machine) nameText(name unistring.String) goja.Value {
	if units := name.AsUtf16(); units != nil {
		return goja.StringFromUTF16(units[1:])
	}
	return m.in.textValue(string(name))
}

// lossy tells that a text of Go may not hold the key.
func lossy(name unistring.String) bool {
	return name.AsUtf16() != nil && strings.ContainsRune(name.String(), utf8.RuneError)
}

// get is obj[name]; undefined when there is none.
func (m *machine) get(obj *goja.Object, name unistring.String) goja.Value {
	if lossy(name) {
		return mustCall(m.reflectGet, goja.Undefined(), obj, m.nameText(name))
	}
	return orUndefined(obj.Get(name.String()))
}

// keys are those that Object.keys lists. Only where one may have lost a surrogate on its way
// to a text of Go is the built-in itself asked, which costs more.
func (m *machine) keys(obj *goja.Object) []unistring.String {
	texts := obj.Keys()
	if !slices.ContainsFunc(texts, func(s string) bool { return strings.ContainsRune(s, utf8.RuneError) }) {
		names := make([]unistring.String, len(texts))
		for i, s := range texts {
			names[i] = unistring.NewFromString(s)
		}
		return names
	}
	list := mustCall(m.objectKeys, goja.Undefined(), obj).(*goja.Object)
	names := make([]unistring.String, 0, 8)
	for i := range orUndefined(list.Get("length")).ToInteger() {
		if s, ok := list.Get(strconv.FormatInt(i, 10)).(goja.String); ok {
			names = append(names, textName(s))
		}
	}
	return names
}
