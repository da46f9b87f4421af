package client

import (
	"fmt"
	"strings"

	"apiengine/apis"
)

// CheckResult is what is wrong with a folder.
type CheckResult struct {
	Files    int // definition files that were read
	Problems []Problem
}

// Failed reports whether there is a problem.
func (r *CheckResult) Failed() bool { return len(r.Problems) > 0 }

// String is one line for each problem and a sum.
func (r *CheckResult) String() string {
	var b strings.Builder
	writeProblems(&b, r.Problems)
	switch n := len(r.Problems); n {
	case 0:
		fmt.Fprintf(&b, "%d definitions, no problem\n", r.Files)
	case 1:
		fmt.Fprintf(&b, "%d definitions, 1 problem\n", r.Files)
	default:
		fmt.Fprintf(&b, "%d definitions, %d problems\n", r.Files, n)
	}
	return b.String()
}

// Check reads a folder without a server and finds every problem of every file: its
// settings, its script (by compile, nil: not looked at), and the addresses and keys that
// two files both want. The error is for a folder that cannot be read.
func Check(dir string, compile func(apis.Definition) error) (*CheckResult, error) {
	f, err := readFolder(dir)
	if err != nil {
		return &CheckResult{}, err
	}
	return &CheckResult{Files: len(f.files), Problems: f.check(compile)}, nil
}

// check adds the problems that the whole files have to those found when they were read.
func (f *folder) check(compile func(apis.Definition) error) []Problem {
	catalog := apis.NewCatalog(func(d apis.Definition) (struct{}, error) {
		if compile == nil {
			return struct{}{}, nil
		}
		return struct{}{}, compile(d)
	})
	out := f.problems
	for _, l := range f.files {
		if l.broken {
			continue
		}
		for _, p := range problemsOf(catalog.Put("", 0, l.def), f.path(l.name)) {
			if p.Line == 0 {
				p.Line, p.Column = l.lineOf(p.Field), 1
			}
			out = append(out, p)
		}
	}
	return out
}
