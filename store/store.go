// Package store holds every SQL statement of the platform's own database: definitions and
// their versions, tenants, secrets, tokens, and the mark of the embedded lock. A tenant's
// tables are package store/tenantdb's.
//
// Every error has a fault.Kind: NotFoundError, ConflictError, bad_request for an argument,
// unauthenticated for a token, store_unavailable when the database cannot be used.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"apiengine/migrations"
)

// Config sets up a Store. One of SQLitePath and Pool is required.
type Config struct {
	SQLitePath string        // the database file; it and its folder are made when missing
	Sync       string        // SQLite only: "full" (default; survives a power cut) or "normal" (a crash)
	Pool       *pgxpool.Pool // set: PostgreSQL, schema _apiengine_platform. The caller closes it
	SecretKey  []byte        // 32 bytes, encrypts the secrets; without it secrets are refused
	// Beside makes the tables that others keep in the same database, under the lock of the
	// migrations; sqlite is nil on PostgreSQL. nil: none.
	Beside func(ctx context.Context, sqlite *sql.DB) error
}

// Store is the platform's database. It is safe for concurrent use.
type Store struct {
	read, write *sql.DB // one and the same on PostgreSQL
	target      migrations.Target
	names       *strings.Replacer // {table} -> the table's name in this dialect
	clock       string            // microseconds since 1970, by the database
	sealer      *sealer           // nil without a key
	tokens      *tokenCache
}

// Open opens the database and applies pending migrations; of several nodes that start at
// once one migrates and the others wait for it. The error names an unusable field of cfg.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	sealer, err := newSealer(cfg.SecretKey)
	if err != nil {
		return nil, err
	}
	s, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	s.sealer = sealer
	if cfg.Beside != nil {
		s.target.Beside = func(ctx context.Context) error { return cfg.Beside(ctx, s.Queue()) }
	}
	if s.tokens, err = newTokenCache(); err != nil {
		return nil, errors.Join(err, s.closeDB())
	}
	if _, err := migrations.Up(ctx, s.target); err != nil {
		return nil, errors.Join(classify(ctx, "open", err), s.Close())
	}
	return s, nil
}

func connect(cfg Config) (*Store, error) {
	switch {
	case cfg.Pool != nil && cfg.SQLitePath != "":
		return nil, errors.New("store: Config.SQLitePath and Config.Pool are both set")
	case cfg.Pool != nil && cfg.Pool.Config().MaxConns < 2:
		return nil, errors.New("store: Config.Pool allows one connection, want 2 or more") // migrations lock on one and work on another
	case cfg.Pool != nil:
		db := stdlib.OpenDBFromPool(cfg.Pool)
		return &Store{
			read: db, write: db,
			target: migrations.Target{DB: db, Postgres: true},
			names:  strings.NewReplacer("{", migrations.Schema+".", "}", ""),
			clock:  "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
		}, nil
	case cfg.SQLitePath != "":
		read, write, err := openSQLite(cfg.SQLitePath, cfg.Sync)
		if err != nil {
			return nil, err
		}
		return &Store{
			read: read, write: write,
			target: migrations.Target{DB: write, LockPath: cfg.SQLitePath + ".migrate"},
			names:  strings.NewReplacer("{", "", "}", ""),
			clock:  "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
		}, nil
	}
	return nil, errors.New("store: Config.SQLitePath or Config.Pool is missing")
}

// Close releases what Open took. Calls under way end with an error.
func (s *Store) Close() error {
	s.tokens.close()
	return s.closeDB()
}

func (s *Store) closeDB() error {
	if s.read == s.write {
		return s.write.Close()
	}
	return errors.Join(s.read.Close(), s.write.Close())
}

// Ping asks the database for an answer.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.Revision(ctx)
	return err
}

// Migrations returns the names of the applied and of the pending migrations.
func (s *Store) Migrations(ctx context.Context) (applied, pending []string, err error) {
	applied, pending, err = migrations.Status(ctx, s.target)
	if err != nil {
		return nil, nil, classify(ctx, "migrations", err)
	}
	return applied, pending, nil
}

