package digits_test

import (
	"testing"

	"apiengine/digits"
)

func TestKept(t *testing.T) {
	for integer, want := range map[string]bool{
		"0": true, "-1": true, "9007199254740991": true, "9007199254740992": true, "-9007199254740992": true, "1000000000000000000": true, "100000000000000000000": true,
		"9007199254740993": false, "-9007199254740993": false, "1152921504606846976": false, "1152921504606847000": false, "9223372036854775807": false,
		"1000000000000000000000": false, "123456789012345678901234567890": false, "": false, "x": false, "-0": true, "01": false,
	} {
		if got := digits.Kept(integer); got != want {
			t.Errorf("%q: %v", integer, got)
		}
	}
}
