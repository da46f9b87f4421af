package jsbridge

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"
)

func appendString(buf []byte, s goja.String) []byte {
	if out, ok := appendText(buf, s.String()); ok {
		return out
	}
	buf = append(buf, '"')
	for i := 0; i < s.Length(); i++ {
		c := rune(s.CharAt(i))
		switch {
		case c >= 0xd800 && c < 0xdc00 && i+1 < s.Length() && s.CharAt(i+1)&0xfc00 == 0xdc00:
			i++
			buf = utf8.AppendRune(buf, (c-0xd800)<<10+(rune(s.CharAt(i))-0xdc00)+0x10000)
		case c >= 0xd800 && c < 0xe000:
			buf = fmt.Appendf(buf, `\u%04x`, c)
		case c < utf8.RuneSelf:
			buf = appendASCII(buf, byte(c))
		default:
			buf = utf8.AppendRune(buf, c)
		}
	}
	return append(buf, '"')
}

// appendText appends a text as a JSON string; false where it takes more than its bytes.
func appendText(buf []byte, s string) ([]byte, bool) {
	if !isASCII(s) && strings.ContainsRune(s, utf8.RuneError) {
		return buf, false
	}
	return appendQuoted(buf, s), true
}

func appendName(buf []byte, name unistring.String) []byte {
	switch {
	case name.AsUtf16() == nil:
		return appendQuoted(buf, string(name))
	case lossy(name):
		return appendString(buf, goja.StringFromUTF16(name.AsUtf16()[1:]))
	}
	return appendQuoted(buf, name.String())
}

// appendQuoted appends s as a JSON string.
func appendQuoted(buf []byte, s string) []byte {
	buf = append(buf, '"')
	start := 0
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			buf = appendASCII(append(buf, s[start:i]...), c)
			start = i + 1
		}
	}
	return append(append(buf, s[start:]...), '"')
}

func appendASCII(buf []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(buf, '\\', c)
	case '\n':
		return append(buf, '\\', 'n')
	case '\r':
		return append(buf, '\\', 'r')
	case '\t':
		return append(buf, '\\', 't')
	case '\b':
		return append(buf, '\\', 'b')
	case '\f':
		return append(buf, '\\', 'f')
	}
	if c < ' ' {
		return fmt.Appendf(buf, `\u%04x`, c)
	}
	return append(buf, c)
}