// Revision returns the number of the newest change of a definition, a tenant's settings or
// a secret. It is one read of one row, made to be polled. A change with a number below the
// one returned is never committed later.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	var rev int64
	err := s.one(ctx, "SELECT value FROM {counters} WHERE name = 'revision'").Scan(&rev)
	if err != nil {
		return 0, classify(ctx, "revision", err)
	}
	return rev, nil
}

// LoadMark returns what SaveMark stored last, 0 at first.
func (s *Store) LoadMark(ctx context.Context) (int64, error) {
	var mark int64
	err := s.one(ctx, "SELECT value FROM {counters} WHERE name = 'lock_mark'").Scan(&mark)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, classify(ctx, "load mark", err)
	}
	return mark, nil
}

// SaveMark stores mark durably. A smaller mark than the stored one changes nothing.
func (s *Store) SaveMark(ctx context.Context, mark int64) error {
	return s.update(ctx, "save mark", func(tx *tx) error {
		_, err := tx.exec(`INSERT INTO {counters} AS c (name, value) VALUES ('lock_mark', $1)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE c.value < excluded.value`, mark)
		return err
	})
}

// one is a query for one row on the reading side.
func (s *Store) one(ctx context.Context, text string, args ...any) *sql.Row {
	return s.read.QueryRowContext(ctx, s.names.Replace(text), args...)
}

// rows runs a query on the reading side.
func (s *Store) rows(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return s.read.QueryContext(ctx, s.names.Replace(text), args...)
}

// collect scans every row of what Store.rows returns.
func collect[T any](ctx context.Context, scan func(scanner) (T, error)) func(*sql.Rows, error) ([]T, error) {
	return func(rows *sql.Rows, err error) ([]T, error) {
		if err != nil {
			return nil, classify(ctx, "query", err)
		}
		defer rows.Close()
		var list []T
		for rows.Next() {
			v, err := scan(rows)
			if err != nil {
				return nil, classify(ctx, "query", err)
			}
			list = append(list, v)
		}
		if err := rows.Err(); err != nil {
			return nil, classify(ctx, "query", err)
		}
		return list, nil
	}
}

// scanner is a *sql.Row or *sql.Rows.
type scanner interface{ Scan(...any) error }

// tx is a writing transaction.
type tx struct {
	ctx context.Context
	sql *sql.Tx
	s   *Store
}

// update runs fn in a writing transaction and commits when fn returns nil. op names the
// operation in errors.
func (s *Store) update(ctx context.Context, op string, fn func(*tx) error) error {
	// READ COMMITTED whatever the server's default is: each statement after the one that
	// waited for a lock then sees what the lock's last holder committed. SQLite has one
	// writer and knows no levels.
	var opts *sql.TxOptions
	if s.target.Postgres {
		opts = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	t, err := s.write.BeginTx(ctx, opts)
	if err != nil {
		return classify(ctx, op, err)
	}
	if err := fn(&tx{ctx: ctx, sql: t, s: s}); err != nil {
		_ = t.Rollback() // the error of fn is the one that matters
		return classify(ctx, op, err)
	}
	if err := t.Commit(); err != nil {
		return classify(ctx, op, fmt.Errorf("commit: %w", err))
	}
	return nil
}

func (t *tx) one(text string, args ...any) *sql.Row {
	return t.sql.QueryRowContext(t.ctx, t.s.names.Replace(text), args...)
}

// exec returns the number of rows changed.
func (t *tx) exec(text string, args ...any) (int64, error) {
	r, err := t.sql.ExecContext(t.ctx, t.s.names.Replace(text), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// nextRevision takes the next revision. Its row stays locked until the transaction ends,
// so revisions become visible in their order, and one transaction that calls it at its
// beginning never runs beside another.
func (t *tx) nextRevision() (rev int64, err error) {
	err = t.one("UPDATE {counters} SET value = value + 1 WHERE name = 'revision' RETURNING value").Scan(&rev)
	return rev, err
}

// serialise makes the transaction wait for every other that changes something.
func (t *tx) serialise() error {
	_, err := t.exec("UPDATE {counters} SET value = value WHERE name = 'revision'")
	return err
}
