package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"apiengine/lockwrap"
)

// row is a statement's answer; see statements. The zero row is that of a lock without one.
type row struct {
	done        bool
	token       int64
	holder, api string
	since       int64
	left        time.Duration
	before      int64
}

// run executes a statement, if need be after the table was made.
func (b *Backend) run(ctx context.Context, op, sql string, args ...any) (row, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.work, cancel)()
	w, err := b.once(ctx, op, sql, args)
	if missing(err) {
		if _, err := b.pool.Exec(ctx, b.sql.table, pgx.QueryExecModeSimpleProtocol); err != nil {
			return row{}, &lockwrap.BackendError{Op: op, Err: err} // no lock is touched by it
		}
		w, err = b.once(ctx, op, sql, args)
	}
	return w, err
}

func (b *Backend) once(ctx context.Context, op, sql string, args []any) (w row, err error) {
	c, err := b.pool.Acquire(ctx)
	if err != nil {
		return w, &lockwrap.BackendError{Op: op, Err: err} // nothing was sent
	}
	defer c.Release()
	var left int64
	if mode, ok := c.Conn().PgConn().CustomData()[execMode].(pgx.QueryExecMode); ok {
		args = append([]any{mode}, args...)
	}
	err = c.QueryRow(ctx, sql, args...).Scan(&w.done, &w.token, &w.holder, &w.api, &w.since, &left, &w.before)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return row{}, nil
	case err != nil:
		return row{}, classify(op, err)
	}
	w.left = max(0, time.Duration(left)*time.Microsecond)
	return w, nil
}

const execMode = "lockwrap's mode" // key of a connection's custom data

// prepare gets a new connection ready. To prepare saves nine tenths of a statement's time,
// but behind a pooler the next statement may meet another session.
func (b *Backend) prepare(ctx context.Context, c *pgx.Conn) error {
	direct, err := isDirect(ctx, c)
	if err != nil || !direct {
		c.PgConn().CustomData()[execMode] = pgx.QueryExecModeExec
		return err
	}
	for _, sql := range []string{b.sql.acquire, b.sql.release} { // the first call is not to wait for it
		if _, err := c.Prepare(ctx, sql, sql); missing(err) {
			return nil // the others are prepared when they are used
		} else if err != nil {
			return err
		}
	}
	return nil
}

// isDirect reports whether the server itself is at the other end: a pooler makes up the
// process number in its greeting.
func isDirect(ctx context.Context, c *pgx.Conn) (bool, error) {
	var pid uint32
	err := c.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid)
	return pid == c.PgConn().PID(), err
}

// classify says whether a failed statement can have been executed. What the server reports as
// an ERROR was rolled back. A FATAL one ends the connection and may come after the commit; so
// may what a pooler reports in the server's name when it loses its own connection, for which
// the classes of connection trouble, shutdown, system and internal errors are in use.
func classify(op string, err error) error {
	var reply *pgconn.PgError
	switch {
	case pgconn.SafeToRetry(err):
		return &lockwrap.BackendError{Op: op, Err: err}
	case errors.As(err, &reply) && reply.SeverityUnlocalized == "ERROR" && !doubtful(reply.Code):
		return &lockwrap.BackendError{Op: op, Err: err}
	}
	return &lockwrap.UnknownError{Op: op, Err: err}
}

func doubtful(code string) bool {
	for _, class := range []string{"08", "57P", "58", "XX"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}

// missing reports that the table, or its schema, is not there.
func missing(err error) bool {
	var reply *pgconn.PgError
	return errors.As(err, &reply) && (reply.Code == "42P01" || reply.Code == "3F000")
}

// cleaning removes rows that need not be remembered any more, until Close. Nodes do it at
// different times; each finds what the others left.
func (b *Backend) cleaning() {
	for {
		t := time.NewTimer(b.clean/2 + rand.N(b.clean))
		select {
		case <-b.work.Done():
			t.Stop()
			return
		case <-t.C:
			b.sweep()
		}
	}
}

func (b *Backend) sweep() {
	for {
		ctx, cancel := context.WithTimeout(b.work, time.Minute)
		tag, err := b.pool.Exec(ctx, b.sql.clean, pgx.QueryExecModeExec)
		cancel()
		if err != nil || tag.RowsAffected() < 1000 {
			return // an error stops nobody: what is left is for the next time
		}
	}
}
