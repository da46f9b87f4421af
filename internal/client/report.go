package client

import (
	"fmt"
	"strings"
)

// Action is what a command did with one definition.
type Action string

// What push does.
const (
	Created   Action = "created"
	Updated   Action = "updated"
	Unchanged Action = "unchanged"
	Removed   Action = "removed"  // from the server by push, from the folder by pull
	Conflict  Action = "conflict" // changed on both sides: nothing was done
	Failed    Action = "failed"   // refused by the server
	OnServer  Action = "only on the server"
)

// What pull does besides.
const (
	Written Action = "written"
	Kept    Action = "kept" // changed in the folder only
)

// FileResult is what became of one definition.
type FileResult struct {
	File     string `json:",omitempty"` // empty: no file
	Key      string
	Action   Action
	Version  int       `json:",omitempty"` // the live one on the server afterwards
	Problems []Problem `json:",omitempty"`
}

// SyncResult is what push or pull did. Problems are what kept it from starting.
type SyncResult struct {
	Schema   []string `json:",omitempty"` // files that were applied
	Files    []FileResult
	Problems []Problem `json:",omitempty"`
}

// Failed reports whether anything was not done.
func (r *SyncResult) Failed() bool {
	for _, f := range r.Files {
		if f.Action == Conflict || f.Action == Failed {
			return true
		}
	}
	return len(r.Problems) > 0
}

// String is one line for each definition that is not as it was, its problems and a sum.
func (r *SyncResult) String() string {
	var b strings.Builder
	writeProblems(&b, r.Problems)
	for _, s := range r.Schema {
		fmt.Fprintf(&b, "%-10s schema/%s\n", "applied", visible(s))
	}
	count := map[Action]int{}
	for _, f := range r.Files {
		count[f.Action]++
		if f.Action == Unchanged {
			continue
		}
		name := f.Key
		if f.File != "" {
			name = f.File
		}
		fmt.Fprintf(&b, "%-10s %s", f.Action, visible(name))
		if f.Version > 0 {
			fmt.Fprintf(&b, " (version %d)", f.Version)
		}
		b.WriteByte('\n')
		writeProblems(&b, f.Problems)
	}
	var sum []string
	for _, a := range []Action{Created, Updated, Written, Removed, Kept, Unchanged, OnServer, Conflict, Failed} {
		if count[a] > 0 {
			sum = append(sum, fmt.Sprintf("%d %s", count[a], a))
		}
	}
	if len(sum) > 0 {
		fmt.Fprintln(&b, strings.Join(sum, ", "))
	}
	return b.String()
}

func writeProblems(b *strings.Builder, list []Problem) {
	for _, p := range list {
		fmt.Fprintln(b, p)
	}
}
