package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"apiengine/fault"
)

const (
	// settle is how long a folder must rest before it is read: editors write in several steps.
	settle = 50 * time.Millisecond
	// retryAfter is the pause before what the store could not take is tried again.
	retryAfter = time.Second
)

// watch tells what changes in a folder of definitions and in its folder schema.
type watch struct {
	*fsnotify.Watcher
	dir, schema string
}

func openWatch(dir string) (*watch, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("must be a folder, %s is none", dir)
	}
	w := &watch{dir: dir, schema: filepath.Join(dir, "schema")}
	var err error
	if w.Watcher, err = fsnotify.NewWatcher(); err != nil {
		return nil, err
	}
	if err := w.Add(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("%s cannot be watched: %w", dir, err), w.Close())
	}
	w.addSchema() // a folder made later is seen by follow
	return w, nil
}

// addSchema watches the folder schema and, for named databases, those in it. There need be
// none, and any may be gone again.
func (w *watch) addSchema() {
	_ = w.Add(w.schema)
	entries, _ := os.ReadDir(w.schema)
	for _, e := range entries {
		if e.IsDir() {
			_ = w.Add(filepath.Join(w.schema, e.Name()))
		}
	}
}

// follow loads every file of the folder that changes, until ctx ends, and closes w.
func (a *App) follow(ctx context.Context, w *watch, f *folder) error {
	defer w.Close()
	changed := map[string]bool{}
	gone := false // the folder itself: it is looked for until it is back
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.Errors: // events may be lost: look at everything
			a.Log.Error("watching the folder", "folder", w.dir, "error", err)
			w.everything(f, changed)
			timer.Reset(settle)
		case e := <-w.Events:
			if e.Name == w.schema || filepath.Dir(e.Name) == w.schema {
				w.addSchema()
			}
			if e.Name == w.dir && e.Has(fsnotify.Remove|fsnotify.Rename) {
				a.Log.Error("the folder is gone, what was live stays", "folder", w.dir)
				_ = w.Remove(w.dir) // the watch is on what was moved away; it may have gone with it
				gone = true
				timer.Reset(retryAfter)
				continue
			}
			changed[e.Name] = true
			timer.Reset(settle)
		case <-timer.C:
			if gone {
				if w.Add(w.dir) != nil {
					timer.Reset(retryAfter)
					continue
				}
				gone = false
				w.addSchema()
				a.Log.Info("the folder is back", "folder", w.dir)
				w.everything(f, changed)
			}
			if changed = a.reload(ctx, w, f, changed); len(changed) > 0 {
				timer.Reset(retryAfter)
			}
		}
	}
}

// everything marks all that the folder holds, or held, as changed.
func (w *watch) everything(f *folder, changed map[string]bool) {
	changed[w.schema] = true
	for _, name := range f.names() {
		changed[filepath.Join(w.dir, name)] = true
	}
}

// reload looks at what changed, the tables first, and returns what must be tried again.
func (a *App) reload(ctx context.Context, w *watch, f *folder, changed map[string]bool) map[string]bool {
	again := map[string]bool{}
	var names []string
	schema := false
	for path := range changed {
		if filepath.Dir(path) == w.dir && path != w.schema {
			names = append(names, filepath.Base(path))
		} else {
			schema = true
		}
	}
	if schema {
		if err := f.schema(ctx); err != nil {
			a.complain(w.dir, err)
			if fault.Of(err) == fault.StoreUnavailable {
				again[w.schema] = true
			}
		}
	}
	for name, err := range f.files(ctx, names) {
		a.complain(w.dir, err)
		if fault.Of(err) == fault.StoreUnavailable {
			again[filepath.Join(w.dir, name)] = true
		}
	}
	return again
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
