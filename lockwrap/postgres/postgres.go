// Package postgres keeps locks in a table of PostgreSQL 12 or newer: one row a lock, one
// statement and one round trip an operation. Nothing depends on a session, so an address
// may lead through a transaction pooler (PgBouncer); only Notify needs a direct one.
//
// The times are the server's. A lease outlives a crash of the server, and nothing is lost
// by one as long as synchronous_commit is not off.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"apiengine/lockwrap"
)

// Config sets up a Backend. URL is required; a zero field takes its default.
type Config struct {
	// URL is postgres://user:password@host:port/database, or libpq's keywords. Statements are
	// prepared on the server itself and not through a pooler, unless default_query_exec_mode
	// says how they go. Of several hosts the one that takes writes is used.
	URL      string
	Schema   string        // of the table locks, which is made if it is missing; default "lockwrap"
	Timeout  time.Duration // of making a connection; default 2s, at least 10ms
	PoolSize int           // connections, one more for Notify; default 2 per processor, at least 8
	Clean    time.Duration // from one removal of locks past their Claim.Keep to the next; default 1h
}

// Backend is a lockwrap.Backend in PostgreSQL. It has connections of its own.
type Backend struct {
	pool    *pgxpool.Pool
	listen  *pgx.ConnConfig
	sql     *statements
	clean   time.Duration
	pooled  atomic.Int64 // when the address was last seen to lead to a pooler; unix seconds
	work    context.Context
	stop    context.CancelFunc
	cleaner sync.WaitGroup
}

var _ lockwrap.Backend = (*Backend)(nil)

// New returns a Backend, or an error that names the first unusable field of cfg. It does
// not wait for a connection: a server that is not there yet is a *lockwrap.BackendError of later calls.
func New(cfg Config) (*Backend, error) {
	cfg.Schema = cmp.Or(cfg.Schema, "lockwrap")
	cfg.Timeout = cmp.Or(cfg.Timeout, 2*time.Second)
	cfg.PoolSize = cmp.Or(cfg.PoolSize, max(8, 2*runtime.GOMAXPROCS(0)))
	cfg.Clean = cmp.Or(cfg.Clean, time.Hour)
	switch {
	case cfg.Timeout < 10*time.Millisecond:
		return nil, fmt.Errorf("postgres: Config.Timeout must be at least 10ms, not %v", cfg.Timeout)
	case cfg.PoolSize < 1:
		return nil, fmt.Errorf("postgres: Config.PoolSize must be positive, not %d", cfg.PoolSize)
	case cfg.Clean < 0:
		return nil, fmt.Errorf("postgres: Config.Clean must be positive, not %v", cfg.Clean)
	case cfg.URL == "":
		return nil, errors.New("postgres: Config.URL is missing")
	}
	o, err := options(&cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: Config.URL cannot be used: %w", err)
	}
	b := &Backend{listen: o.ConnConfig.Copy(), sql: newStatements(pgx.Identifier{cfg.Schema}.Sanitize()), clean: cfg.Clean}
	if !strings.Contains(cfg.URL, "default_query_exec_mode") {
		o.AfterConnect = b.prepare
	}
	b.pool, err = pgxpool.NewWithConfig(context.Background(), o) // connects in the background
	if err != nil {
		return nil, fmt.Errorf("postgres: Config.URL cannot be used: %w", err)
	}
	b.work, b.stop = context.WithCancel(context.Background())
	b.cleaner.Go(b.cleaning)
	return b, nil
}

func options(cfg *Config) (*pgxpool.Config, error) {
	o, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, err
	}
	o.MaxConns, o.MinConns, o.MinIdleConns = int32(cfg.PoolSize), 0, int32(min(2, cfg.PoolSize))
	c := o.ConnConfig
	c.ConnectTimeout = cfg.Timeout
	if c.ValidateConnect == nil { // a standby would answer Confirm with the past
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return o, nil
}

// Acquire is lockwrap.Backend's.
func (b *Backend) Acquire(ctx context.Context, c lockwrap.Claim) (lockwrap.Reply, error) {
	w, err := b.run(ctx, "acquire", b.sql.acquire, append([]any{c.Lock}, wish(&c)...)...)
	switch {
	case err != nil:
		return lockwrap.Reply{}, err
	case w.holder == c.Holder:
		return lockwrap.Reply{Held: true, Token: w.token, Left: c.TTL}, nil
	}
	r := lockwrap.Reply{Token: w.token, Left: w.left}
	if w.holder != "" {
		r.By = lockwrap.Holder{API: w.api, Since: time.UnixMicro(w.since)}
	}
	return r, nil
}

// Confirm is lockwrap.Backend's.
func (b *Backend) Confirm(ctx context.Context, lock string, o lockwrap.Owner) (lockwrap.Reply, error) {
	return b.own(b.run(ctx, "confirm", b.sql.confirm, lock, o.Holder, o.Token))
}

// Renew is lockwrap.Backend's.
func (b *Backend) Renew(ctx context.Context, lock string, o lockwrap.Owner, ttl time.Duration) (lockwrap.Reply, error) {
	return b.own(b.run(ctx, "renew", b.sql.renew, lock, o.Holder, o.Token, ttl.Microseconds()))
}

func (b *Backend) own(w row, err error) (lockwrap.Reply, error) {
	if err != nil || !w.done {
		return lockwrap.Reply{Token: w.token}, err
	}
	return lockwrap.Reply{Held: true, Token: w.token, Left: w.left}, nil
}

// Release is lockwrap.Backend's.
func (b *Backend) Release(ctx context.Context, lock string, o lockwrap.Owner, next *lockwrap.Claim) (lockwrap.Reply, error) {
	args := []any{lock, o.Holder, o.Token, lockwrap.Grace.Microseconds()}
	if next == nil {
		w, err := b.run(ctx, "release", b.sql.release, args...)
		return lockwrap.Reply{Held: w.done, Token: w.token}, err
	}
	w, err := b.run(ctx, "release", b.sql.handOver, append(append(args, wish(next)...), next.Yield)...)
	r := lockwrap.Reply{Held: w.done, Token: w.token}
	if w.done {
		r.Token = cmp.Or(o.Token, w.before)
	}
	if w.done && w.holder == next.Holder {
		r.Next, r.Left = w.token, next.TTL
	}
	return r, err
}

// wish is a claim as the statements take it.
func wish(c *lockwrap.Claim) []any {
	return []any{c.Holder, c.TTL.Microseconds(), c.Floor, c.Keep.Microseconds(), c.API, c.Node, c.Queue}
}

// Leave is lockwrap.Backend's.
func (b *Backend) Leave(ctx context.Context, lock, node string) error {
	_, err := b.run(ctx, "leave", b.sql.leave, lock, node, lockwrap.Grace.Microseconds())
	return err
}

// Ping is lockwrap.Backend's.
func (b *Backend) Ping(ctx context.Context) error {
	if err := b.pool.Ping(ctx); err != nil {
		return &lockwrap.BackendError{Op: "ping", Err: err} // it changes nothing in any case
	}
	return nil
}

// Close is lockwrap.Backend's.
func (b *Backend) Close() error {
	b.stop()
	b.cleaner.Wait()
	b.pool.Close()
	return nil
}
