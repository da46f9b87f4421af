// Package litedb is a thin layer over the SQLite library of modernc.org/sqlite, below that
// module's database/sql driver, which cannot do three things that a tenant's database needs:
//
//   - the driver turns text in columns declared DATE, DATETIME or TIMESTAMP into time.Time,
//     so that what was stored cannot be had back, and `WHERE UpdateTime = @p0` fails;
//   - it stops a statement at its deadline only until the first row has come, so that one
//     more row could be computed for hours with the writer's lock held;
//   - it does not say whether an error has ended the transaction (SQLite ends it by itself
//     after an interrupt or a full disk), and what follows would commit statement by statement.
//
// It also keeps prepared statements and gives column text without a copy.
package litedb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// Config says how to open one connection. Path is required.
type Config struct {
	Path      string
	ReadOnly  bool   // statements that write fail
	Sync      string // "full" or "normal" (PRAGMA synchronous); default "full"
	MaxLength int    // bytes of one string, blob or row; default 64 MiB
	MaxStmts  int    // prepared statements kept; default 128

	// Allow is asked, while a script's statement is compiled, about each action of the
	// list in https://www.sqlite.org/c3ref/c_alter_table.html; a reason that is not empty
	// refuses the statement. nil allows everything.
	Allow func(action int, arg1, arg2 string) (reason string)
}

// Error is a failure that SQLite reported.
type Error struct {
	Code   int    // extended result code
	Msg    string // SQLite's own text
	Denied string // Allow's reason, when that refused the statement
}

func (e *Error) Error() string { return fmt.Sprintf("sqlite: %s (%d)", e.Msg, e.Code) }

// Primary is the result code without its extension.
func (e *Error) Primary() int { return e.Code & 0xff }

// Conn is one connection. It must not be used by two goroutines at once.
type Conn struct {
	cfg    Config
	tls    *libc.TLS
	db     uintptr
	stmts  map[stmtKey]*Stmt
	ctx    context.Context // of the statement that runs; nil between statements
	script bool            // the statement that runs is a script's
	denied string

	// SQLite holds the addresses of these two; the fields keep them alive.
	progress  func(*libc.TLS, uintptr) int32
	authorize func(*libc.TLS, uintptr, int32, uintptr, uintptr, uintptr, uintptr) int32
}

type stmtKey struct {
	sql    string
	script bool
}

// progressSteps is how many virtual machine steps pass between two looks at the context:
// some tens of microseconds.
const progressSteps = 1000

// Open opens the database, creating the file when it is missing, in WAL mode, with foreign
// keys on, defensive, without extensions, and with "x" never meaning the string 'x'.
func Open(cfg Config) (*Conn, error) {
	if cfg.Path == "" {
		return nil, errors.New("litedb: Config.Path is missing")
	}
	if cfg.Sync == "" {
		cfg.Sync = "full"
	}
	if cfg.MaxLength == 0 {
		cfg.MaxLength = 64 << 20
	}
	if cfg.MaxStmts == 0 {
		cfg.MaxStmts = 128
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("litedb: %w", err)
	}
	c := &Conn{cfg: cfg, tls: libc.NewTLS(), stmts: map[stmtKey]*Stmt{}}
	if err := c.open((&url.URL{Scheme: "file", Path: path}).String()); err != nil {
		c.Close()
		return nil, err
	}
	if err := c.configure(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) open(uri string) error {
	name, err := libc.CString(uri)
	if err != nil {
		return fmt.Errorf("litedb: %w", err)
	}
	defer libc.Xfree(c.tls, name)
	handle, err := c.malloc(int(unsafe.Sizeof(uintptr(0))))
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, handle)
	// NOMUTEX: a Conn belongs to one goroutine at a time, so SQLite need not lock it.
	rc := lib.Xsqlite3_open_v2(c.tls, name, handle,
		lib.SQLITE_OPEN_READWRITE|lib.SQLITE_OPEN_CREATE|lib.SQLITE_OPEN_NOMUTEX|lib.SQLITE_OPEN_URI, 0)
	c.db = *(*uintptr)(pointer(handle))
	return c.check(rc)
}

