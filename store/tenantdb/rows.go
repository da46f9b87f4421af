package tenantdb

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"apiengine/digits"
)

// maxSafe is the largest integer that every double up to it can hold.
const maxSafe = digits.MaxSafe

type shape int

const (
	discard shape = iota // count nothing, keep nothing
	objects              // [{"a":1},...]
	arrays               // [[1],...]
	scalar               // the first column of the first row
)

// rowWriter turns a result into JSON text while it comes in, within the limits.
type rowWriter struct {
	shape
	maxRows, maxBytes int

	names []string
	keys  [][]byte // `"name":`; nil where a later column has the same name
	buf   []byte
	n     int  // rows
	some  bool // the row that is being written has a value
}

func (w *rowWriter) columns(names []string) {
	w.names = names
	if w.shape == objects || w.shape == arrays {
		w.buf = append(make([]byte, 0, 512), '[')
	}
	if w.shape != objects {
		return
	}
	w.keys = make([][]byte, len(names))
	last := make(map[string]int, len(names))
	for i, name := range names {
		last[name] = i
	}
	for i, name := range names {
		if last[name] == i {
			w.keys[i] = append(appendText(nil, name), ':')
		}
	}
}

func (w *rowWriter) openRow() {
	w.some = false
	if w.shape == scalar || w.shape == discard {
		return
	}
	if w.n > 0 {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, map[bool]byte{true: '{', false: '['}[w.shape == objects])
}

// wants reports whether column i of this row is to be appended to buf, and writes what
// stands before it.
func (w *rowWriter) wants(i int) bool {
	switch w.shape {
	case discard:
		return false
	case scalar:
		return i == 0 && w.n == 0
	}
	if w.shape == objects && w.keys[i] == nil {
		return false
	}
	if w.some {
		w.buf = append(w.buf, ',')
	}
	w.some = true
	if w.shape == objects {
		w.buf = append(w.buf, w.keys[i]...)
	}
	return true
}

// closeRow ends the row; its error ends the query.
func (w *rowWriter) closeRow() error {
	w.n++
	if len(w.buf) > w.maxBytes {
		return tooLarge("bytes", w.maxBytes)
	}
	switch w.shape {
	case objects:
		w.buf = append(w.buf, '}')
	case arrays:
		w.buf = append(w.buf, ']')
	default:
		return nil
	}
	if w.n > w.maxRows {
		return tooLarge("rows", w.maxRows)
	}
	return nil
}

// json is the whole result.
func (w *rowWriter) json() []byte {
	switch {
	case w.shape == scalar && w.n == 0:
		return []byte("null")
	case w.shape == scalar:
		return w.buf
	case w.buf == nil: // the statement has no result
		return []byte("[]")
	}
	return append(w.buf, ']')
}

// appendText appends a JSON string. What is not UTF-8 becomes U+FFFD.
func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	b, _ = jsontext.AppendQuote(b, s) // its only error is that replacement
	return b
}

// appendInt appends an integer; one that a number of JavaScript would not give back with the
// same digits (docs/scripts.md) as a string.
func appendInt(b []byte, v int64) []byte {
	if (v > maxSafe || v < -maxSafe) && !digits.Kept(strconv.FormatInt(v, 10)) {
		return append(strconv.AppendInt(append(b, '"'), v, 10), '"')
	}
	return strconv.AppendInt(b, v, 10)
}

func appendFloat(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Infinity"`...)
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs > maxSafe) { // digits alone would be an integer
		format = 'e'
	}
	return strconv.AppendFloat(b, v, format, -1, 64)
}

func appendBase64(b, raw []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), raw), '"')
}
