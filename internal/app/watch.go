package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must rest before it is read: editors write in several steps.
const settle = 50 * time.Millisecond

// watchFolder loads dir and then every file in it that changes, until ctx ends.
func (a *App) watchFolder(ctx context.Context, dir string, ready func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Add(dir); err != nil { // before the first load, so that no change is missed
		return &SettingError{"apis-dir", err.Error()}
	}
	schema := filepath.Join(dir, "schema")
	_ = w.Add(schema) // there need not be one; a folder made later is seen below
	f := &folder{app: a, fsys: os.DirFS(dir), tenant: a.Settings.ApisTo, by: "apis-dir"}
	a.complain(dir, f.load(ctx))
	ready()
	changed := map[string]bool{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.Errors:
			a.Log.Error("watching the folder", "folder", dir, "error", err)
		case e := <-w.Events:
			if e.Name == schema {
				_ = w.Add(schema) // it may already be gone again
			}
			changed[e.Name] = true
			timer.Reset(settle)
		case <-timer.C:
			a.reload(ctx, f, dir, changed)
			clear(changed)
		}
	}
}

// reload looks at what changed.
func (a *App) reload(ctx context.Context, f *folder, dir string, changed map[string]bool) {
	schema := false
	for name := range changed {
		if filepath.Dir(name) == dir && filepath.Base(name) != "schema" {
			a.complain(dir, f.file(ctx, filepath.Base(name)))
		} else {
			schema = true
		}
	}
	if schema {
		a.complain(dir, f.schema(ctx))
	}
}

// complain logs each problem of a folder by itself; what was live stays live.
func (a *App) complain(dir string, err error) {
	var many interface{ Unwrap() []error }
	switch {
	case err == nil, errors.Is(err, context.Canceled):
	case errors.As(err, &many):
		for _, e := range many.Unwrap() {
			a.complain(dir, e)
		}
	default:
		a.Log.Error("not loaded, what was live stays", "folder", dir, "error", err)
	}
}
