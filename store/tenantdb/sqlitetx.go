package tenantdb

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidwall/gjson"
	lib "modernc.org/sqlite/lib"

	"apiengine/fault"
	"apiengine/store/tenantdb/internal/litedb"
	"apiengine/store/tenantdb/internal/sqltext"
)

// liteSession is a transaction on SQLite; see "Isolation" in the package's comment for
// when it takes the writer.
type liteSession struct {
	b      *liteBackend
	w      *litedb.Conn // nil until something is to be written
	marks  []string     // savepoints to make when it is
	dead   error        // why nothing but rollback is left
	first  Guard        // whose row tells what became of a commit
	sealed string       // when that row was written

	completed *Attempt // whose answer is in the transaction; its row is a witness too
}

func (b *liteBackend) begin(ctx context.Context, g Guard) (session, error) {
	s := &liteSession{b: b}
	if g.Key == "" {
		return s, nil
	}
	if err := s.guard(ctx, g); err != nil {
		s.rollback()
		return nil, err
	}
	return s, nil
}

// write takes the writer and begins. SQLite's own wait for a lock is short (another
// process, or ApplySchema), so that ctx is looked at in between.
func (s *liteSession) write(ctx context.Context) error {
	if s.w != nil {
		return nil
	}
	c, err := s.b.writers.get(ctx)
	if err != nil {
		return err
	}
	for {
		_, err = c.Run(ctx, litedb.Call{SQL: "BEGIN IMMEDIATE"})
		if e := new(litedb.Error); errors.As(err, &e) && e.Primary() == lib.SQLITE_BUSY && ctx.Err() == nil {
			continue
		}
		break
	}
	if err != nil {
		s.b.writers.put(c)
		return liteError(ctx, err)
	}
	s.w = c
	for _, name := range s.marks {
		if _, err := c.Run(ctx, litedb.Call{SQL: savepointSet + name}); err != nil {
			return s.failed(ctx, err)
		}
	}
	s.marks = nil
	return nil
}

func (s *liteSession) run(ctx context.Context, st statement, w *rowWriter) (int64, error) {
	if s.dead != nil {
		return 0, s.dead
	}
	call := liteCall(st, w)
	if s.w == nil && st.Effect == sqltext.Reads {
		c, err := s.b.readers.get(ctx)
		if err != nil {
			return 0, err
		}
		defer s.b.readers.put(c)
		n, err := c.Run(ctx, call)
		return n, s.failed(ctx, err)
	}
	if err := s.write(ctx); err != nil {
		return 0, err
	}
	n, err := s.w.Run(ctx, call)
	return n, s.failed(ctx, err)
}

// failed classifies err, and notes when SQLite has ended the transaction: what came after
// would be committed statement by statement.
func (s *liteSession) failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if f := fault.Of(err); f != fault.LimitOutput { // the row writer's own error stays as it is
		err = liteError(ctx, err)
	}
	if s.w != nil && !s.w.InTx() {
		s.dead = fault.Wrap(fault.Of(err), err, "the database has rolled the transaction back: %s", fault.Public(err))
		return s.dead
	}
	return err
}

const liteGuard = `INSERT INTO _apiengine_fence AS f (lock_key, token, owner, sealed_at)
SELECT ?1, ?2, ?3, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
WHERE ?2 > coalesce((SELECT token FROM _apiengine_fence_floor WHERE bucket = ?4), 0)
ON CONFLICT (lock_key) DO UPDATE SET token = excluded.token, owner = excluded.owner, sealed_at = excluded.sealed_at
WHERE f.token < excluded.token OR f.token = excluded.token AND f.owner = excluded.owner
RETURNING sealed_at`

const (
	liteStored = `SELECT token, owner, sealed_at FROM _apiengine_fence WHERE lock_key = ?1`
	liteFloor  = `SELECT token FROM _apiengine_fence_floor WHERE bucket = ?1`
)

func (s *liteSession) guard(ctx context.Context, g Guard) error {
	if s.dead != nil {
		return s.dead
	}
	if err := s.write(ctx); err != nil {
		return err
	}
	sealed := ""
	_, err := s.w.Run(ctx, litedb.Call{SQL: liteGuard, Args: []any{g.Key, g.Token, g.Owner, int64(bucket(g.Key))},
		Row: func(r *litedb.Stmt) error { sealed = string(r.Bytes(0)); return nil }})
	if err != nil {
		return s.failed(ctx, err)
	}
	if sealed == "" {
		row, err := s.stored(ctx, s.w, g.Key)
		_, ferr := s.w.Run(ctx, litedb.Call{SQL: liteFloor, Args: []any{int64(bucket(g.Key))},
			Row: func(r *litedb.Stmt) error { row.token = max(row.token, r.Int(0)); return nil }})
		s.dead = errors.Join(&StaleError{Key: g.Key, Token: g.Token, Stored: row.token}, err, ferr)
		return s.dead
	}
	if s.first.Key == "" {
		s.first, s.sealed = g, sealed
	}
	return nil
}

