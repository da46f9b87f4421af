package nearest_test

import (
	"strings"
	"testing"

	"apiengine/nearest"
)

func TestTypo(t *testing.T) {
	known := []string{"Map", "DateFormat", "JSON", "Number"}
	for word, want := range map[string]string{"m": "", "map": "Map", "dateformt": "DateFormat", "Jsn": "", "JSOM": "JSON", "numbr": "Number", "nmbr": "", "": ""} {
		if got := nearest.Typo(word, known); got != want {
			t.Errorf("Typo(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestName(t *testing.T) {
	known := []string{"LockKey", "LockScope", "Timeout", "Id"}
	for _, c := range []struct{ word, want string }{
		{"LokcKey", "LockKey"}, {"lockkey", "LockKey"}, {"Timout", "Timeout"}, {"LockScop", "LockScope"},
		{"id", "Id"}, {"ixx", "Id"}, {"Category", ""}, {"", "Id"}, {strings.Repeat("LockKey", 10), ""},
		{"KEY", "LockKey"}, {"lock", "LockKey"}, {"me", "Id"}, {"out", "Timeout"}, {"uts", ""},
	} {
		if got := nearest.Name(c.word, known); got != c.want {
			t.Errorf("Name(%.20q) = %q, want %q", c.word, got, c.want)
		}
	}
	if got := nearest.Name("x", nil); got != "" {
		t.Errorf("nothing is known, got %q", got)
	}
}
