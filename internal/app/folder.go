package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"apiengine/apis"
	"apiengine/store/tenantdb"
)

// folder is a set of definition files with, in schema, the tables they use. Files are
// loaded into one tenant.
type folder struct {
	app    *App
	fsys   fs.FS
	tenant string
	by     string            // who the saves are by, in the history
	loaded map[string]string // file name -> key, of what this folder brought
}

// load applies the schema and every definition file, and returns what went wrong, joined:
// one broken file does not keep the others out.
func (f *folder) load(ctx context.Context) error {
	names, err := fs.Glob(f.fsys, "*")
	if err != nil {
		return err
	}
	errs := []error{f.schema(ctx)}
	for _, name := range names {
		errs = append(errs, f.file(ctx, name))
	}
	return errors.Join(errs...)
}

// file loads one definition file, or removes the API of one that is gone.
func (f *folder) file(ctx context.Context, name string) error {
	if !apis.IsFile(name) {
		return nil
	}
	src, err := fs.ReadFile(f.fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return f.gone(ctx, name)
	}
	if err == nil {
		err = f.push(ctx, name, src)
	}
	return err
}

func (f *folder) push(ctx context.Context, name string, src []byte) error {
	def, err := apis.ParseFile(name, src)
	if err != nil {
		return err
	}
	saved, err := f.app.library.save(ctx, saving{tenant: f.tenant, def: def, by: f.by})
	if err != nil {
		return err
	}
	if f.loaded == nil {
		f.loaded = map[string]string{}
	}
	f.loaded[name] = saved.Key
	f.app.Log.Info("definition file loaded", "file", name, "api", saved.Key, "version", saved.Version)
	return nil
}

func (f *folder) gone(ctx context.Context, name string) error {
	key, ours := f.loaded[name]
	if !ours {
		return nil
	}
	delete(f.loaded, name)
	if err := f.app.library.remove(ctx, f.tenant, key, nil, f.by); err != nil {
		return fmt.Errorf("removing the API of %s: %w", name, err)
	}
	f.app.Log.Info("definition file is gone, its API too", "file", name, "api", key)
	return nil
}

// schema applies the files in schema/ that have not been applied yet.
func (f *folder) schema(ctx context.Context) error {
	names, err := fs.Glob(f.fsys, "schema/*.sql")
	if err != nil || len(names) == 0 {
		return err
	}
	files := make([]tenantdb.SchemaFile, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(f.fsys, name)
		if err != nil {
			return err
		}
		files = append(files, tenantdb.SchemaFile{Name: path.Base(name), SQL: text})
	}
	db, err := f.app.databases.tenant(ctx, f.tenant)
	if err != nil {
		return err
	}
	applied, err := db.ApplySchema(ctx, files)
	if len(applied) > 0 {
		f.app.Log.Info("schema applied", "tenant", f.tenant, "files", applied)
	}
	return err
}
