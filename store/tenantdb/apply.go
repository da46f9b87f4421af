package tenantdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing/fstest" // for its in-memory folder; it does not import testing

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"modernc.org/sqlite"

	"apiengine/fault"
	"apiengine/store/tenantdb/internal/sqltext"
)

// SchemaFile is one file of a schema/ folder, in goose format: `-- +goose Up`, statements,
// and if wanted `-- +goose Down`, which is never run. Name begins with the version number,
// `003_orders.sql`.
type SchemaFile struct {
	Name string
	SQL  []byte
}

// SchemaError reports a schema file that cannot be applied.
type SchemaError struct {
	File  string // may be empty: the files as a whole
	Msg   string
	Cause error // for the log
}

func (e *SchemaError) Error() string {
	if e.File == "" {
		return "schema: " + e.Msg
	}
	return "schema/" + e.File + ": " + e.Msg
}

// Unwrap gives the driver's error.
func (e *SchemaError) Unwrap() error { return e.Cause }

// Kind is bad_request.
func (e *SchemaError) Kind() fault.Kind { return fault.BadRequest }

// Public is the text for whoever pushed the files.
func (e *SchemaError) Public() string { return e.Error() }

// schemaTable holds the versions that were applied.
const schemaTable = Reserved + "schema"

// ApplySchema applies the files that were not applied yet, in the order of their versions,
// each in a transaction of its own, and returns the names of those applied, also with an
// error: a *SchemaError that names the file, store_unavailable, or ctx's cause. Nodes and
// callers that do it at once take turns. A version may be lower than one that was applied,
// but not that of another file; nor may a file be changed after it was applied.
func (db *DB) ApplySchema(ctx context.Context, files []SchemaFile) (applied []string, err error) {
	db.schemas.Lock()
	defer db.schemas.Unlock()
	folder, unnoted, err := schemaFolder(files)
	if err != nil || len(folder) == 0 {
		return nil, err
	}
	conns, done, err := db.b.forSchema(ctx)
	if err != nil {
		return nil, unavailable(err, "the database cannot be opened for the schema")
	}
	defer func() {
		if end := done(); end != nil && err == nil {
			err = lost(ctx, end)
		}
	}()
	if err := conns.PingContext(ctx); err != nil {
		return nil, lost(ctx, err)
	}
	if err := db.checkApplied(ctx, folder, unnoted); err != nil {
		return nil, err
	}
	provider, err := db.migrations(conns, folder)
	if err != nil {
		return nil, &SchemaError{Msg: err.Error(), Cause: err}
	}
	defer db.tables.clear()
	results, err := provider.Up(ctx)
	failed := ""
	if p := new(goose.PartialError); errors.As(err, &p) {
		results, failed, err = p.Applied, path.Base(p.Failed.Source.Path), p.Err
	}
	for _, r := range results {
		applied = append(applied, path.Base(r.Source.Path))
	}
	switch {
	case err == nil:
		return applied, db.noteApplied(ctx, folder, unnoted)
	case conns.PingContext(ctx) != nil:
		return applied, lost(ctx, err)
	}
	maps.DeleteFunc(unnoted, func(_ int64, name string) bool { return !slices.Contains(applied, name) })
	return applied, errors.Join(schemaFailure(failed, err), db.noteApplied(ctx, folder, unnoted))
}

func (db *DB) migrations(conns *sql.DB, folder fs.FS) (*goose.Provider, error) {
	options := []goose.ProviderOption{goose.WithTableName(schemaTable), goose.WithLogger(goose.NopLogger()), goose.WithAllowOutofOrder(true), goose.WithDisableGlobalRegistry(true)}
	if db.g.dialect == sqltext.SQLite {
		return goose.NewProvider(goose.DialectSQLite3, conns, folder, options...)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(db.schemaLock()), lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, conns, folder, append(options, goose.WithSessionLocker(locker))...)
}

// lost is the failure of a database that does not answer any more.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return unavailable(err, "the database cannot be reached")
}

// schemaFolder checks the names, since goose passes over files that it does not understand,
// and returns the files by name, and their names by version.
func schemaFolder(files []SchemaFile) (folder fstest.MapFS, versions map[int64]string, err error) {
	folder, versions = fstest.MapFS{}, map[int64]string{}
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b SchemaFile) int { return cmp.Compare(a.Name, b.Name) }) {
		number, _, ok := strings.Cut(f.Name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		switch {
		case !ok || err != nil || version < 1 || !strings.HasSuffix(f.Name, ".sql") || !fs.ValidPath(f.Name) || path.Base(f.Name) != f.Name:
			return nil, nil, &SchemaError{File: f.Name, Msg: "the name is not like 003_orders.sql"}
		case versions[version] != "":
			return nil, nil, &SchemaError{File: f.Name, Msg: "has the same version as " + versions[version]}
		case !strings.Contains(string(f.SQL), "+goose Up"):
			return nil, nil, &SchemaError{File: f.Name, Msg: "has no line `-- +goose Up`"}
		case strings.Contains(strings.ToLower(string(f.SQL)), Reserved):
			return nil, nil, &SchemaError{File: f.Name, Msg: "names a table that begins with " + Reserved + ", which belong to the platform"}
		}
		versions[version] = f.Name
		folder[f.Name] = &fstest.MapFile{Data: f.SQL}
	}
	return folder, versions, nil
}

// schemaLock is the advisory lock of this schema's migrations.
func (db *DB) schemaLock() int64 {
	if b, ok := db.b.(*pgBackend); ok {
		return lockID("apiengine schema:" + b.schema)
	}
	return 0
}

func schemaFailure(file string, err error) error {
	msg := err.Error()
	pg, lite := new(pgconn.PgError), new(sqlite.Error)
	switch {
	case errors.As(err, &pg):
		msg = pg.Message
	case errors.As(err, &lite):
		msg = lite.Error()
	}
	return &SchemaError{File: file, Msg: msg, Cause: err}
}
