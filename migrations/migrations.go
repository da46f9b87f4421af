// Package migrations holds the platform's tables as SQL files, one folder a dialect, and
// applies them. Nodes that start at once are let through one by one.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/pressly/goose/v3"
)

// Schema is the PostgreSQL schema that the platform's tables live in.
const Schema = "_apiengine_platform"

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// SQLite returns the goose files for SQLite.
func SQLite() fs.FS { return folder("sqlite") }

// Postgres returns the goose files for PostgreSQL.
func Postgres() fs.FS { return folder("postgres") }

func folder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // only for a malformed name, and both are constants above
	}
	return sub
}

// Target is the database to bring up to date. DB is required; for PostgreSQL it must allow
// two connections. LockPath is required for SQLite and unused for PostgreSQL.
type Target struct {
	DB       *sql.DB
	Postgres bool
	LockPath string // a file of its own that starting processes queue at
	// Beside makes the tables that others keep in the database, when the platform's are
	// there and the lock is still held; nil: none. Of an applied one it must do nothing.
	Beside func(ctx context.Context) error
}

// Up applies every pending migration and returns the names of those it applied. It waits,
// as long as ctx allows, for another process that is migrating the same database.
func Up(ctx context.Context, t Target) (applied []string, err error) {
	unlock, err := lock(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if t.Postgres {
		if _, err := t.DB.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+Schema); err != nil {
			return nil, fmt.Errorf("migrations: %w", err)
		}
	}
	p, err := provider(t)
	if err != nil {
		return nil, err
	}
	results, err := p.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	for _, r := range results {
		applied = append(applied, path.Base(r.Source.Path))
	}
	if t.Beside != nil {
		err = t.Beside(ctx)
	}
	return applied, err
}

// Status returns the names of the applied and of the pending migrations, in order. It
// takes no lock. The database must have been migrated once.
func Status(ctx context.Context, t Target) (applied, pending []string, err error) {
	p, err := provider(t)
	if err != nil {
		return nil, nil, err
	}
	current, err := p.GetDBVersion(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("migrations: %w", err)
	}
	for _, s := range p.ListSources() {
		if s.Version <= current {
			applied = append(applied, path.Base(s.Path))
		} else {
			pending = append(pending, path.Base(s.Path))
		}
	}
	return applied, pending, nil
}

func provider(t Target) (*goose.Provider, error) {
	dialect, fsys, table := goose.DialectSQLite3, SQLite(), "goose_db_version"
	if t.Postgres {
		dialect, fsys, table = goose.DialectPostgres, Postgres(), Schema+".goose_db_version"
	}
	p, err := goose.NewProvider(dialect, t.DB, fsys, goose.WithTableName(table))
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return p, nil
}
