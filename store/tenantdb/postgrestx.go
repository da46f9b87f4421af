package tenantdb

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"apiengine/fault"
	"apiengine/store/tenantdb/internal/sqltext"
)

// pgSession is a transaction on PostgreSQL. It speaks the extended protocol only, and for
// scripts with unnamed statements: tenants share connections, and the client would take
// one tenant's columns for another's. Values go as text without a type and come as text.
type pgSession struct {
	b     *pgBackend
	conn  *pgxpool.Conn
	until time.Time
	dead  error     // why nothing but rollback is left
	first pgWitness // whose row tells what became of a commit

	completed *Attempt     // whose answer is, or will be, in the transaction; its row is a witness too
	answer    *pgStatement // that writes the answer, in the flush of COMMIT
	wrote     bool         // a script's statement may have changed something
	xid       string       // of a transaction that wrote and has no other witness
}

// pgStatement is one message group of a flush.
type pgStatement struct {
	name string // prepared under this name, once a connection; empty: not prepared
	sql  string
	args [][]byte
	oids []uint32
	mute bool // its rows are not looked at
}

const (
	pgBegin = "BEGIN ISOLATION LEVEL READ COMMITTED"
	pgLocal = "SELECT set_config('search_path', $1, true), set_config('statement_timeout', $2, true)," +
		" set_config('lock_timeout', $2, true), set_config('idle_in_transaction_session_timeout', $2, true), set_config('role', $3, true)"

	// stmtSavepoint stands around each statement of a script.
	stmtSavepoint = "apiengine_stmt"
)

// beginTries is how many connections are tried: after a restart of the server the pool
// still holds broken ones, and nothing has happened yet that a second try could double.
const beginTries = 3

func (b *pgBackend) begin(ctx context.Context, g Guard) (session, error) {
	var err error
	for range beginTries {
		var s *pgSession
		if s, err = b.beginOnce(ctx, g); err == nil {
			return s, nil
		}
		switch e := new(pgconn.PgError); {
		case errors.As(err, &e) && (e.Code == "26000" || e.Code == "42P05") && !b.unprepared.Swap(true):
			continue // a transaction pooler that moves us between sessions
		case fault.Of(err) != fault.StoreUnavailable || ctx.Err() != nil:
			return nil, err
		}
	}
	return nil, err
}

func (b *pgBackend) beginOnce(ctx context.Context, g Guard) (*pgSession, error) {
	conn, err := b.connection(ctx, g)
	if err != nil {
		return nil, err
	}
	// One row may be a gigabyte: it is refused before it is read. bytea comes at twice its size.
	conn.Conn().PgConn().Frontend().SetMaxBodyLen(2*b.maxBytes + 1<<20)
	s := &pgSession{b: b, conn: conn, until: g.Until}
	// Prepared, since planning the guard each time takes a quarter of a short run's throughput.
	path, role := b.path, b.role
	if g.Key != "" {
		path, role = b.own, b.self
	}
	flush := []pgStatement{{sql: pgBegin}, {name: "apiengine_local", sql: pgLocal, args: texts(path, milliseconds(g.Until), role), mute: true}}
	if g.Key != "" {
		flush = append(flush, b.guard(g))
	}
	rows, err := s.flush(ctx, flush...)
	if err == nil && g.Key != "" {
		err = s.sealed(ctx, g, rows)
	}
	if err == nil {
		err = s.usableSettings()
	}
	if err != nil {
		s.rollback()
		return nil, err
	}
	return s, nil
}

// connection takes a connection from the pool.
func (b *pgBackend) connection(ctx context.Context, g Guard) (*pgxpool.Conn, error) {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if g.Connect > 0 {
		waiting, cancel = context.WithTimeout(ctx, g.Connect)
	}
	defer cancel()
	conn, err := b.pool.Acquire(waiting)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() == nil && waiting.Err() != nil:
		return nil, fault.Wrap(fault.Overloaded, err, "every connection to the database is taken, and this run holds one already")
	}
	return nil, pgError(ctx, g.Until, err)
}

// usableSettings refuses a server whose settings would make text mean something else than
// package sqltext and the conversion of values take it for.
func (s *pgSession) usableSettings() error {
	c := s.conn.Conn().PgConn()
	if c.ParameterStatus("standard_conforming_strings") == "off" {
		return fault.New(fault.StoreUnavailable, "the database has standard_conforming_strings off; it must be on")
	}
	if style := c.ParameterStatus("DateStyle"); !strings.HasPrefix(style, "ISO") {
		return fault.New(fault.StoreUnavailable, "the database has DateStyle %q; it must be ISO", style)
	}
	return nil
}

