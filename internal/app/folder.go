package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"apiengine/apis"
	"apiengine/fault"
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
	second map[string]bool   // files whose API another file brought
}

// load applies the schema and every definition file, and returns what went wrong, joined:
// one broken file does not keep the others out.
func (f *folder) load(ctx context.Context) error {
	errs := []error{f.schema(ctx)}
	for _, name := range apis.FilesBelow(f.fsys) {
		f.app.Log.Warn("a definition file in a folder below is not read", "file", name, "tenant", f.tenant)
	}
	for _, err := range f.files(ctx, f.names()) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// names are the definition files of the folder, and those that it once brought.
func (f *folder) names() []string {
	names, _ := fs.Glob(f.fsys, "*") // the pattern is good
	for name := range f.loaded {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// files loads the definition files of these names, then removes the APIs of those that are
// gone: a file that was only renamed keeps its API. It yields the problem of each.
func (f *folder) files(ctx context.Context, names []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var gone []string
		for _, name := range names {
			err := f.file(ctx, name)
			if errors.Is(err, fs.ErrNotExist) {
				gone = append(gone, name)
			} else if err != nil && !yield(name, err) {
				return
			}
		}
		for _, name := range gone {
			if err := f.gone(ctx, name); err != nil && !yield(name, err) {
				return
			}
		}
		if len(gone) > 0 && len(f.second) > 0 { // what they brought may be another's now
			again := slices.Sorted(maps.Keys(f.second))
			clear(f.second)
			f.files(ctx, again)(yield)
		}
	}
}

func (f *folder) file(ctx context.Context, name string) error {
	if !apis.IsFile(name) {
		return nil
	}
	if info, err := fs.Stat(f.fsys, name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", name) // a pipe would never end
	}
	src, err := fs.ReadFile(f.fsys, name)
	if err != nil {
		return err
	}
	return f.push(ctx, name, src)
}

func (f *folder) push(ctx context.Context, name string, src []byte) error {
	def, err := apis.ParseFile(name, src)
	if err != nil {
		return err
	}
	if other := f.bringer(def.ApiEngineKey, name); other != "" {
		if f.second == nil {
			f.second = map[string]bool{}
		}
		f.second[name] = true
		return fmt.Errorf("%s: the API %s is already defined by %s", name, def.ApiEngineKey, other)
	}
	saved, err := f.app.library.save(ctx, saving{tenant: f.tenant, def: def, by: f.by})
	if err != nil {
		return err
	}
	if was, ok := f.loaded[name]; ok && !strings.EqualFold(was, saved.Key) { // the key was changed in the file
		err = f.gone(ctx, name)
	}
	if f.loaded == nil {
		f.loaded = map[string]string{}
	}
	f.loaded[name] = saved.Key
	f.app.Log.Info("definition file loaded", "file", name, "api", saved.Key, "version", saved.Version)
	return err
}

// bringer is another file, still there, that defines key; "" for none.
func (f *folder) bringer(key, name string) string {
	for other, has := range f.loaded {
		if other == name || !strings.EqualFold(has, key) {
			continue
		}
		if _, err := fs.Stat(f.fsys, other); err == nil {
			return other
		}
	}
	return ""
}

// gone removes the API that a file brought, unless another file has it now.
func (f *folder) gone(ctx context.Context, name string) error {
	key, ours := f.loaded[name]
	if !ours {
		return nil
	}
	if f.bringer(key, name) == "" {
		err := f.app.library.remove(ctx, f.tenant, key, nil, f.by)
		if err != nil && fault.Of(err) != fault.NotFound {
			return fmt.Errorf("removing the API of %s: %w", name, err)
		}
		f.app.Log.Info("definition file is gone, its API too", "file", name, "api", key)
	}
	delete(f.loaded, name)
	return nil
}

// schema applies the files in schema/ that have not been applied yet, and those in
// schema/<name>/ to the tenant's database of that name. Each database is tried.
func (f *folder) schema(ctx context.Context) error {
	errs := []error{f.tables(ctx, "schema", "")}
	entries, _ := fs.ReadDir(f.fsys, "schema") // there need not be one
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, f.tables(ctx, "schema/"+e.Name(), e.Name()))
		}
	}
	return errors.Join(errs...)
}

// tables applies the files of one folder to one database.
func (f *folder) tables(ctx context.Context, dir, database string) error {
	names, err := fs.Glob(f.fsys, dir+"/*.sql")
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
	db, err := f.app.databases.asked(ctx, f.tenant, database)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	applied, err := db.ApplySchema(ctx, files)
	if len(applied) > 0 {
		f.app.Log.Info("schema applied", "tenant", f.tenant, "database", database, "files", applied)
	}
	if err != nil && database != "" {
		err = fmt.Errorf("%s: %w", dir, err)
	}
	return err
}
