package tenantdb

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"apiengine/store/tenantdb/internal/sqltext"
)

// Tx is one transaction. It must not be used by two goroutines at once.
type Tx struct {
	db         *DB
	s          session
	over       bool
	savepoints int
	guards     []nestedGuard
	defined    bool        // it has changed tables, which the shared cache must not learn yet
	tables     *tableCache // its own cache, once defined
}

// nestedGuard is a guard taken by Guard, after so many savepoints had been made.
type nestedGuard struct {
	Guard
	savepoints int
}

// Guard takes the guard row of one more lock, that of a nested call, into the transaction;
// it stays taken until the transaction ends. A *StaleError means that a newer holder was
// there; the transaction must then be rolled back.
func (tx *Tx) Guard(ctx context.Context, g Guard) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}
	if err := g.valid(); err != nil || g.Key == "" {
		return err
	}
	if err := tx.s.guard(ctx, g); err != nil {
		return err
	}
	tx.guards = append(tx.guards, nestedGuard{g, tx.savepoints})
	return nil
}

// Query runs one statement of a script and returns its rows as the text of a JSON array of
// objects, columns in the statement's order, and their number. Placeholders are written
// @name; names in params may begin with @ or not, values are nil, bool, int64, float64,
// string or []byte.
//
// The error is a *SQLError, which a script may catch, or it ends the run: limit_output for
// a result over the limits, store_unavailable, timeout, or ctx's cause.
func (tx *Tx) Query(ctx context.Context, sql string, params map[string]any) (rows json.RawMessage, n int, err error) {
	w := tx.db.writer(objects)
	if _, err := tx.script(ctx, sql, params, w); err != nil {
		return nil, 0, err
	}
	return w.json(), w.n, nil
}

// Scalar is Query for the first column of the first row, as JSON text; null without a row.
func (tx *Tx) Scalar(ctx context.Context, sql string, params map[string]any) (json.RawMessage, error) {
	w := tx.db.writer(scalar)
	if _, err := tx.script(ctx, sql, params, w); err != nil {
		return nil, err
	}
	return w.json(), nil
}

// Exec is Query for the number of rows that the statement inserted, updated or deleted;
// it is 0 for any other statement.
func (tx *Tx) Exec(ctx context.Context, sql string, params map[string]any) (int64, error) {
	return tx.script(ctx, sql, params, tx.db.writer(discard))
}

func (db *DB) writer(s shape) *rowWriter {
	return &rowWriter{shape: s, maxRows: db.limits.rows, maxBytes: db.limits.bytes}
}

func (tx *Tx) script(ctx context.Context, sql string, params map[string]any, w *rowWriter) (int64, error) {
	return tx.parsed(ctx, sqltext.Rules{Dialect: tx.db.g.dialect}, query{sql: sql, params: params}, w)
}

type query struct {
	sql    string
	params map[string]any
	reads  bool // and may not change anything
}

const onlyReads = "V8.DbRead only reads; use V8.Db for this statement"

// Reader is a transaction that only reads: V8.DbRead. What its text says is looked at before
// it is sent; PostgreSQL, where a function may write and a SELECT may lock rows, runs it read
// only besides.
type Reader struct{ tx *Tx }

// Reader returns tx for statements that may change nothing; what tx has written they see.
func (tx *Tx) Reader() Reader { return Reader{tx} }

// Query is Tx.Query; a statement that would change something is a *SQLError.
func (r Reader) Query(ctx context.Context, sql string, params map[string]any) (json.RawMessage, int, error) {
	w := r.tx.db.writer(objects)
	if _, err := r.tx.parsed(ctx, sqltext.Rules{Dialect: r.tx.db.g.dialect}, query{sql, params, true}, w); err != nil {
		return nil, 0, err
	}
	return w.json(), w.n, nil
}

// Scalar is Tx.Scalar, as Query is.
func (r Reader) Scalar(ctx context.Context, sql string, params map[string]any) (json.RawMessage, error) {
	w := r.tx.db.writer(scalar)
	if _, err := r.tx.parsed(ctx, sqltext.Rules{Dialect: r.tx.db.g.dialect}, query{sql, params, true}, w); err != nil {
		return nil, err
	}
	return w.json(), nil
}

