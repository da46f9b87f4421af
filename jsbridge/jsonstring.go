package jsbridge

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

func (p *jsonScan) stringValue() (goja.Value, error) {
	s, units, err := p.str()
	if err != nil || !p.keep {
		return nil, err
	}
	if units != nil {
		return goja.StringFromUTF16(units), nil
	}
	if p.ascii {
		return p.m.in.textValue(s), nil
	}
	return p.m.rt.ToValue(s), nil
}

// str reads a string. units is set instead of s when it holds a lone surrogate.
func (p *jsonScan) str() (s string, units []uint16, err error) {
	start := p.pos + 1
	high := byte(0)
	for i := start; i < len(p.s); i++ {
		c := p.s[i]
		high |= c
		switch {
		case c == '"':
			p.pos = i + 1
			p.ascii = high < utf8.RuneSelf
			return p.s[start:i], nil, nil
		case c == '\\':
			return p.escaped(start, i)
		case c < ' ':
			p.pos = i
			return "", nil, p.unexpected()
		}
	}
	p.pos = len(p.s)
	return "", nil, p.unexpected()
}

// escaped reads the rest of a string that has its first backslash at i.
func (p *jsonScan) escaped(start, i int) (string, []uint16, error) {
	p.ascii = false // or it may be: whoever needs to know looks itself
	units := utf16.Encode([]rune(p.s[start:i]))
	for p.pos = i; p.pos < len(p.s); {
		switch c := p.s[p.pos]; {
		case c == '"':
			p.pos++
			return utf16String(units)
		case c == '\\':
			u, err := p.escape()
			if err != nil {
				return "", nil, err
			}
			units = append(units, u)
		case c < ' ':
			return "", nil, p.unexpected()
		default:
			r, n := utf8.DecodeRuneInString(p.s[p.pos:])
			units = utf16.AppendRune(units, r)
			p.pos += n
		}
	}
	return "", nil, p.unexpected()
}

// utf16String returns the units as UTF-8 when that loses nothing.
func utf16String(units []uint16) (string, []uint16, error) {
	runes := utf16.Decode(units)
	s := string(runes)
	if strings.ContainsRune(s, utf8.RuneError) {
		return s, units, nil
	}
	return s, nil, nil
}

func (p *jsonScan) escape() (uint16, error) {
	p.pos++
	if p.pos >= len(p.s) {
		return 0, p.unexpected()
	}
	c := p.s[p.pos]
	if c == 'u' {
		if p.pos+5 > len(p.s) {
			p.pos = len(p.s)
			return 0, p.unexpected()
		}
		n, err := strconv.ParseUint(p.s[p.pos+1:p.pos+5], 16, 16)
		if err != nil {
			return 0, &jsonSyntaxError{Offset: p.pos, Msg: "Bad Unicode escape"}
		}
		p.pos += 5
		return uint16(n), nil
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		return 0, &jsonSyntaxError{Offset: p.pos, Msg: "Bad escaped character"}
	}
	p.pos++
	return uint16("\"\\/\b\f\n\r\t"[i]), nil
}
