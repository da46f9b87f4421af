package jsbridge

import (
	"strings"

	"github.com/dop251/goja"
)

// replacement is what a replace with a template puts in the place of one match.
type replacement struct {
	text    int64 // characters that are there each time
	matches int64 // $&, $1, $<name>: at most the match
	around  int64 // $` and $': at most the whole text
}

func readReplacement(template string) replacement {
	r := replacement{text: int64(len(template))}
	for rest := template; ; {
		i := strings.IndexByte(rest, '$')
		if i < 0 || i+1 >= len(rest) {
			return r
		}
		switch rest[i+1] {
		case '`', '\'':
			r.around++
		case '$':
		default:
			r.matches++
		}
		rest = rest[i+2:]
	}
}

// growth adds up what one replace has made so far.
type growth struct {
	m       *machine
	each    replacement
	subject int64
	made    int64
}

func (g *growth) match(n int64) {
	g.add(g.each.text + g.each.matches*n + g.each.around*g.subject)
}

func (g *growth) add(n int64) {
	if g.made += n; g.made > maxString {
		g.m.tooLarge("replace", maxString, "characters")
	}
}

// hookReplace bounds what replace and replaceAll make. Each match of a pattern comes by
// RegExp.prototype.exec, which counts it while a replace is going on.
func (m *machine) hookReplace(h *hooks) {
	text := m.prototype("String")
	for _, name := range []string{"replace", "replaceAll"} {
		h.aroundOf(text, name, func(f nativeCall, call goja.FunctionCall) goja.Value {
			if find := call.Argument(0); goja.IsString(find) && goja.IsString(call.This) {
				m.textReplace(name, &call)
			}
			return f(call)
		})
	}
	symbol := goja.SymReplace
	fn, ok := m.prototype("RegExp").GetSymbol(symbol).(*goja.Object)
	if !ok {
		h.fail("RegExp.prototype[Symbol.replace]")
		return
	}
	h.around(fn, func(f nativeCall, call goja.FunctionCall) goja.Value {
		outer := m.growing
		defer func() { m.growing = outer }()
		g := &growth{m: m, subject: length(call.Argument(0))}
		m.growing = nil
		if !m.countCallback(g, &call) {
			g.each = readReplacement(call.Argument(1).String())
			m.growing = g
		}
		return f(call)
	})
}

// textReplace bounds a replace of a text by a text.
func (m *machine) textReplace(name string, call *goja.FunctionCall) {
	g := &growth{m: m, subject: length(call.This)}
	if m.countCallback(g, call) {
		return
	}
	find, count := call.Argument(0).String(), int64(1)
	if name == "replaceAll" {
		count = int64(strings.Count(call.This.String(), find))
	}
	g.each = readReplacement(call.Argument(1).String())
	g.match(length(call.Argument(0)))
	g.made *= count
	g.add(0)
}

// countCallback makes a replacing function of call count what it returns; false when the
// replacement is a text.
func (m *machine) countCallback(g *growth, call *goja.FunctionCall) bool {
	inner, ok := goja.AssertFunction(call.Argument(1))
	if !ok {
		return false
	}
	args := append([]goja.Value{}, call.Arguments...)
	args[1] = m.native("", func(c goja.FunctionCall) goja.Value {
		outer := m.growing
		m.growing = nil
		v := mustCall(inner, c.This, c.Arguments...)
		m.growing = outer
		g.add(length(v))
		return v
	})
	call.Arguments = args
	return true
}

// countMatch adds a match that exec has found for the replace going on.
func (m *machine) countMatch(v goja.Value) {
	if found, ok := v.(*goja.Object); ok {
		m.growing.match(length(orUndefined(found.Get("0"))))
	}
}
