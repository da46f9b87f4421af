package tenantdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	lib "modernc.org/sqlite/lib"

	"apiengine/fault"
	"apiengine/store/tenantdb/internal/litedb"
)

// SQLiteConfig sets up a tenant's database in a file of its own. Path is required.
type SQLiteConfig struct {
	Path     string
	Sync     string // "full": a commit survives a power cut; "normal": a crash of the process; default full
	Readers  int    // connections for reading beside the one that writes; default 4
	MaxRows  int    // of one result; default 10000
	MaxBytes int    // of one result, and of one statement's parameters; default 16 MiB
}

// OpenSQLite opens the database and creates what is missing. The error is
// store_unavailable, or names the first unusable field of cfg.
func OpenSQLite(ctx context.Context, cfg SQLiteConfig) (*DB, error) {
	cfg.Sync = cmp.Or(cfg.Sync, "full")
	cfg.Readers = cmp.Or(cfg.Readers, 4)
	switch {
	case cfg.Path == "":
		return nil, errors.New("tenantdb: SQLiteConfig.Path is missing")
	case cfg.Sync != "full" && cfg.Sync != "normal":
		return nil, fmt.Errorf("tenantdb: SQLiteConfig.Sync is %q, not full or normal", cfg.Sync)
	case cfg.Readers < 0:
		return nil, fmt.Errorf("tenantdb: SQLiteConfig.Readers is %d", cfg.Readers)
	}
	lite := litedb.Config{Path: cfg.Path, Sync: cfg.Sync, Allow: allowLite}
	b := &liteBackend{path: cfg.Path, writers: newLitePool(lite, 1)}
	lite.ReadOnly = true
	b.readers = newLitePool(lite, cfg.Readers)
	if err := b.prepare(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return &DB{b: b, g: liteGrammar, limits: newLimits(cfg.MaxRows, cfg.MaxBytes)}, nil
}

type liteBackend struct {
	path             string
	writers, readers *litePool
	claims           liteClaims
}

// liteOwnTables make the platform's tables, in order. Each must do no harm when what it
// makes is there.
var liteOwnTables = append([]string{
	`CREATE TABLE IF NOT EXISTS _apiengine_fence (
		lock_key TEXT PRIMARY KEY, token INTEGER NOT NULL, owner TEXT NOT NULL, sealed_at TEXT NOT NULL
	) STRICT, WITHOUT ROWID`,
	`CREATE TABLE IF NOT EXISTS _apiengine_fence_floor (bucket INTEGER PRIMARY KEY, token INTEGER NOT NULL) STRICT`,
	liteIdempotency, schemaFiles,
}, strings.Split(liteBox+";"+liteTasks, ";")...)

func (b *liteBackend) prepare(ctx context.Context) error {
	c, err := b.writers.get(ctx)
	if err != nil {
		return err
	}
	defer b.writers.put(c)
	for _, table := range liteOwnTables {
		if _, err := c.Run(ctx, litedb.Call{SQL: table}); err != nil {
			return liteError(ctx, err)
		}
	}
	lacks := false
	_, err = c.Run(ctx, litedb.Call{SQL: liteTasksLack, Row: func(*litedb.Stmt) error { lacks = true; return nil }})
	if err == nil && lacks {
		_, err = c.Run(ctx, litedb.Call{SQL: liteTasksBest})
	}
	if err != nil {
		return liteError(ctx, err)
	}
	return nil
}

func (b *liteBackend) ping(ctx context.Context) error {
	c, err := b.readers.get(ctx)
	if err != nil {
		return err
	}
	defer b.readers.put(c)
	if _, err := c.Run(ctx, litedb.Call{SQL: "SELECT 1 FROM _apiengine_fence LIMIT 1"}); err != nil {
		return liteError(ctx, err)
	}
	return nil
}

func (b *liteBackend) close() error { return errors.Join(b.readers.close(), b.writers.close()) }

func (b *liteBackend) forSchema(context.Context) (conns *sql.DB, done func() error, err error) {
	path, err := filepath.Abs(b.path)
	if err != nil {
		return nil, nil, fmt.Errorf("tenantdb: %w", err)
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: "_busy_timeout=30000&_foreign_keys=1&_txlock=immediate&_dqs=0"}
	if conns, err = sql.Open("sqlite", u.String()); err != nil {
		return nil, nil, err
	}
	return conns, conns.Close, nil
}

// allowLite is SQLite's own answer to what a statement touches, whatever its text says: it
// sees through views, triggers and quotes.
func allowLite(action int, arg1, arg2 string) string {
	switch action {
	case lib.SQLITE_TRANSACTION, lib.SQLITE_SAVEPOINT:
		return "the platform begins and ends the run's transaction"
	case lib.SQLITE_ATTACH, lib.SQLITE_DETACH, lib.SQLITE_PRAGMA:
		return "other databases and settings are out of reach"
	case lib.SQLITE_CREATE_TEMP_INDEX, lib.SQLITE_CREATE_TEMP_TABLE, lib.SQLITE_CREATE_TEMP_TRIGGER, lib.SQLITE_CREATE_TEMP_VIEW:
		return "temporary tables would outlive the run"
	case lib.SQLITE_CREATE_VTABLE, lib.SQLITE_DROP_VTABLE:
		return "virtual tables belong into a schema/*.sql file"
	case lib.SQLITE_FUNCTION:
		switch arg2 {
		case "load_extension", "readfile", "writefile", "edit", "fts3_tokenizer":
			return "the function " + arg2 + " is not available to scripts"
		}
		return ""
	}
	for _, name := range [...]string{arg1, arg2} {
		if len(name) >= len(Reserved) && strings.EqualFold(name[:len(Reserved)], Reserved) {
			return name + " belongs to the platform"
		}
	}
	return ""
}

// liteError says what kind of failure err is; see session for what follows from that.
func liteError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	e := new(litedb.Error)
	if !errors.As(err, &e) {
		return err
	}
	switch e.Primary() {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_CANTOPEN, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB,
		lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_NOMEM, lib.SQLITE_PROTOCOL, lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return unavailable(err, "the database cannot be used: %s", e.Msg)
	case lib.SQLITE_AUTH:
		if e.Denied != "" {
			return &SQLError{Msg: e.Denied, Cause: err}
		}
	}
	data := e.Primary() == lib.SQLITE_CONSTRAINT || e.Primary() == lib.SQLITE_MISMATCH || e.Primary() == lib.SQLITE_TOOBIG
	return &SQLError{Msg: e.Msg, Code: fmt.Sprint(e.Code), Data: data, Cause: err}
}

