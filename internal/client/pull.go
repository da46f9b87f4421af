package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"apiengine/apis"
)

// PullOptions say how to pull.
type PullOptions struct {
	Force bool // overwrite, and remove, files that changed in the folder
}

// Pull writes the server's definitions into the folder, which is made when it is missing.
// A file that says the same already is not touched, whatever its form. A file that was
// changed here only is Kept; one that was changed on both sides is a Conflict.
func (c *Client) Pull(ctx context.Context, dir string, o PullOptions) (*SyncResult, error) {
	out := &SyncResult{}
	live, err := c.definitions(ctx)
	if err != nil {
		return out, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return out, err
	}
	f, err := readFolder(dir)
	if err != nil {
		return out, err
	}
	st, err := c.loadState(dir)
	if err != nil {
		return out, err
	}
	p := &pull{o: o, f: f, st: st}
	for _, r := range live {
		done, err := p.one(r)
		if err != nil {
			return out, errors.Join(err, st.save())
		}
		out.Files = append(out.Files, done)
	}
	gone, err := p.gone(live)
	out.Files = append(out.Files, gone...)
	return out, errors.Join(err, st.save())
}

type pull struct {
	o  PullOptions
	f  *folder
	st *state
}

func (p *pull) one(there remote) (FileResult, error) {
	r := FileResult{Key: there.def.ApiEngineKey, Version: there.version}
	known, seen := p.st.records[there.key]
	l, exists := p.f.find(there.key)
	if !exists {
		return p.write(r, there, "")
	}
	r.File = p.f.path(l.name)
	changedHere := l.broken || !seen || digest(l.def) != known.Digest
	changedThere := !seen || there.version != known.Version
	switch {
	case !l.broken && l.def.Same(&there.def):
		r.Action = Unchanged
		p.st.set(there.key, there.version, l.def)
		return r, nil
	case p.o.Force, !changedHere:
		return p.write(r, there, l.name)
	case changedThere:
		return r.conflict("it differs from version %d on the server, and was changed here too", there.version), nil
	}
	r.Action = Kept
	return r, nil
}

// write puts the server's definition in the place of the file old, "" for none.
func (p *pull) write(r FileResult, there remote, old string) (FileResult, error) {
	name, src := apis.FormatFile(there.def)
	if old != "" && filepath.Ext(old) == filepath.Ext(name) {
		name = old // the author's own name for it
	}
	path := filepath.Join(p.f.dir, name)
	r.File = p.f.path(name)
	if _, err := os.Lstat(path); err == nil && name != old && !p.o.Force {
		return r.conflict("the file is there, but holds another definition"), nil
	}
	if err := writeFile(path, src); err != nil {
		return r, err
	}
	if old != "" && old != name {
		if err := os.Remove(filepath.Join(p.f.dir, old)); err != nil {
			return r, err
		}
	}
	r.Action = Written
	p.st.set(there.key, there.version, there.def)
	return r, nil
}

// gone handles the files whose definitions were removed on the server.
func (p *pull) gone(live []remote) ([]FileResult, error) {
	there := map[string]bool{}
	for _, r := range live {
		there[r.key] = true
	}
	var out []FileResult
	for _, l := range p.f.files {
		known, seen := p.st.records[l.key]
		if there[l.key] || !seen {
			continue
		}
		r := FileResult{File: p.f.path(l.name), Key: l.def.ApiEngineKey}
		if (l.broken || digest(l.def) != known.Digest) && !p.o.Force {
			out = append(out, r.conflict("it was removed on the server, and changed here"))
			continue
		}
		if err := os.Remove(filepath.Join(p.f.dir, l.name)); err != nil {
			return out, err
		}
		r.Action = Removed
		delete(p.st.records, l.key)
		out = append(out, r)
	}
	return out, nil
}
