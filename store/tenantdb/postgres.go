package tenantdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"apiengine/fault"
)

// PostgresConfig sets up a tenant's database in a schema of its own. Both are required.
type PostgresConfig struct {
	Pool     *pgxpool.Pool // shared by the tenants of one server; stays open after Close
	Schema   string        // created when missing
	MaxRows  int           // of one result; default 10000
	MaxBytes int           // of one result, and of one statement's parameters; default 16 MiB
}

// OpenPostgres opens the database and creates what is missing. The error is
// store_unavailable, ctx's cause, or names the first unusable field of cfg.
func OpenPostgres(ctx context.Context, cfg PostgresConfig) (*DB, error) {
	switch {
	case cfg.Pool == nil:
		return nil, errors.New("tenantdb: PostgresConfig.Pool is missing")
	case cfg.Schema == "":
		return nil, errors.New("tenantdb: PostgresConfig.Schema is missing")
	case len(cfg.Schema) > 63 || strings.HasPrefix(cfg.Schema, "pg_") || strings.ContainsRune(cfg.Schema, 0):
		return nil, errors.New("tenantdb: PostgresConfig.Schema is no name for a schema")
	}
	l := newLimits(cfg.MaxRows, cfg.MaxBytes)
	b := &pgBackend{pool: cfg.Pool, schema: cfg.Schema, path: pgx.Identifier{cfg.Schema}.Sanitize(), maxBytes: l.bytes}
	if err := pgx.BeginFunc(ctx, cfg.Pool, func(tx pgx.Tx) error { return b.create(ctx, tx) }); err != nil {
		return nil, pgError(ctx, time.Time{}, err)
	}
	return &DB{b: b, g: pgGrammar, limits: l}, nil
}

type pgBackend struct {
	pool     *pgxpool.Pool
	schema   string
	path     string // the schema as search_path takes it
	maxBytes int

	unprepared atomic.Bool // prepared statements do not work here
}

// create makes the schema and its guard table. Nodes that start together take turns, since
// IF NOT EXISTS alone can fail on a race.
func (b *pgBackend) create(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "apiengine:"+b.schema); err != nil {
		return err
	}
	var exists bool // the last one made
	if err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", b.path+"._apiengine_inbox_seen").Scan(&exists); err != nil || exists {
		return err
	}
	// Looked up first: CREATE SCHEMA IF NOT EXISTS needs the right even when there is nothing to do.
	if err := tx.QueryRow(ctx, "SELECT count(*) = 1 FROM pg_namespace WHERE nspname = $1", b.schema).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+b.path); err != nil {
			return err
		}
	}
	fence := "CREATE TABLE IF NOT EXISTS " + b.path + `._apiengine_fence (
		lock_key text PRIMARY KEY, token bigint NOT NULL, owner text NOT NULL, sealed_at timestamptz NOT NULL
	) WITH (fillfactor = 50)`
	for _, sql := range append([]string{fence}, pgGrammar.boxTables(b.path)...) {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func (b *pgBackend) ping(ctx context.Context) error {
	if err := b.pool.Ping(ctx); err != nil {
		return pgError(ctx, time.Time{}, err)
	}
	return nil
}

func (b *pgBackend) close() error { return nil }

func (b *pgBackend) forSchema() (*sql.DB, error) {
	cfg := b.pool.Config().ConnConfig.Copy()
	if cfg.RuntimeParams == nil {
		cfg.RuntimeParams = map[string]string{}
	}
	cfg.RuntimeParams["search_path"] = b.path
	return stdlib.OpenDB(*cfg), nil
}

// pgError says what kind of failure err is. until is the end of the run's budget, zero
// when there is none: only then were the server's own time limits set.
func pgError(ctx context.Context, until time.Time, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	e := new(pgconn.PgError)
	if !errors.As(err, &e) {
		return unavailable(err, "the database cannot be reached")
	}
	class := e.Code[:min(2, len(e.Code))]
	switch {
	case e.Code == "25P03": // idle_in_transaction_session_timeout
		return fault.Wrap(fault.Timeout, err, "the run's time was over")
	case e.Code == "57014" || e.Code == "55P03": // statement_timeout or a cancel; lock_timeout or NOWAIT
		if !until.IsZero() && time.Until(until) < 100*time.Millisecond {
			return fault.Wrap(fault.Timeout, err, "the run's time was over")
		}
	case class == "57" || class == "53" || class == "58" || class == "08" || class == "28" || e.Code == "3D000" || e.Code == "25006":
		return unavailable(err, "the database cannot be used now: %s", e.Message)
	}
	msg := e.Message
	if e.Detail != "" {
		msg += " (" + e.Detail + ")"
	}
	return &SQLError{Msg: msg, Code: e.Code, Data: class == "22" || class == "23", Cause: err}
}

// milliseconds is the time left until t as PostgreSQL's settings take it; "0" is no limit.
func milliseconds(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return cmp.Or(msText(time.Until(t)), "1")
}