func (c *Conn) configure() error {
	lib.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	for _, option := range []struct{ op, on int32 }{
		{lib.SQLITE_DBCONFIG_DEFENSIVE, 1},
		{lib.SQLITE_DBCONFIG_DQS_DDL, 0},
		{lib.SQLITE_DBCONFIG_DQS_DML, 0},
		{lib.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
		{lib.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
	} {
		if err := c.dbConfig(option.op, option.on); err != nil {
			return err
		}
	}
	lib.Xsqlite3_limit(c.tls, c.db, lib.SQLITE_LIMIT_LENGTH, int32(c.cfg.MaxLength))
	lib.Xsqlite3_limit(c.tls, c.db, lib.SQLITE_LIMIT_ATTACHED, 0)
	c.progress = func(*libc.TLS, uintptr) int32 {
		if c.ctx != nil && c.ctx.Err() != nil {
			return 1
		}
		return 0
	}
	lib.Xsqlite3_progress_handler(c.tls, c.db, progressSteps, funcPointer(c.progress), 0)
	pragmas := []string{"busy_timeout = 5000", "journal_mode = WAL", "synchronous = " + c.cfg.Sync, "foreign_keys = 1",
		"busy_timeout = 50"} // short: who waits for the writer looks at its context in between
	if c.cfg.ReadOnly {
		pragmas = append(pragmas, "query_only = 1")
	}
	for _, p := range pragmas {
		if _, err := c.Run(context.Background(), Call{SQL: "PRAGMA " + p}); err != nil {
			return err
		}
	}
	if c.cfg.Allow == nil {
		return nil
	}
	c.authorize = c.authorizer
	return c.check(lib.Xsqlite3_set_authorizer(c.tls, c.db, funcPointer(c.authorize), 0))
}

func (c *Conn) authorizer(_ *libc.TLS, _ uintptr, action int32, arg1, arg2, _, _ uintptr) int32 {
	if !c.script {
		return lib.SQLITE_OK
	}
	if reason := c.cfg.Allow(int(action), goString(arg1), goString(arg2)); reason != "" {
		c.denied = reason
		return lib.SQLITE_DENY
	}
	return lib.SQLITE_OK
}

func (c *Conn) dbConfig(op, on int32) error {
	args, err := c.malloc(16) // two slots of 8 bytes each
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, args)
	return c.check(lib.Xsqlite3_db_config(c.tls, c.db, op, libc.VaList(args, on, uintptr(0))))
}

// InTx reports whether a transaction is open. After an error it may have ended by itself.
func (c *Conn) InTx() bool { return lib.Xsqlite3_get_autocommit(c.tls, c.db) == 0 }

// Close ends the connection; an open transaction is rolled back. It may be called twice.
func (c *Conn) Close() error {
	if c.tls == nil {
		return nil
	}
	for k, s := range c.stmts {
		s.finalize()
		delete(c.stmts, k)
	}
	var err error
	if c.db != 0 {
		err = c.check(lib.Xsqlite3_close_v2(c.tls, c.db))
		c.db = 0
	}
	c.tls.Close()
	c.tls = nil
	return err
}

func (c *Conn) check(rc int32) error {
	if rc == lib.SQLITE_OK {
		return nil
	}
	e := &Error{Code: int(rc), Msg: goString(lib.Xsqlite3_errstr(c.tls, rc))}
	if c.db != 0 {
		e.Msg = goString(lib.Xsqlite3_errmsg(c.tls, c.db))
	}
	if rc&0xff == lib.SQLITE_AUTH {
		e.Denied, c.denied = c.denied, ""
	}
	return e
}

func (c *Conn) malloc(n int) (uintptr, error) {
	p := libc.Xmalloc(c.tls, types.Size_t(n))
	if p == 0 {
		return 0, errors.New("litedb: out of memory")
	}
	return p, nil
}

// pointer turns an address of the C heap into a Go pointer. The detour over the address
// of p says that p is no Go object, which go vet cannot know.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// funcPointer gives SQLite the address of a Go function value; the caller keeps f alive.
func funcPointer[T any](f T) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func goString(p uintptr) string {
	if p == 0 {
		return ""
	}
	return libc.GoString(p)
}
