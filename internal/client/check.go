package client

import (
	"fmt"
	"slices"
	"strings"

	"apiengine/apis"
)

// CheckResult is what is wrong with a folder. Warnings are what works and should yet be
// written in another way.
type CheckResult struct {
	Files    int // definition files that were read
	Problems []Problem
	Warnings []Problem
	strict   bool
}

// Failed reports whether there is a problem; under CheckOptions.Strict a warning is one.
func (r *CheckResult) Failed() bool {
	return len(r.Problems) > 0 || r.strict && len(r.Warnings) > 0
}

// String is one line for each problem and warning and a sum.
func (r *CheckResult) String() string {
	var b strings.Builder
	writeProblems(&b, r.Problems)
	for _, w := range r.Warnings {
		w.Msg, w.Field = "warning: "+w.text(), ""
		fmt.Fprintln(&b, w)
	}
	fmt.Fprintf(&b, "%d definitions, %s", r.Files, counted(len(r.Problems), "problem"))
	if n := len(r.Warnings); n > 0 {
		b.WriteString(", " + counted(n, "warning"))
	}
	return b.String() + "\n"
}

func counted(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// CheckOptions set up Check.
type CheckOptions struct {
	Compile func(apis.Definition) error              // what is wrong with a script; nil: not looked at
	Lint    func(defs []apis.Definition) []Discovery // what should be written in another way; nil: not looked at
	Strict  bool                                     // warnings count as problems
}

// Discovery is a warning about the script of one of several definitions.
type Discovery struct {
	Definition   int // its index
	Line, Column int
	Msg          string
}

// Check reads a folder without a server and finds every problem of every file: its
// settings, its script, and the addresses and keys that two files both want. The error is
// for a folder that cannot be read.
func Check(dir string, o CheckOptions) (*CheckResult, error) {
	f, err := readFolder(dir)
	if err != nil {
		return &CheckResult{}, err
	}
	return &CheckResult{Files: len(f.files), Problems: f.check(o.Compile), Warnings: f.warnings(o.Lint), strict: o.Strict}, nil
}

// check adds the problems that the whole files have to those found when they were read.
func (f *folder) check(compile func(apis.Definition) error) []Problem {
	catalog := apis.NewCatalog(func(apis.Definition) (struct{}, error) { return struct{}{}, nil })
	out := f.problems
	for _, l := range f.files {
		var found []Problem
		if !l.broken {
			found = problemsOf(catalog.Put("", 0, l.def), f.path(l.name))
		}
		if compile != nil && strings.TrimSpace(l.def.ApiV8Code) != "" && len(l.def.ApiV8Code) <= apis.MaxCode {
			found = append(found, problemsOf(compile(l.def), f.path(l.name))...)
		}
		for _, p := range found {
			if p.Line == 0 {
				p.Line, p.Column = l.lineOf(p.Field), 1
			}
			out = append(out, p)
		}
	}
	byPlace(out)
	return out
}

// byPlace orders problems by file and line; those of one line stay as they were found.
func byPlace(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
}