// flush sends statements together, outside the reach of scripts, and returns their rows.
func (s *pgSession) flush(ctx context.Context, statements ...pgStatement) (rows [][]string, err error) {
	p := s.conn.Conn().PgConn().StartPipeline(ctx)
	answers := s.queue(p, statements)
	if err = p.Sync(); err == nil {
		rows, err = s.answers(p, answers)
	}
	if err = errors.Join(err, p.Close()); err != nil {
		return nil, pgError(ctx, s.until, err)
	}
	return rows, nil
}

// pgAwaited is an answer that a flush will bring.
type pgAwaited struct {
	prepared string // the name that it says is prepared
	mute     bool
}

// queue puts statements into a flush, and before each what prepares it where it is not yet.
func (s *pgSession) queue(p *pgconn.Pipeline, statements []pgStatement) (answers []pgAwaited) {
	known := s.conn.Conn().PgConn().CustomData()
	for _, st := range statements {
		if st.name == "" || s.b.unprepared.Load() {
			p.SendQueryParams(st.sql, st.args, st.oids, nil, nil)
			answers = append(answers, pgAwaited{mute: st.mute})
			continue
		}
		if known[st.name] == nil {
			p.SendPrepare(st.name, st.sql, st.oids)
			answers = append(answers, pgAwaited{prepared: st.name})
		}
		p.SendQueryPrepared(st.name, st.args, nil, nil)
		answers = append(answers, pgAwaited{mute: st.mute})
	}
	return answers
}

// answers reads what queue has asked for.
func (s *pgSession) answers(p *pgconn.Pipeline, awaited []pgAwaited) (rows [][]string, err error) {
	for _, a := range awaited {
		got, err := pgAnswer(p)
		if err != nil {
			return nil, err
		}
		if a.prepared != "" {
			s.conn.Conn().PgConn().CustomData()[a.prepared] = true // it stays so when what follows fails
		}
		if !a.mute {
			rows = append(rows, got...)
		}
	}
	return rows, nil
}

// pgAnswer reads the answer to one statement; to SendPrepare it has no rows.
func pgAnswer(p *pgconn.Pipeline) (rows [][]string, err error) {
	result, err := p.GetResults()
	if err != nil {
		return nil, err
	}
	r, ok := result.(*pgconn.ResultReader)
	if !ok {
		return nil, nil
	}
	for r.NextRow() {
		row := make([]string, len(r.Values()))
		for i, v := range r.Values() {
			row[i] = string(v)
		}
		rows = append(rows, row)
	}
	_, err = r.Close()
	return rows, err
}

// run sends the statement between SAVEPOINT and RELEASE, all in one flush; a statement of
// ours, whose failure ends the run anyway, alone.
func (s *pgSession) run(ctx context.Context, st statement, w *rowWriter) (int64, error) {
	if s.dead != nil {
		return 0, s.dead
	}
	q, err := pgQuery(st)
	if err != nil {
		return 0, err
	}
	for {
		n, err := s.send(ctx, q, st, w)
		if !q.retyped(st, err) {
			return n, err
		}
	}
}

// send is run for one attempt.
func (s *pgSession) send(ctx context.Context, q pgStatement, st statement, w *rowWriter) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := s.conn.Conn().PgConn().StartPipeline(ctx)
	s.wrote = s.wrote || st.Effect != sqltext.Reads
	before, after := s.around(st)
	all := slices.Concat(before, []pgStatement{q}, after)
	for _, q := range all {
		p.SendQueryParams(q.sql, q.args, q.oids, nil, nil)
	}
	if err := p.Sync(); err != nil {
		return 0, s.failed(ctx, st, err)
	}
	changed, err := pgRows(p, w, len(before), len(all))
	if fault.Of(err) == fault.LimitOutput {
		s.dead = err
		cancel() // stops the query and drops the connection
		_ = p.Close()
		return 0, err
	}
	if err = errors.Join(err, p.Close()); err != nil {
		return 0, s.failed(ctx, st, err)
	}
	if status := s.conn.Conn().PgConn().TxStatus(); status != 'T' {
		s.dead = fault.New(fault.ScriptError, "the statement ended the transaction, which is not allowed")
		return 0, s.dead
	}
	return changed, nil
}

