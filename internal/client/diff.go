package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"apiengine/apis"
)

// FileDiff is one definition that push would change.
type FileDiff struct {
	File   string `json:",omitempty"` // empty: on the server only
	Key    string
	Action Action // Created, Updated or OnServer
	Diff   string `json:",omitempty"` // unified, from the server's text to the file's
}

// DiffResult is how a folder differs from a server.
type DiffResult struct {
	Files    []FileDiff
	Problems []Problem `json:",omitempty"` // files that cannot be read
}

// Differs reports whether push would change anything, or could not begin.
func (r *DiffResult) Differs() bool {
	for _, f := range r.Files {
		if f.Action != OnServer {
			return true
		}
	}
	return len(r.Problems) > 0
}

// String is the diffs, one after the other.
func (r *DiffResult) String() string {
	var b strings.Builder
	writeProblems(&b, r.Problems)
	for _, f := range r.Files {
		if f.Action == OnServer {
			fmt.Fprintf(&b, "only on the server: %s\n", visible(f.Key))
		}
		b.WriteString(visible(f.Diff))
	}
	return b.String()
}

// Diff shows what push would change. Both sides are compared in the canonical form, so
// that the form of a file is no difference.
func (c *Client) Diff(ctx context.Context, dir string) (*DiffResult, error) {
	out := &DiffResult{Files: []FileDiff{}}
	f, err := readFolder(dir)
	if err != nil {
		return out, err
	}
	out.Problems = f.problems
	live, err := c.definitions(ctx)
	if err != nil {
		return out, err
	}
	servers := map[string]remote{}
	for _, r := range live {
		servers[r.key] = r
	}
	for _, l := range f.files {
		there, exists := servers[l.key]
		delete(servers, l.key)
		if !l.broken && (!exists || !there.def.Same(&l.def)) {
			out.Files = append(out.Files, f.diff(l, there, exists))
		}
	}
	for _, r := range live {
		if _, left := servers[r.key]; left {
			out.Files = append(out.Files, FileDiff{Key: r.def.ApiEngineKey, Action: OnServer})
		}
	}
	return out, nil
}

func (f *folder) diff(l localFile, there remote, exists bool) FileDiff {
	d := FileDiff{File: f.path(l.name), Key: l.def.ApiEngineKey, Action: Created}
	from, before := "/dev/null", []byte(nil)
	if exists {
		d.Action = Updated
		from, before = apis.FormatFile(there.def)
		from = fmt.Sprintf("server/%s (version %d)", from, there.version)
	}
	_, after := apis.FormatFile(l.def)
	d.Diff = udiff.Unified(from, d.File, string(before), string(after))
	return d
}
