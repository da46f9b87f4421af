package jsbridge

import (
	"slices"
	"strings"

	"apiengine/nearest"
)

// unknownName says that of ("V8", "V8.Cache", "statement") has no such name, and what there is.
func unknownName(of, name string, known []string) string {
	if hint := notOffered[of+"."+name]; hint != "" {
		return of + "." + name + " is not offered: " + hint
	}
	msg := of + " has no " + name
	if near := nearest.Name(name, known); near != "" {
		return msg + "; did you mean " + near + "?"
	}
	if few := plainNames(known); len(few) > 0 && len(few) <= fewNames {
		msg += "; it has " + strings.Join(few, ", ")
	}
	return msg
}

// fewNames are so many that a message can name them all.
const fewNames = 6

// plainNames are those of known that are no twin of another.
func plainNames(known []string) []string {
	var out []string
	for _, k := range known {
		if base, twin := strings.CutSuffix(k, "Async"); !twin || !slices.Contains(known, base) {
			out = append(out, k)
		}
	}
	return out
}

// rowNames lists what the rows put on "V8", "V8.Cache", "statement" or a global like "System".
func rowNames(funcs []Func, of string) []string {
	prefix := strings.TrimPrefix(of, "V8.") + "."
	switch {
	case of == "V8":
		prefix = ""
	case of == "statement":
		prefix = "Query."
	case !strings.HasPrefix(of, "V8."):
		prefix = "." + prefix
	}
	var names []string
	for _, f := range funcs {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok || name[0] == '.' {
			continue
		}
		name, _, nested := strings.Cut(name, ".")
		names = append(names, name)
		if !nested && !strings.HasPrefix(prefix, ".") {
			names = append(names, name+"Async")
		}
	}
	return names
}

// Names checks names that scripts use against what there is, without running anything.
type Names struct{ of map[string][]string }

// KnownNames is what a script finds on V8, on its namespaces and on a statement.
func KnownNames() *Names {
	funcs := allFuncs()
	n := &Names{of: map[string][]string{"statement": rowNames(funcs, "statement")}}
	v8 := []string{"Limits", "Dbs"}
	for _, p := range properties() {
		v8 = append(v8, p.name)
	}
	for _, name := range rowNames(funcs, "V8") {
		if name != "Query" && !slices.Contains(v8, name) {
			v8 = append(v8, name)
		}
	}
	for _, space := range v8 {
		if names := rowNames(funcs, "V8."+space); len(names) > 0 {
			n.of["V8."+space] = names
		}
	}
	for _, db := range databaseNames[1:] {
		v8 = append(v8, db)
		n.of["V8."+db] = n.of["V8.Db"]
	}
	n.of["V8.Lock"] = append(n.of["V8.Lock"], "Key", "FencingToken")
	n.of["V8"] = v8
	return n
}

// NamesDatabase reports whether V8.Dbs can have a database of this name: some are looked up
// by the language itself on any object.
func NamesDatabase(name string) bool {
	for silent := range silentNames {
		if strings.EqualFold(name, silent) {
			return false
		}
	}
	return true
}

// databaseNames are the names of the tenant's own database.
var databaseNames = []string{"Db", "DbTrans", "DbRead"}

// Check returns what a script would be told about a name that of ("V8", "V8.Cache",
// "statement") has not, "" for one that it has. What is no namespace has every name.
func (n *Names) Check(of, name string) string {
	known, is := n.of[of]
	if !is || silentNames[name] || slices.Contains(known, name) {
		return ""
	}
	return unknownName(of, name, known)
}