// pgReadOnly makes what follows read only, functions and row locks included, until the
// savepoint that it stands in is released or gone back to; nothing can take it back before.
const (
	pgReadOnly  = "SET LOCAL transaction_read_only = on"
	pgReadsOnly = "25006" // what a statement that writes then fails with
)

// around is what goes with a statement in its flush.
func (s *pgSession) around(st statement) (before, after []pgStatement) {
	switch {
	case st.own:
		return []pgStatement{s.b.mode(s.b.own, s.b.self)}, []pgStatement{s.b.mode(s.b.path, s.b.role)}
	case st.platform:
		return nil, nil
	}
	before = []pgStatement{{sql: savepointSet + stmtSavepoint}}
	if st.reads {
		before = append(before, pgStatement{sql: pgReadOnly})
	}
	return before, []pgStatement{{sql: savepointRelease + stmtSavepoint}}
}

// pgRows reads the answers to the n statements of run, of which the one at position at counts.
func pgRows(p *pgconn.Pipeline, w *rowWriter, at, n int) (changed int64, err error) {
	for i := range n {
		result, err := p.GetResults()
		if err != nil {
			return 0, err
		}
		r := result.(*pgconn.ResultReader)
		if i == at {
			if err := pgResult(r, w); err != nil {
				return 0, err
			}
		}
		tag, err := r.Close()
		if err != nil {
			return 0, err
		}
		if i == at {
			changed = tag.RowsAffected()
		}
	}
	return changed, nil
}

func pgResult(r *pgconn.ResultReader, w *rowWriter) error {
	fields := r.FieldDescriptions()
	if len(fields) == 0 {
		return nil
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	oids := make([]uint32, len(fields))
	for i, f := range fields {
		oids[i] = f.DataTypeOID
	}
	w.columns(names)
	for r.NextRow() {
		w.openRow()
		for i, v := range r.Values() {
			if w.wants(i) {
				w.buf = appendPg(w.buf, oids[i], v)
			}
		}
		if err := w.closeRow(); err != nil {
			return err
		}
	}
	return nil
}

// failed classifies the error of a script's statement and goes back to before it.
func (s *pgSession) failed(ctx context.Context, st statement, cause error) error {
	err := pgError(ctx, s.until, cause)
	if e := new(pgconn.PgError); st.reads && errors.As(cause, &e) && e.Code == pgReadsOnly && ctx.Err() == nil {
		err = &SQLError{Msg: onlyReads, Code: e.Code, Cause: cause}
	}
	if e := new(pgproto3.ExceededMaxBodyLenErr); errors.As(cause, &e) {
		err = tooLarge("bytes", s.b.maxBytes)
	}
	if fault.Of(err) != fault.ScriptError {
		s.dead = err
		return err
	}
	c := s.conn.Conn().PgConn()
	if c.TxStatus() == 'E' {
		if _, back := s.flush(ctx, pgStatement{sql: savepointUndo + stmtSavepoint}); back != nil {
			s.dead = errors.Join(err, back) // of a statement of ours: there is no savepoint
			return s.dead
		}
	}
	if c.TxStatus() != 'T' {
		s.dead = err
	}
	return err
}

func (s *pgSession) savepoint(ctx context.Context, verb, name string) error {
	if s.dead != nil {
		return s.dead
	}
	if _, err := s.flush(ctx, pgStatement{sql: verb + name}); err != nil {
		s.dead = err
		return err
	}
	return nil
}

// rollback gives the connection back; the pool drops one that is broken or not idle.
func (s *pgSession) rollback() {
	if s.conn == nil {
		return
	}
	if c := s.conn.Conn().PgConn(); !c.IsClosed() && c.TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, _ = s.flush(ctx, pgStatement{sql: "ROLLBACK"}) // else the connection is dropped, to the same effect
	}
	s.conn.Release()
	s.conn, s.dead = nil, errOver("it was rolled back")
}

func texts(values ...string) [][]byte {
	out := make([][]byte, len(values))
	for i, v := range values {
		out[i] = []byte(v)
	}
	return out
}

func msText(d time.Duration) string {
	if d < time.Millisecond {
		return ""
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}
