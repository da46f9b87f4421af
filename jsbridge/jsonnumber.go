package jsbridge

import (
	"math"
	"strconv"

	"github.com/dop251/goja"
)

const maxSafeInteger = 1<<53 - 1

// safeDigits is the length of the shortest integer beyond maxSafeInteger.
const safeDigits = 16

// keepsDigits tells whether the digits of an integer become a number that is exactly this
// integer and that JavaScript prints with the same digits. 2^53 and 10^18 do; 2^53+1 does
// not, and neither does 2^60, which a double holds but prints as 1152921504606847000: as a
// number, a key like this would be another one in every text that is made of it.
func keepsDigits(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && math.Abs(f) < 1e21 && strconv.FormatFloat(f, 'f', -1, 64) == text && strconv.FormatFloat(f, 'f', 0, 64) == text
}

func (p *jsonScan) numberValue(text string, integer bool) goja.Value {
	if integer {
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil && n >= -maxSafeInteger && n <= maxSafeInteger && (n != 0 || text[0] != '-') {
			return p.m.in.intValue(n)
		}
		if p.exact && text != "-0" && !keepsDigits(text) {
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
		if w.inward && abs > maxSafeInteger && !keepsDigits(string(w.buf[start:])) {
			w.buf = strconv.AppendFloat(w.buf[:start], f, 'e', -1, 64)
		}
	default:
		w.buf = append(w.buf, w.r.m.rt.ToValue(f).String()...)
	}
}
