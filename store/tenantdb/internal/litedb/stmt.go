package litedb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Call is one statement to run.
type Call struct {
	SQL    string
	Args   []any // nil, bool, int64, float64, string or []byte, for ?1, ?2 ...
	Script bool  // it comes from a script: Allow is asked

	// Columns, when given, is called once before the first row (also when there is none);
	// Row for each row. An error of either stops the statement and is returned as it is.
	Columns func(*Stmt) error
	Row     func(*Stmt) error
}

// Stmt is a prepared statement; inside Call.Columns and Call.Row it gives the result.
type Stmt struct {
	c       *Conn
	handle  uintptr
	columns []Column
	inUse   bool
}

// Column is a result column.
type Column struct {
	Name     string
	DeclType string // upper case, as the table declares it; empty for expressions
}

// ErrNoStatement reports SQL that holds nothing but blanks and comments.
var ErrNoStatement = errors.New("litedb: no statement")

// Run runs one statement to its end and returns the number of rows it changed (0 for
// statements that change none). It stops with ctx's cause when ctx ends; then, and after
// other errors, InTx tells whether the transaction survived.
func (c *Conn) Run(ctx context.Context, call Call) (changed int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, context.Cause(ctx)
	}
	c.ctx, c.script, c.denied = ctx, call.Script, ""
	defer func() { c.ctx, c.script = nil, false }()
	s, err := c.prepare(call.SQL, call.Script)
	if err != nil {
		return 0, err
	}
	s.inUse = true
	defer s.release()
	if err := s.bind(call.Args); err != nil {
		return 0, err
	}
	// Counted as a difference: a statement that changes nothing leaves the last count standing.
	before := lib.Xsqlite3_total_changes64(c.tls, c.db)
	if err := s.steps(call); err != nil {
		if e := new(Error); errors.As(err, &e) && e.Primary() == lib.SQLITE_INTERRUPT && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return 0, err
	}
	if lib.Xsqlite3_total_changes64(c.tls, c.db) == before {
		return 0, nil
	}
	return lib.Xsqlite3_changes64(c.tls, c.db), nil
}

func (s *Stmt) steps(call Call) error {
	for first := true; ; first = false {
		rc := lib.Xsqlite3_step(s.c.tls, s.handle)
		if rc != lib.SQLITE_ROW && rc != lib.SQLITE_DONE {
			return s.c.check(rc)
		}
		if first && call.Columns != nil {
			s.describe() // after the step, which may have prepared the statement anew
			if err := call.Columns(s); err != nil {
				return err
			}
		}
		if rc == lib.SQLITE_DONE {
			return nil
		}
		if call.Row != nil {
			if err := call.Row(s); err != nil {
				return err
			}
		}
	}
}

func (c *Conn) prepare(sql string, script bool) (*Stmt, error) {
	key := stmtKey{sql, script}
	if s := c.stmts[key]; s != nil && !s.inUse {
		return s, nil
	}
	if strings.IndexByte(sql, 0) >= 0 {
		return nil, &Error{Code: lib.SQLITE_ERROR, Msg: "the statement holds a NUL character"}
	}
	text, err := libc.CString(sql)
	if err != nil {
		return nil, fmt.Errorf("litedb: %w", err)
	}
	defer libc.Xfree(c.tls, text)
	out, err := c.malloc(int(unsafe.Sizeof(uintptr(0))))
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, out)
	*(*uintptr)(pointer(out)) = 0
	if rc := lib.Xsqlite3_prepare_v3(c.tls, c.db, text, -1, lib.SQLITE_PREPARE_PERSISTENT, out, 0); rc != lib.SQLITE_OK {
		return nil, c.check(rc)
	}
	s := &Stmt{c: c, handle: *(*uintptr)(pointer(out))}
	if s.handle == 0 {
		return nil, ErrNoStatement
	}
	c.keep(key, s)
	return s, nil
}

// keep puts s into the cache; a full cache is emptied, which costs less than the books
// of an order of use would.
func (c *Conn) keep(key stmtKey, s *Stmt) {
	if len(c.stmts) >= c.cfg.MaxStmts {
		for k, old := range c.stmts {
			if !old.inUse {
				old.finalize()
				delete(c.stmts, k)
			}
		}
	}
	c.stmts[key] = s
}

