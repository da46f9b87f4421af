package jsbridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reference is what scripts can call, as Markdown: one line for each native function and
// each property of V8, printed from the rows that the runtime is made of.
func Reference() string {
	var b strings.Builder
	b.WriteString("| name | what |\n|---|---|\n")
	for _, p := range properties() {
		fmt.Fprintf(&b, "| `V8.%s` | %s |\n", p.name, p.doc)
	}
	for _, f := range allFuncs() {
		fmt.Fprintf(&b, "| `%s%s` | %s |\n", fullName(f.Name), f.args, strings.ReplaceAll(f.Doc, "|", `\|`))
	}
	b.WriteString("\nEach function of V8 has a twin `...Async` that returns a promise.\n")
	b.WriteString("\nWhat the original platform has and this one has not fails by its name and says what to use:\n\n| name | instead |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(notOffered)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, notOffered[name])
	}
	return b.String()
}
