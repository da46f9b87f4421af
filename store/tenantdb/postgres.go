package tenantdb

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"apiengine/fault"
)

// PostgresConfig sets up a tenant's database in schemas and with a role of its own. Pool and
// Schema are required.
type PostgresConfig struct {
	Pool     *pgxpool.Pool // shared by the tenants of one server; stays open after Close
	Schema   string        // of the tenant's tables, at most 58 bytes; created when missing
	Shared   bool          // statements keep the pool's role: the tenant gets none of its own
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
	case len(cfg.Schema) > 58 || strings.HasPrefix(cfg.Schema, "pg_") || strings.ContainsRune(cfg.Schema, 0):
		return nil, errors.New("tenantdb: PostgresConfig.Schema is no name for a schema")
	}
	l := newLimits(cfg.MaxRows, cfg.MaxBytes)
	b := &pgBackend{pool: cfg.Pool, schema: cfg.Schema, path: quote(cfg.Schema), own: quote(cfg.Schema + ownSuffix),
		shared: cfg.Shared, maxBytes: l.bytes}
	if err := pgx.BeginFunc(ctx, cfg.Pool, func(tx pgx.Tx) error { return b.create(ctx, tx) }); err != nil {
		if fault.Of(err) == fault.StoreUnavailable {
			return nil, err
		}
		return nil, pgError(ctx, time.Time{}, err)
	}
	return &DB{b: b, g: pgGrammar, limits: l}, nil
}

type pgBackend struct {
	pool     *pgxpool.Pool
	schema   string
	path     string // the schema as search_path takes it
	own      string // that of the platform's tables, likewise
	shared   bool
	role     string // of the tenant's statements
	self     string // of the platform's: what the setting role is in a new session
	maxBytes int

	unprepared atomic.Bool // prepared statements do not work here
}

func (b *pgBackend) ping(ctx context.Context) error {
	if err := b.pool.Ping(ctx); err != nil {
		return pgError(ctx, time.Time{}, err)
	}
	return nil
}

func (b *pgBackend) close() error { return nil }

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
