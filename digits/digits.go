// Package digits has the one rule by which an integer from outside is a number or a text to
// a script (docs/scripts.md).
package digits

import (
	"math"
	"strconv"
)

// MaxSafe is the largest integer below which every integer keeps its digits.
const MaxSafe = 1<<53 - 1

// Kept tells whether an integer, in decimal digits, becomes a number that is exactly this
// integer and that JavaScript prints with the same digits. 2^53 and 10^18 do; 2^53+1 does
// not, and neither does 2^60, which a double holds but prints as 1152921504606847000: as a
// number, a key like this would be another one in every text that is made of it.
func Kept(integer string) bool {
	f, err := strconv.ParseFloat(integer, 64)
	return err == nil && math.Abs(f) < 1e21 && strconv.FormatFloat(f, 'f', -1, 64) == integer && strconv.FormatFloat(f, 'f', 0, 64) == integer
}
