package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"apiengine/apis"
	"apiengine/fault"
)

// PushOptions say how to push. The zero value is the careful way.
type PushOptions struct {
	Force   bool                        // overwrite what changed on the server meanwhile
	Prune   bool                        // remove from the server what was in the folder at the last push or pull
	Compile func(apis.Definition) error // finds script errors before anything is sent; nil: the server does
}

// Push sends the folder to the server: its schema first, then the definitions that
// differ. A definition that changed on the server since this folder last saw it is a
// Conflict and stays as it is there. With any problem in a file nothing is sent at all.
//
// The error is for what kept the command from its work as a whole; what was done before
// is in the result.
func (c *Client) Push(ctx context.Context, dir string, o PushOptions) (*SyncResult, error) {
	out := &SyncResult{}
	f, err := readFolder(dir)
	if err != nil {
		return out, err
	}
	if out.Problems = f.check(o.Compile); len(out.Problems) > 0 {
		return out, nil
	}
	st, err := c.loadState(dir)
	if err != nil {
		return out, err
	}
	if out.Schema, err = c.applySchemas(ctx, f.schemas); err != nil {
		return out, err
	}
	live, err := c.definitions(ctx)
	if err != nil {
		return out, err
	}
	p := &push{c: c, o: o, f: f, st: st, live: map[string]remote{}}
	for _, r := range live {
		p.live[r.key] = r
	}
	out.Files, err = p.all(ctx)
	return out, errors.Join(err, st.save())
}

// applySchemas applies migrations in the order of their names and returns those that were
// new, in a named database with its name before.
func (c *Client) applySchemas(ctx context.Context, all []schemaOf) (applied []string, err error) {
	for _, of := range all {
		body, prefix := map[string]any{"Files": of.files}, ""
		if of.database != "" {
			body["Database"], prefix = of.database, of.database+"/"
		}
		var done struct{ Applied []string }
		if err := c.call(ctx, request{method: http.MethodPost, path: "/schema", body: body}, &done); err != nil {
			return applied, err
		}
		for _, name := range done.Applied {
			applied = append(applied, prefix+name)
		}
	}
	return applied, nil
}

type push struct {
	c    *Client
	o    PushOptions
	f    *folder
	st   *state
	live map[string]remote
}

// all pushes every file. An address may have to be given up by one definition before
// another can have it, so those refused for their address are tried again as long as
// that leads anywhere.
func (p *push) all(ctx context.Context) ([]FileResult, error) {
	results := p.strays(ctx)
	todo := p.f.files
	for len(todo) > 0 {
		var again []localFile
		var refused []FileResult
		for _, l := range todo {
			r, err := p.one(ctx, l)
			if err != nil {
				return append(results, refused...), err
			}
			if r.Action == Failed && slices.ContainsFunc(r.Problems, func(q Problem) bool { return q.Field == "ApiAddress" }) {
				again, refused = append(again, l), append(refused, r)
				continue
			}
			results = append(results, r)
		}
		if len(again) == len(todo) {
			results = append(results, refused...)
			break
		}
		todo = again
	}
	slices.SortStableFunc(results, func(a, b FileResult) int { return cmp.Compare(a.Key, b.Key) })
	return results, ctx.Err()
}

// one sends a file when it differs. The error is one that ends the command.
func (p *push) one(ctx context.Context, l localFile) (FileResult, error) {
	r := FileResult{File: p.f.path(l.name), Key: l.def.ApiEngineKey}
	there, exists := p.live[l.key]
	known, seen := p.st.records[l.key]
	r.Version = there.version
	switch {
	case exists && there.def.Same(&l.def):
		r.Action = Unchanged
		p.st.set(l.key, there.version, l.def)
		return r, nil
	case p.o.Force:
	case exists && !seen:
		return r.conflict("version %d is on the server, and this folder has never seen it", there.version), nil
	case exists && known.Version != there.version:
		return r.conflict("the server has version %d, this folder last saw version %d", there.version, known.Version), nil
	case !exists && seen:
		return r.conflict("it was removed on the server; this folder last saw version %d", known.Version), nil
	}
	version, err := p.c.put(ctx, l.def, there.version)
	if err != nil {
		return r.refused(err, p.f.path(l.name))
	}
	if r.Action, r.Version = Updated, version; !exists {
		r.Action = Created
	}
	p.st.set(l.key, version, l.def)
	return r, nil
}

// strays are the definitions that are on the server only.
func (p *push) strays(ctx context.Context) []FileResult {
	var out []FileResult
	for key, there := range p.live {
		if _, ok := p.f.find(key); ok {
			continue
		}
		r := FileResult{Key: there.def.ApiEngineKey, Action: OnServer, Version: there.version}
		known, seen := p.st.records[key]
		switch {
		case !p.o.Prune || !seen:
		case known.Version != there.version && !p.o.Force:
			r = r.conflict("its file is gone, but the server has version %d, this folder last saw version %d", there.version, known.Version)
		default:
			if err := p.c.remove(ctx, key, there.version); err != nil {
				r.Action, r.Problems = Failed, problemsOf(err, "")
				break
			}
			r.Action, r.Version = Removed, 0
			delete(p.st.records, key)
		}
		out = append(out, r)
	}
	return out
}

func (r FileResult) conflict(format string, args ...any) FileResult {
	r.Action = Conflict
	r.Problems = []Problem{{File: r.File, Kind: fault.VersionConflict, Msg: fmt.Sprintf(format, args...)}}
	return r
}

// refused tells what the server refused about one definition from what would meet every
// other one as well.
func (r FileResult) refused(err error, file string) (FileResult, error) {
	switch fault.Of(err) {
	case fault.VersionConflict:
		r.Action = Conflict
	case fault.BadRequest, fault.ScriptSyntax, fault.ScriptError, fault.PayloadTooLarge:
		r.Action = Failed
	default:
		return r, err
	}
	r.Problems = problemsOf(err, file)
	return r, nil
}