func (tx *Tx) parsed(ctx context.Context, r sqltext.Rules, q query, w *rowWriter) (int64, error) {
	st, err := sqltext.Parse(r, q.sql, q.params)
	if err != nil {
		return 0, refused(err)
	}
	if q.reads && st.Effect != sqltext.Reads {
		return 0, badCall(onlyReads)
	}
	n, err := tx.run(ctx, statement{Statement: st, reads: q.reads}, w)
	if err != nil || !st.Changes {
		return 0, err
	}
	return n, nil
}

func (tx *Tx) run(ctx context.Context, st statement, w *rowWriter) (int64, error) {
	if err := tx.usable(ctx); err != nil {
		return 0, err
	}
	size := 0
	for i, a := range st.Args {
		v, err := bindable(a)
		if err != nil {
			return 0, err
		}
		st.Args[i] = v
		switch v := v.(type) {
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		}
	}
	if size > tx.db.limits.bytes {
		return 0, badCall("the statement's parameters have %d bytes, at most %d are allowed", size, tx.db.limits.bytes)
	}
	if st.Effect == sqltext.Defines {
		tx.defined, tx.tables = true, &tableCache{}
	}
	return tx.s.run(ctx, st, w)
}

// bindable gives a number without a fraction as an integer: in JavaScript 5 and 5.0 are
// one number, in a text column or in `LIMIT @p0` they are not.
func bindable(v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, int64, string, []byte:
		return v, nil
	case int:
		return int64(x), nil
	case float64:
		switch {
		case math.IsNaN(x) || math.IsInf(x, 0):
			return nil, badCall("the number %v cannot be a parameter", x)
		case x == math.Trunc(x) && math.Abs(x) <= maxSafe:
			return int64(x), nil
		}
		return x, nil
	}
	return nil, badCall("a value of type %T cannot be a parameter", v)
}

// Savepoint marks a place that RollbackTo can go back to, for a nested call, and returns
// its name.
func (tx *Tx) Savepoint(ctx context.Context) (string, error) {
	if err := tx.usable(ctx); err != nil {
		return "", err
	}
	tx.savepoints++
	name := fmt.Sprintf(savepointName, tx.savepoints)
	return name, tx.s.savepoint(ctx, savepointSet, name)
}

const savepointName = "apiengine_%d"

// The verbs of session.savepoint.
const (
	savepointSet     = "SAVEPOINT "
	savepointUndo    = "ROLLBACK TO SAVEPOINT "
	savepointRelease = "RELEASE SAVEPOINT "
)

// RollbackTo undoes what was done since the savepoint, which stays. Guards that were taken
// since are taken again, since a nested call's lock is kept until the transaction ends.
func (tx *Tx) RollbackTo(ctx context.Context, name string) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}
	if tx.defined {
		tx.tables = &tableCache{}
	}
	if err := tx.s.savepoint(ctx, savepointUndo, name); err != nil {
		return err
	}
	var at int
	if _, err := fmt.Sscanf(name, savepointName, &at); err != nil {
		return errOver("no savepoint " + name)
	}
	for _, g := range tx.guards {
		if g.savepoints < at {
			continue
		}
		if err := tx.s.guard(ctx, g.Guard); err != nil {
			return err
		}
	}
	return nil
}

// ReleaseSavepoint forgets the savepoint and keeps what was done.
func (tx *Tx) ReleaseSavepoint(ctx context.Context, name string) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}
	return tx.s.savepoint(ctx, savepointRelease, name)
}

// Commit ends the transaction. It does not look at ctx's end, only at its values, and
// lasts at most 15 s and as long again to find out what became of a commit without an
// answer. nil: committed. outcome_unknown: cannot be said yet, a *UnknownError. Any other error: nothing was
// written (a *SQLError for a constraint that was checked at the end).
func (tx *Tx) Commit(ctx context.Context) error {
	if tx.over {
		return errOver("it was committed or rolled back")
	}
	tx.over = true
	defer tx.s.rollback()
	if tx.defined {
		defer tx.db.tables.clear()
	}
	err := tx.s.commit(context.WithoutCancel(ctx))
	return tx.s.witness().attach(err) // after the commit, which may have learned the transaction's id
}

// Rollback ends the transaction and undoes it. After Commit, or the second time, it does
// nothing. It does not look at ctx's end; where the database does not answer, the
// connection is dropped, which rolls back as well.
func (tx *Tx) Rollback(context.Context) error {
	if !tx.over {
		tx.over = true
		tx.s.rollback()
	}
	return nil
}

func (tx *Tx) usable(ctx context.Context) error {
	if tx.over {
		return errOver("it was committed or rolled back")
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return nil
}
