package jsbridge

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"

	"apiengine/digits"
)

// maxJSONDepth bounds the nesting of JSON in both directions; goja's own parser and
// stringifier end the process on deep input.
const maxJSONDepth = 512

// jsonSyntaxError reports text that is not JSON; Offset counts bytes.
type jsonSyntaxError struct {
	Offset int
	Msg    string
	large  bool // it is JSON, but more than is taken
}

func (e *jsonSyntaxError) Error() string {
	return fmt.Sprintf("%s in JSON at position %d", e.Msg, e.Offset)
}

// jsonScan walks JSON text. With a machine it builds values, without one it only checks.
type jsonScan struct {
	s     string
	pos   int
	depth int
	ascii bool     // the string that was read last is
	m     *machine // nil: only check
	// exact makes strings of the integers that digits.Kept says no to (contract.md section
	// 4.2); without it they are rounded as JSON.parse rounds them.
	exact  bool
	keep   bool // false: only check
	inside bool // there is such an integer; known when only checking
	// root is filled instead of making a new object for the outermost value.
	root  *goja.Object
	items []goja.Value // of the arrays being read, the innermost last
	width int          // keys of the last object: the next one has likely as many
}

// parseJSON turns text into plain objects and arrays of m. A later duplicate of a key
// wins; __proto__ is a key like any other.
func parseJSON(m *machine, text string, exact bool) (goja.Value, error) {
	return (&jsonScan{s: text, m: m, exact: exact, keep: true}).document()
}

// checkJSON tells whether text is one JSON value, by the same rules as parseJSON, and
// whether an integer in it becomes something else than its digits.
func checkJSON(text string) (changes bool, err error) {
	p := &jsonScan{s: text}
	_, err = p.document()
	return p.inside, err
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
		var out goja.Value
		var err error
		if c == '{' {
			out, err = p.object()
		} else {
			out, err = p.array()
		}
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
	word := ""
	switch p.s[p.pos] {
	case 'n':
		word = "null"
	case 't':
		word = "true"
	case 'f':
		word = "false"
	}
	if word == "" || !strings.HasPrefix(p.s[p.pos:], word) {
		return nil, p.unexpected()
	}
	p.pos += len(word)
	switch {
	case !p.keep || word == "null":
		return goja.Null(), nil
	case word == "true":
		return p.m.in.yes, nil
	}
	return p.m.in.no, nil
}

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
	from, n := len(p.items), 0
	for more := !p.empty(']'); more; {
		if n++; n > maxItems {
			return nil, &jsonSyntaxError{Offset: p.pos, Msg: fmt.Sprintf("More than %d items", maxItems), large: true}
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		if p.keep {
			p.items = append(p.items, v)
		}
		if more, err = p.next(']'); err != nil {
			return nil, err
		}
	}
	if !p.keep {
		return nil, nil
	}
	values := slices.Clone(p.items[from:])
	p.items = p.items[:from]
	return p.m.in.arrayOf(p.m.rt, values), nil
}

func (p *jsonScan) object() (goja.Value, error) {
	var obj *goja.Object
	var inside *plainObject
	if p.keep {
		if obj, p.root = p.root, nil; obj == nil {
			obj = p.m.rt.NewObject()
		}
		inside = p.m.in.plain(obj)
		inside.propNames = make([]unistring.String, 0, p.width)
	}
	for more := !p.empty('}'); more; {
		key, units, v, err := p.member()
		switch {
		case err != nil:
			return nil, err
		case units != nil && p.keep:
			inside.put(unitsName(units), v)
		case p.keep:
			inside.put(unistring.NewFromString(key), v)
		}
		if more, err = p.next('}'); err != nil {
			return nil, err
		}
	}
	if !p.keep {
		return nil, nil
	}
	p.width = len(inside.propNames)
	return obj, nil
}

// member reads "key": value; of the key what str gives.
func (p *jsonScan) member() (key string, units []uint16, v goja.Value, err error) {
	p.space()
	if p.pos >= len(p.s) || p.s[p.pos] != '"' {
		return "", nil, nil, p.unexpected()
	}
	if key, units, err = p.str(); err != nil {
		return "", nil, nil, err
	}
	p.space()
	if p.pos >= len(p.s) || p.s[p.pos] != ':' {
		return "", nil, nil, p.unexpected()
	}
	p.pos++
	v, err = p.value()
	return key, units, v, err
}

func (p *jsonScan) number() (goja.Value, error) {
	start := p.pos
	if p.s[p.pos] == '-' {
		p.pos++
	}
	whole := p.digits()
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
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
		p.inside = p.inside || integer && len(whole) >= safeDigits && !digits.Kept(p.s[start:p.pos])
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