// litePool hands out connections, which are opened when first needed.
type litePool struct {
	cfg    litedb.Config
	slots  chan *litedb.Conn // nil: not opened yet
	closed chan struct{}
}

func newLitePool(cfg litedb.Config, n int) *litePool {
	p := &litePool{cfg: cfg, slots: make(chan *litedb.Conn, n), closed: make(chan struct{})}
	for range n {
		p.slots <- nil
	}
	return p
}

// get waits for a connection as long as ctx lasts.
func (p *litePool) get(ctx context.Context) (*litedb.Conn, error) {
	select {
	case <-p.closed:
		return nil, fault.New(fault.StoreUnavailable, "the database is closed")
	default:
	}
	select {
	case <-p.closed:
		return nil, fault.New(fault.StoreUnavailable, "the database is closed")
	case <-ctx.Done():
		return nil, ended(ctx)
	case c := <-p.slots:
		if c != nil {
			return c, nil
		}
		c, err := litedb.Open(p.cfg)
		if err != nil {
			p.slots <- nil
			return nil, unavailable(err, "the database cannot be opened")
		}
		return c, nil
	}
}

// put takes a connection back; one that is still in a transaction is replaced.
func (p *litePool) put(c *litedb.Conn) {
	if c.InTx() {
		_ = c.Close() // which rolls back
		c = nil
	}
	p.slots <- c
}

// close waits for every connection to come back.
func (p *litePool) close() error {
	close(p.closed)
	var errs []error
	for range cap(p.slots) {
		if c := <-p.slots; c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
