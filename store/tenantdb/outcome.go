package tenantdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"apiengine/fault"
	"apiengine/store/tenantdb/internal/litedb"
)

// Witness is what one transaction left behind by which it can be told later whether it
// was committed. The zero Witness tells nothing. It is kept as JSON, so it must stay plain.
type Witness struct {
	// The row of an Idempotency-Key's answer: there, and of this run, or not.
	ID        string `json:",omitempty"`
	Execution string `json:",omitempty"`
	// The guard row of the first lock, as this transaction wrote it.
	Lock   string `json:",omitempty"`
	Token  int64  `json:",omitempty"`
	Owner  string `json:",omitempty"`
	Sealed string `json:",omitempty"`
	// PostgreSQL's transaction id. After a failover to a replica that lagged it can be
	// another transaction's, so it is asked only where there is no row.
	Xid string `json:",omitempty"`
}

// UnknownError reports a commit of which the database cannot say now whether it landed.
// DB.Outcome tells later.
type UnknownError struct {
	Witness Witness
	Cause   error
}

func (e *UnknownError) Error() string { return e.Cause.Error() }

// Unwrap gives the cause, which says what was tried.
func (e *UnknownError) Unwrap() error { return e.Cause }

// Evidence is the witness as text, to be kept for ReadEvidence.
func (e *UnknownError) Evidence() json.RawMessage {
	text, err := json.Marshal(e.Witness)
	if err != nil { // plain fields always can be
		return nil
	}
	return text
}

// ReadEvidence is the witness of an Evidence.
func ReadEvidence(text json.RawMessage) (w Witness, err error) { return w, json.Unmarshal(text, &w) }

// Kind is outcome_unknown.
func (e *UnknownError) Kind() fault.Kind { return fault.OutcomeUnknown }

// attach gives an outcome_unknown the means to be resolved.
func (w Witness) attach(err error) error {
	if fault.Of(err) != fault.OutcomeUnknown {
		return err
	}
	return &UnknownError{Witness: w, Cause: err}
}

// outcomes is how a kind of database resolves a witness: whether the transaction was
// committed; errUnderWay; errNoWitness; or store_unavailable.
type outcomes interface {
	outcome(ctx context.Context, w Witness) (committed bool, err error)
}

// errUnderWay reports a commit that the database is still carrying out.
var errUnderWay = errors.New("tenantdb: the commit is still under way")

// Outcome tells whether w's transaction was committed. Once it has been told the answer
// never changes. outcome_unknown: it cannot be told, or not yet; store_unavailable: the
// database does not answer.
func (db *DB) Outcome(ctx context.Context, w Witness) (committed bool, err error) {
	if w == (Witness{}) {
		return false, fault.Wrap(fault.OutcomeUnknown, errNoWitness, "nothing was left that could tell whether the commit landed")
	}
	committed, err = db.b.outcome(ctx, w)
	if errors.Is(err, errUnderWay) || errors.Is(err, errNoWitness) {
		err = fault.Wrap(fault.OutcomeUnknown, err, "the database cannot say whether the commit landed")
	}
	return committed, err
}

func (s *liteSession) witness() Witness {
	w := Witness{Lock: s.first.Key, Token: s.first.Token, Owner: s.first.Owner, Sealed: s.sealed}
	if s.completed != nil {
		w.ID, w.Execution = s.completed.ID, s.completed.Execution
	}
	return w
}

// resolveByAnswer tells by the answer's row what became of a COMMIT that ended in cause.
func (s *liteSession) resolveByAnswer(ctx context.Context, cause error) error {
	committed, err := liteRecorded(ctx, s.w, s.witness())
	switch {
	case err != nil:
		return fault.Wrap(fault.OutcomeUnknown, errors.Join(cause, err), "the database failed in the commit and cannot say whether it landed")
	case committed:
		return nil
	}
	return failedCommit(cause)
}

func liteRecorded(ctx context.Context, c *litedb.Conn, w Witness) (found bool, err error) {
	_, err = c.Run(ctx, litedb.Call{SQL: "SELECT 1 FROM _apiengine_idempotency WHERE id = ?1 AND execution = ?2", Args: []any{w.ID, w.Execution},
		Row: func(*litedb.Stmt) error { found = true; return nil }})
	return found, err
}