func (s *Stmt) bind(args []any) error {
	if n := int(lib.Xsqlite3_bind_parameter_count(s.c.tls, s.handle)); n != len(args) {
		return fmt.Errorf("litedb: the statement has %d parameters, %d were given", n, len(args))
	}
	for i, a := range args {
		if err := s.bindOne(int32(i+1), a); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stmt) bindOne(i int32, a any) error {
	tls, h := s.c.tls, s.handle
	switch v := a.(type) {
	case nil:
		return s.c.check(lib.Xsqlite3_bind_null(tls, h, i))
	case bool:
		n := int64(0)
		if v {
			n = 1
		}
		return s.c.check(lib.Xsqlite3_bind_int64(tls, h, i, n))
	case int64:
		return s.c.check(lib.Xsqlite3_bind_int64(tls, h, i, v))
	case float64:
		return s.c.check(lib.Xsqlite3_bind_double(tls, h, i, v))
	case string:
		p, err := libc.CString(v)
		if err != nil {
			return fmt.Errorf("litedb: %w", err)
		}
		defer libc.Xfree(tls, p)
		// ^0 is SQLITE_TRANSIENT: SQLite takes a copy of its own.
		return s.c.check(lib.Xsqlite3_bind_text(tls, h, i, p, int32(len(v)), ^uintptr(0)))
	case []byte:
		return s.bindBlob(i, v)
	}
	return fmt.Errorf("litedb: a parameter of type %T", a)
}

func (s *Stmt) bindBlob(i int32, v []byte) error {
	if len(v) == 0 { // a null pointer would bind NULL
		return s.c.check(lib.Xsqlite3_bind_zeroblob(s.c.tls, s.handle, i, 0))
	}
	p, err := s.c.malloc(len(v))
	if err != nil {
		return err
	}
	defer libc.Xfree(s.c.tls, p)
	copy(unsafe.Slice((*byte)(pointer(p)), len(v)), v)
	return s.c.check(lib.Xsqlite3_bind_blob(s.c.tls, s.handle, i, p, int32(len(v)), ^uintptr(0)))
}

func (s *Stmt) release() {
	lib.Xsqlite3_reset(s.c.tls, s.handle) // its result repeats what step has said
	lib.Xsqlite3_clear_bindings(s.c.tls, s.handle)
	s.inUse = false
}

func (s *Stmt) finalize() {
	lib.Xsqlite3_finalize(s.c.tls, s.handle)
	s.handle = 0
}

func (s *Stmt) describe() {
	n := int(lib.Xsqlite3_column_count(s.c.tls, s.handle))
	s.columns = make([]Column, n)
	for i := range s.columns {
		s.columns[i] = Column{
			Name:     goString(lib.Xsqlite3_column_name(s.c.tls, s.handle, int32(i))),
			DeclType: strings.ToUpper(goString(lib.Xsqlite3_column_decltype(s.c.tls, s.handle, int32(i)))),
		}
	}
}

// Columns are the result's columns, none for a statement without a result.
func (s *Stmt) Columns() []Column { return s.columns }

// The storage classes that Type returns.
const (
	Integer = lib.SQLITE_INTEGER
	Float   = lib.SQLITE_FLOAT
	Text    = lib.SQLITE_TEXT
	Blob    = lib.SQLITE_BLOB
	Null    = lib.SQLITE_NULL
)

// Type is the storage class of column i in this row.
func (s *Stmt) Type(i int) int {
	return int(lib.Xsqlite3_column_type(s.c.tls, s.handle, int32(i)))
}

// Int is column i as an integer.
func (s *Stmt) Int(i int) int64 { return lib.Xsqlite3_column_int64(s.c.tls, s.handle, int32(i)) }

// Float is column i as a number.
func (s *Stmt) Float(i int) float64 {
	return lib.Xsqlite3_column_double(s.c.tls, s.handle, int32(i))
}

// Bytes is column i as text, or as the bytes of a blob. It is valid until the row ends.
func (s *Stmt) Bytes(i int) []byte {
	p := lib.Xsqlite3_column_blob(s.c.tls, s.handle, int32(i))
	n := lib.Xsqlite3_column_bytes(s.c.tls, s.handle, int32(i))
	if p == 0 || n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(pointer(p)), n)
}
