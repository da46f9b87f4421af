package jsbridge

import (
	"math"
	"strconv"

	"github.com/dop251/goja"

	"apiengine/digits"
)

const maxSafeInteger = digits.MaxSafe

// safeDigits is the length of the shortest integer beyond maxSafeInteger.
const safeDigits = 16

func (p *jsonScan) numberValue(text string, integer bool) goja.Value {
	if integer {
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil && n >= -maxSafeInteger && n <= maxSafeInteger && (n != 0 || text[0] != '-') {
			return p.m.in.intValue(n)
		}
		if p.exact && text != "-0" && !digits.Kept(text) {
			return p.m.rt.ToValue(text)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return goja.NaN()
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxSafeInteger {
		return p.m.rt.ToValue(f) // as an integer
	}
	return p.m.in.doubleValue(f)
}

// number writes a number by the rules of JSON.stringify. Where the text is read by another
// script, a large whole number whose digits would become a string there has an exponent.
func (w *jsonWriter) number(f float64) {
	switch abs := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		w.buf = append(w.buf, "null"...)
	case abs >= 1e-6 && abs < 1e21:
		start := len(w.buf)
		w.buf = strconv.AppendFloat(w.buf, f, 'f', -1, 64)
		if w.inward && abs > maxSafeInteger && !digits.Kept(string(w.buf[start:])) {
			w.buf = strconv.AppendFloat(w.buf[:start], f, 'e', -1, 64)
		}
	default:
		w.buf = append(w.buf, w.r.m.rt.ToValue(f).String()...)
	}
}