// outcome needs no waiting: SQLite's readers see the last commit, and no commit is under way
// without its process.
func (b *liteBackend) outcome(ctx context.Context, w Witness) (bool, error) {
	c, err := b.readers.get(ctx)
	if err != nil {
		return false, err
	}
	defer b.readers.put(c)
	if w.ID != "" {
		found, err := liteRecorded(ctx, c, w)
		if err != nil {
			return false, liteError(ctx, err)
		}
		return found, nil
	}
	row, err := (&liteSession{}).stored(ctx, c, w.Lock)
	switch {
	case err != nil:
		return false, liteError(ctx, err)
	case row.token > w.Token:
		return false, errNoWitness
	}
	return row == fenceRow{w.Token, w.Owner, w.Sealed}, nil
}

func (s *pgSession) witness() Witness {
	g := s.first.guard
	w := Witness{Lock: g.Key, Token: g.Token, Owner: g.Owner, Sealed: s.first.sealed, Xid: s.first.xid}
	if s.completed != nil {
		w.ID, w.Execution = s.completed.ID, s.completed.Execution
	}
	if w.Xid == "" {
		w.Xid = s.xid
	}
	return w
}

func (b *pgBackend) outcome(ctx context.Context, w Witness) (bool, error) {
	switch {
	case w.ID != "":
		return b.recorded(ctx, w)
	case w.Lock != "":
		return b.witness(ctx, pgWitness{guard: Guard{Key: w.Lock, Token: w.Token, Owner: w.Owner}, sealed: w.Sealed, xid: w.Xid})
	}
	return b.committedXid(ctx, w.Xid)
}

// A run's answer and its COMMIT travel together, and may still be on their way when this is
// asked: the row of a run that has not answered is taken from it first, so that what comes
// late cannot commit any more. It waits for a commit that is under way, which holds the row.
const (
	pgBurn = "UPDATE _apiengine_idempotency SET attempt = attempt + 1, lease_until = clock_timestamp()" +
		" WHERE id = $1 AND execution = $2 AND head IS NULL RETURNING 'false'"
	pgRecorded = "SELECT (head IS NOT NULL AND execution = $2)::text FROM _apiengine_idempotency WHERE id = $1"
)

// recorded tells whether the answer of the run was committed, for good.
func (b *pgBackend) recorded(ctx context.Context, w Witness) (bool, error) {
	rows, err := b.short(ctx, pgStatement{sql: pgBurn, args: texts(w.ID, w.Execution)}, pgStatement{sql: pgRecorded, args: texts(w.ID, w.Execution)})
	if e := new(pgconn.PgError); errors.As(err, &e) && e.Code == "55P03" {
		return false, errUnderWay
	}
	if err == nil && len(rows) == 0 {
		err = errNoWitness // its time was over: what it told is forgotten
	}
	return err == nil && rows[0][0] == "true", err
}

func (b *pgBackend) committedXid(ctx context.Context, xid string) (bool, error) {
	if _, err := strconv.ParseUint(xid, 10, 64); err != nil {
		return false, errNoWitness
	}
	rows, err := b.short(ctx, pgStatement{sql: "SELECT coalesce(pg_xact_status($1::xid8), 'forgotten')", args: texts(xid)})
	if err != nil {
		return false, err
	}
	switch rows[0][0] {
	case "committed":
		return true, nil
	case "aborted":
		return false, nil
	case "in progress":
		return false, errUnderWay
	}
	return false, fmt.Errorf("%w: its status is %s", errNoWitness, rows[0][0])
}

// askXid asks, in the flush that commits, for the id of a transaction that no row tells
// of. The server sends the answer before it begins to commit: no round trip is added.
func (s *pgSession) askXid(p *pgconn.Pipeline) {
	if s.asksXid() {
		p.SendQueryParams("SELECT coalesce(pg_current_xact_id_if_assigned()::text, '')", nil, nil, nil, nil)
		p.SendFlushRequest()
	}
}

func (s *pgSession) asksXid() bool { return s.wrote && s.first.guard.Key == "" && s.completed == nil }

func (s *pgSession) readXid(p *pgconn.Pipeline) error {
	if !s.asksXid() {
		return nil
	}
	rows, err := pgAnswer(p)
	if err == nil && len(rows) == 1 {
		s.xid = rows[0][0]
	}
	return err
}
