package jsbridge

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-sourcemap/sourcemap"
)

// esbuild says where each piece of its output comes from, with columns in UTF-16 units from
// 0. The script engine asks by bytes from 1, and shows what it gets as it is, in the text of
// error.stack too. So the map is rewritten once, and every position comes out as the author's.

// segment is one entry of a source map; all numbers count from 0.
type segment struct{ line, col, srcLine, srcCol int }

// authorMap rewrites esbuild's map of code for lookups by the engine. place turns a line and
// a column from 0 of what esbuild was given into the author's.
func authorMap(name, code string, raw []byte, place func(line, col int) (int, int)) (*sourcemap.Consumer, error) {
	var in struct{ Mappings string }
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	list, err := readMappings(in.Mappings)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(code, "\n")
	for i := range list {
		s := &list[i]
		if s.line < len(lines) {
			s.col = byteColumn(lines[s.line], s.col) + 1
		}
		s.srcLine, s.srcCol = place(s.srcLine, s.srcCol)
		s.srcCol++
	}
	if n := len(list); n > 0 { // the last entry holds to the end of the text
		end := list[n-1]
		end.line, end.col = len(lines)+1, 0
		list = append(list, end)
	}
	out, err := json.Marshal(map[string]any{"version": 3, "sources": []string{path.Base(name)}, "names": []string{}, "mappings": writeMappings(list)})
	if err != nil {
		return nil, err
	}
	return sourcemap.Parse("", out)
}

// byteColumn is the offset in bytes of the n-th UTF-16 unit of line.
func byteColumn(line string, n int) int {
	at := 0
	for at < len(line) && n > 0 {
		r, size := utf8.DecodeRuneInString(line[at:])
		at, n = at+size, n-utf16.RuneLen(r)
	}
	return at
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// readMappings reads the "mappings" of a source map of version 3 with one source.
func readMappings(text string) ([]segment, error) {
	var out []segment
	var at segment
	for i, line := range strings.Split(text, ";") {
		at.line, at.col = i, 0
		for part := range strings.SplitSeq(line, ",") {
			if part == "" {
				continue
			}
			deltas, err := readNumbers(part)
			if err != nil || len(deltas) == 2 || len(deltas) == 3 {
				return nil, fmt.Errorf("the source map has the segment %q", part)
			}
			at.col += deltas[0]
			if len(deltas) >= 4 {
				at.srcLine, at.srcCol = at.srcLine+deltas[2], at.srcCol+deltas[3]
				out = append(out, at)
			}
		}
	}
	return out, nil
}

// readNumbers reads base64 VLQ numbers: five bits a digit, the sign in the lowest.
func readNumbers(s string) ([]int, error) {
	var out []int
	n, shift := 0, 0
	for i := range len(s) {
		d := strings.IndexByte(base64Digits, s[i])
		if d < 0 || shift > 40 {
			return nil, fmt.Errorf("%q is no number", s)
		}
		n |= (d & 31) << shift
		if shift += 5; d&32 != 0 {
			continue
		}
		if n&1 != 0 {
			n = -n
		}
		out = append(out, n/2)
		n, shift = 0, 0
	}
	if shift != 0 || len(out) == 0 {
		return nil, fmt.Errorf("%q ends early", s)
	}
	return out, nil
}

func writeMappings(list []segment) string {
	var b strings.Builder
	var last segment
	for i, s := range list {
		for ; last.line < s.line; last.line++ {
			b.WriteByte(';')
			last.col = 0
		}
		if i > 0 && list[i-1].line == s.line {
			b.WriteByte(',')
		}
		for _, n := range []int{s.col - last.col, 0, s.srcLine - last.srcLine, s.srcCol - last.srcCol} {
			writeNumber(&b, n)
		}
		last = s
	}
	return b.String()
}

func writeNumber(b *strings.Builder, n int) {
	v := n << 1
	if n < 0 {
		v = -n<<1 | 1
	}
	for ; v > 31; v >>= 5 {
		b.WriteByte(base64Digits[v&31|32])
	}
	b.WriteByte(base64Digits[v])
}
