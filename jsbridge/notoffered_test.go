package jsbridge

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"apiengine/fault"
)

// Every name that the original platform has and this one has not is answered with its hint,
// whatever the script does with it: read, called, below it, or through its twin. None of
// them is a name that there is.
func TestNotOffered(t *testing.T) {
	b := newBridge(t, Config{})
	known := KnownNames()
	for _, name := range slices.Sorted(maps.Keys(notOffered)) {
		code := strings.Replace(name, "statement.", "V8.Db.FromSql('SELECT 1').", 1)
		forms := []string{code + "({})", "return " + code, code + ".Some.Thing"}
		if strings.Count(name, ".") == 1 && strings.HasPrefix(name, "V8.") {
			forms = append(forms, code+".Run('x')", "var x = "+code+"['Go']")
		}
		want := name + " is not offered: " + notOffered[name]
		for _, form := range forms {
			e := rowEnv()
			if got := fault.Public(failure(t, b, e, form)); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", form, got, want)
			}
		}
		if of, last, _ := cutLast(name); strings.HasPrefix(of, "V8") {
			if got := known.Check(of, last); got != want {
				t.Errorf("apiengine check says of %s: %q", name, got)
			}
		}
	}
}

func cutLast(name string) (of, last string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	return name[:i], name[i+1:], true
}