type fenceRow struct {
	token         int64
	owner, sealed string
}

func (s *liteSession) stored(ctx context.Context, c *litedb.Conn, key string) (row fenceRow, err error) {
	_, err = c.Run(ctx, litedb.Call{SQL: liteStored, Args: []any{key}, Row: func(r *litedb.Stmt) error {
		row = fenceRow{r.Int(0), string(r.Bytes(1)), string(r.Bytes(2))}
		return nil
	}})
	return row, err
}

// savepoint only notes its name as long as nothing was written: nested calls that read
// must not queue for the writer.
func (s *liteSession) savepoint(ctx context.Context, verb, name string) error {
	if s.dead != nil {
		return s.dead
	}
	if s.w != nil {
		_, err := s.w.Run(ctx, litedb.Call{SQL: verb + name})
		return s.failed(ctx, err)
	}
	at := slices.Index(s.marks, name)
	switch {
	case verb == savepointSet:
		s.marks = append(s.marks, name)
	case at < 0:
		return errOver("no savepoint " + name)
	case verb == savepointUndo:
		s.marks = s.marks[:at+1]
	case verb == savepointRelease:
		s.marks = s.marks[:at]
	}
	return nil
}

// commitTime bounds a COMMIT, and again the search for what became of it.
const commitTime = 15 * time.Second

func (s *liteSession) commit(ctx context.Context) error {
	if s.dead != nil {
		return s.dead
	}
	if s.w == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commitTime)
	defer cancel()
	_, err := s.w.Run(ctx, litedb.Call{SQL: "COMMIT"})
	switch {
	case err == nil:
		return nil
	case s.w.InTx(): // a deferred constraint, a full disk: refused as a whole
		return liteError(ctx, err)
	case s.first.Key == "" && s.completed != nil:
		return s.resolveByAnswer(ctx, err)
	case s.first.Key == "":
		return fault.Wrap(fault.OutcomeUnknown, err, "the database failed in the commit and cannot say whether it landed")
	}
	row, rerr := s.stored(ctx, s.w, s.first.Key)
	switch {
	case rerr != nil:
		return fault.Wrap(fault.OutcomeUnknown, errors.Join(err, rerr), "the database failed in the commit and cannot say whether it landed")
	case row == fenceRow{s.first.Token, s.first.Owner, s.sealed}:
		return nil
	}
	return unavailable(err, "the database failed in the commit; nothing was written")
}

func (s *liteSession) rollback() {
	if s.w == nil {
		return
	}
	if s.w.InTx() {
		// Fails only when SQLite has rolled back by itself; put looks again.
		_, _ = s.w.Run(context.Background(), litedb.Call{SQL: "ROLLBACK"})
	}
	s.b.writers.put(s.w)
	s.w, s.dead = nil, errOver("it was rolled back")
}

func liteCall(st statement, w *rowWriter) litedb.Call {
	return litedb.Call{SQL: st.SQL, Args: st.Args, Script: !st.platform,
		Columns: func(r *litedb.Stmt) error {
			if len(r.Columns()) == 0 {
				return nil
			}
			names := make([]string, len(r.Columns()))
			for i, c := range r.Columns() {
				names[i] = c.Name
			}
			w.columns(names)
			return nil
		},
		Row: func(r *litedb.Stmt) error {
			w.openRow()
			for i, c := range r.Columns() {
				if w.wants(i) {
					w.buf = appendLite(w.buf, r, i, c)
				}
			}
			return w.closeRow()
		}}
}

func appendLite(b []byte, r *litedb.Stmt, i int, c litedb.Column) []byte {
	switch r.Type(i) {
	case litedb.Integer:
		return appendInt(b, r.Int(i))
	case litedb.Float:
		return appendFloat(b, r.Float(i))
	case litedb.Blob:
		return appendBase64(b, r.Bytes(i))
	case litedb.Text:
		raw := r.Bytes(i)
		if (c.DeclType == "JSON" || c.DeclType == "JSONB") && gjson.ValidBytes(raw) {
			return append(b, bytes.TrimSpace(raw)...)
		}
		return appendText(b, raw)
	}
	return append(b, "null"...)
}
