// Package lint finds what a script does that works and yet should be written in another way:
// values in the text of SQL, locks built from the cache, queries without a bound in a loop,
// names that V8 does not have, libraries that are not there. It runs nothing.
package lint

import (
	"cmp"
	"slices"
	"strings"

	"apiengine/jsbridge"
)

// Script is one script of a folder.
type Script struct {
	Key     string // in any case
	Library bool
	Source  jsbridge.Source
}

// Warning is one thing that should be written in another way. Line and Column count from 1 in
// the author's file; Msg says what is wrong and what to write instead.
type Warning struct {
	Script       int // the index of the script
	Line, Column int
	Msg          string
}

// Ignore silences the warnings of its own line and of the next one when it stands in a comment.
const Ignore = "apiengine:ignore"

// Folder returns the warnings about scripts that belong together, in their order and by
// place. A script that does not compile has none.
func Folder(scripts []Script) []Warning {
	known := jsbridge.KnownNames()
	var out []Warning
	libs := libraries{scripts: scripts, uses: make([][]use, len(scripts))}
	for i, s := range scripts {
		tree, err := jsbridge.ParseTree(s.Source)
		if err != nil {
			continue
		}
		f := newFile(tree, known)
		f.look()
		libs.uses[i] = f.uses
		for _, w := range f.warnings {
			w.Script = i
			out = append(out, w)
		}
	}
	out = append(out, libs.warnings()...)
	out = slices.DeleteFunc(out, func(w Warning) bool { return ignored(scripts[w.Script].Source, w.Line) })
	slices.SortStableFunc(out, func(a, b Warning) int {
		return cmp.Or(a.Script-b.Script, a.Line-b.Line, a.Column-b.Column)
	})
	return out
}

// ignored reports whether the author has silenced the warnings of a line.
func ignored(src jsbridge.Source, line int) bool {
	lines := strings.Split(src.Code, "\n")
	for at := line - max(src.FirstLine, 1); at > line-max(src.FirstLine, 1)-2; at-- {
		if at < 0 || at >= len(lines) {
			continue
		}
		if _, comment, ok := strings.Cut(lines[at], "//"); ok && strings.Contains(comment, Ignore) {
			return true
		}
	}
	return false
}
