package app

import (
	"context"
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
	if err := f.load(ctx); err != nil {
		return &SettingError{"apis-dir", err.Error()}
	}
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

func (a *App) reload(ctx context.Context, f *folder, dir string, changed map[string]bool) {
	schema := false
	for name := range changed {
		if filepath.Dir(name) == dir && filepath.Base(name) != "schema" {
			f.file(ctx, filepath.Base(name))
		} else {
			schema = true
		}
	}
	if !schema {
		return
	}
	if err := f.schema(ctx); err != nil && ctx.Err() == nil {
		a.Log.Error("schema not applied", "folder", dir, "error", err)
	}
}
