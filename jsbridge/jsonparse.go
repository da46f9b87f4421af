package jsbridge

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// maxJSONDepth bounds the nesting of JSON in both directions; goja's own parser and
// stringifier end the process on deep input.
const maxJSONDepth = 512

const maxSafeInteger = 1<<53 - 1

// jsonSyntaxError reports text that is not JSON; Offset counts bytes.
type jsonSyntaxError struct {
	Offset int
	Msg    string
}

func (e *jsonSyntaxError) Error() string {
	return fmt.Sprintf("%s in JSON at position %d", e.Msg, e.Offset)
}

// jsonScan walks JSON text. With a runtime it builds values, without one it only checks.
type jsonScan struct {
	s     string
	pos   int
	depth int
	rt    *goja.Runtime
	// exact makes integers that a double cannot hold strings (contract.md section 4.2);
	// without it they are rounded as JSON.parse rounds them.
	exact bool
	keep  bool // false: only check
	// root is filled instead of making a new object for the outermost value.
	root *goja.Object
}

// parseJSON turns text into plain objects and arrays of rt. A later duplicate of a key
// wins; __proto__ is a key like any other.
func parseJSON(rt *goja.Runtime, text string, exact bool) (goja.Value, error) {
	return (&jsonScan{s: text, rt: rt, exact: exact, keep: true}).document()
}

// checkJSON tells whether text is one JSON value, by the same rules as parseJSON.
func checkJSON(text string) error {
	_, err := (&jsonScan{s: text}).document()
	return err
}

func (p *jsonScan) document() (goja.Value, error) {
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	if p.space(); p.pos < len(p.s) {
		return nil, p.unexpected()
	}
	return v, nil
}

func (p *jsonScan) unexpected() error {
	if p.pos >= len(p.s) {
		return &jsonSyntaxError{Offset: p.pos, Msg: "Unexpected end"}
	}
	r, _ := utf8.DecodeRuneInString(p.s[p.pos:])
	return &jsonSyntaxError{Offset: p.pos, Msg: fmt.Sprintf("Unexpected token %q", r)}
}

func (p *jsonScan) space() {
	for p.pos < len(p.s) {
		switch p.s[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// value reads one value; nil when only checking.
func (p *jsonScan) value() (goja.Value, error) {
	p.space()
	if p.pos >= len(p.s) {
		return nil, p.unexpected()
	}
	switch c := p.s[p.pos]; {
	case c == '{' || c == '[':
		if p.depth++; p.depth > maxJSONDepth {
			return nil, &jsonSyntaxError{Offset: p.pos, Msg: fmt.Sprintf("More than %d levels", maxJSONDepth)}
		}
		p.pos++
		v, err := p.array, error(nil)
		if c == '{' {
			v = p.object
		}
		out, err := v()
		p.depth--
		return out, err
	case c == '"':
		return p.stringValue()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	return p.word()
}

func (p *jsonScan) word() (goja.Value, error) {
	for word, v := range jsonWords {
		if strings.HasPrefix(p.s[p.pos:], word) {
			p.pos += len(word)
			if !p.keep || v == nil {
				return goja.Null(), nil
			}
			return p.rt.ToValue(*v), nil
		}
	}
	return nil, p.unexpected()
}

var jsonWords = map[string]*bool{"null": nil, "true": new(true), "false": new(bool)}

// next reads the separator after an item and tells whether the container goes on.
func (p *jsonScan) next(end byte) (bool, error) {
	p.space()
	if p.pos < len(p.s) {
		switch p.s[p.pos] {
		case ',':
			p.pos++
			return true, nil
		case end:
			p.pos++
			return false, nil
		}
	}
	return false, p.unexpected()
}

func (p *jsonScan) empty(end byte) bool {
	p.space()
	if p.pos < len(p.s) && p.s[p.pos] == end {
		p.pos++
		return true
	}
	return false
}

func (p *jsonScan) array() (goja.Value, error) {
	var items []any
	for more := !p.empty(']'); more; {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		if p.keep {
			items = append(items, v)
		}
		if more, err = p.next(']'); err != nil {
			return nil, err
		}
	}
	if !p.keep {
		return nil, nil
	}
	return p.rt.NewArray(items...), nil
}

func (p *jsonScan) object() (goja.Value, error) {
	var obj *goja.Object
	if obj, p.root = p.root, nil; obj == nil && p.keep {
		obj = p.rt.NewObject()
	}
	for more := !p.empty('}'); more; {
		key, v, err := p.member()
		if err != nil {
			return nil, err
		}
		if p.keep {
			if err := putOwn(obj, key, v); err != nil {
				return nil, err
			}
		}
		if more, err = p.next('}'); err != nil {
			return nil, err
		}
	}
	if !p.keep {
		return nil, nil
	}
	return obj, nil
}

// member reads "key": value.
func (p *jsonScan) member() (string, goja.Value, error) {
	p.space()
	if p.pos >= len(p.s) || p.s[p.pos] != '"' {
		return "", nil, p.unexpected()
	}
	key, _, err := p.str()
	if err != nil {
		return "", nil, err
	}
	p.space()
	if p.pos >= len(p.s) || p.s[p.pos] != ':' {
		return "", nil, p.unexpected()
	}
	p.pos++
	v, err := p.value()
	return key, v, err
}

// putOwn makes key an own property of a plain object, also where the prototype has an
// accessor of that name.
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

func (p *jsonScan) number() (goja.Value, error) {
	start := p.pos
	if p.s[p.pos] == '-' {
		p.pos++
	}
	digits := p.digits()
	if len(digits) == 0 || len(digits) > 1 && digits[0] == '0' {
		return nil, p.unexpected()
	}
	integer := true
	if p.pos < len(p.s) && p.s[p.pos] == '.' {
		integer = false
		p.pos++
		if len(p.digits()) == 0 {
			return nil, p.unexpected()
		}
	}
	if p.pos < len(p.s) && p.s[p.pos]|0x20 == 'e' {
		integer = false
		p.pos++
		if p.pos < len(p.s) && (p.s[p.pos] == '+' || p.s[p.pos] == '-') {
			p.pos++
		}
		if len(p.digits()) == 0 {
			return nil, p.unexpected()
		}
	}
	if !p.keep {
		return nil, nil
	}
	return p.numberValue(p.s[start:p.pos], integer), nil
}

func (p *jsonScan) digits() string {
	start := p.pos
	for p.pos < len(p.s) && p.s[p.pos] >= '0' && p.s[p.pos] <= '9' {
		p.pos++
	}
	return p.s[start:p.pos]
}

func (p *jsonScan) numberValue(text string, integer bool) goja.Value {
	if integer {
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil && n >= -maxSafeInteger && n <= maxSafeInteger && (n != 0 || text[0] != '-') {
			return p.rt.ToValue(n)
		}
		if p.exact && text != "-0" {
			return p.rt.ToValue(text)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return goja.NaN()
	}
	return p.rt.ToValue(f)
}
