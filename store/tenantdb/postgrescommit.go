package tenantdb

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"apiengine/fault"
)

// pgWitness is what the first guard of a transaction leaves behind: with it another
// connection can tell what became of a COMMIT whose answer was lost.
type pgWitness struct {
	guard  Guard
	sealed string // sealed_at of the row, as this transaction wrote it
	xid    string
}

func (s *pgSession) commit(ctx context.Context) error {
	if s.dead != nil {
		return s.dead
	}
	ctx, cancel := context.WithTimeout(ctx, commitTime)
	defer cancel()
	tag, err := s.sendCommit(ctx)
	switch e := new(pgconn.PgError); {
	case err == nil && tag.String() == "COMMIT":
		return nil
	case err == nil:
		return fault.New(fault.Internal, "tenantdb: COMMIT was answered by %s: the transaction had failed before", tag)
	case errors.Is(err, errTakenOver):
		return &TakenOverError{Attempt: s.completed.Number}
	case errors.As(err, &e) && e.Severity == "ERROR": // a deferred constraint: refused as a whole
		return pgError(context.WithoutCancel(ctx), s.until, err)
	}
	return s.resolve(context.WithoutCancel(ctx), err)
}

// sendCommit sends COMMIT, and before it in one flush the answer of an Idempotency-Key:
// where that fails the server does not look at the COMMIT behind it.
func (s *pgSession) sendCommit(ctx context.Context) (tag pgconn.CommandTag, err error) {
	p := s.conn.Conn().PgConn().StartPipeline(ctx)
	var before []pgAwaited
	if s.answer != nil {
		mode := s.b.mode(s.b.own, s.b.self)
		mode.name = "apiengine_mode"
		before = s.queue(p, []pgStatement{mode, *s.answer})
	}
	s.askXid(p)
	p.SendQueryParams("COMMIT", nil, nil, nil, nil)
	if err = p.Sync(); err == nil {
		_, err = s.answers(p, before)
	}
	if e := new(pgconn.PgError); errors.As(err, &e) && e.Code == pgNotMine {
		err = errors.Join(errTakenOver, err)
	}
	if err == nil {
		err = s.readXid(p)
	}
	if err != nil {
		return tag, errors.Join(err, p.Close())
	}
	result, err := p.GetResults()
	if err == nil {
		tag, err = result.(*pgconn.ResultReader).Close()
	}
	return tag, errors.Join(err, p.Close())
}

// resolve asks on a new connection what became of the commit that ended in cause.
func (s *pgSession) resolve(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, commitTime)
	defer cancel()
	w := s.witness()
	if w == (Witness{}) {
		return fault.Wrap(fault.OutcomeUnknown, cause, "the answer to the commit was lost and nothing can tell whether it landed")
	}
	for {
		committed, err := s.b.outcome(ctx, w)
		switch {
		case err == nil && committed:
			return nil
		case err == nil:
			return unavailable(cause, "the database connection was lost in the commit; nothing was written")
		case errors.Is(err, errNoWitness) || fault.Of(err) != fault.StoreUnavailable && !errors.Is(err, errUnderWay):
			return fault.Wrap(fault.OutcomeUnknown, errors.Join(cause, err), "the answer to the commit was lost and the database cannot say whether it landed")
		}
		select { // the database is away: it may come back in time
		case <-ctx.Done():
			return fault.Wrap(fault.OutcomeUnknown, errors.Join(cause, err), "the answer to the commit was lost and the database cannot be asked")
		case <-time.After(200 * time.Millisecond):
		}
	}
}

var errNoWitness = errors.New("tenantdb: a newer holder has written over the guard row and the transaction's status is not known any more")

// pgWitnessRow reads the guard row after waiting for a commit that is still under way. It
// writes (and is rolled back): FOR UPDATE would not see, and so not wait for, a row that
// the commit under way is the first to insert. Token -1: there is no row.
const pgWitnessRow = "INSERT INTO _apiengine_fence AS f (lock_key, token, owner, sealed_at)" +
	" VALUES ($1, -1, '', clock_timestamp()) ON CONFLICT (lock_key) DO UPDATE SET token = f.token" +
	" RETURNING token::text, owner, extract(epoch FROM sealed_at)::text"

// witness compares the guard row with what the transaction had written.
func (b *pgBackend) witness(ctx context.Context, w pgWitness) (committed bool, err error) {
	s, err := b.beginOnce(ctx, Guard{Until: time.Now().Add(commitTime)})
	if err != nil {
		return false, err
	}
	defer s.rollback()
	rows, err := s.ours(ctx, pgStatement{sql: pgWitnessRow, args: texts(w.guard.Key)})
	if err != nil {
		return false, err
	}
	token, err := strconv.ParseInt(rows[0][0], 10, 64)
	switch {
	case err != nil:
		return false, err
	case token == w.guard.Token && rows[0][1] == w.guard.Owner:
		return rows[0][2] == w.sealed, nil
	case token <= w.guard.Token:
		return false, nil // ours would have replaced it
	}
	return s.transactionStatus(ctx, w.xid)
}

// transactionStatus is the answer when a newer holder's row stands where ours may have been.
func (s *pgSession) transactionStatus(ctx context.Context, xid string) (committed bool, err error) {
	rows, err := s.ours(ctx, pgStatement{sql: "SELECT pg_xact_status($1::xid8)", args: texts(xid)})
	switch {
	case err != nil:
		return false, errors.Join(errNoWitness, err)
	case rows[0][0] == "committed":
		return true, nil
	case rows[0][0] == "aborted":
		return false, nil
	}
	return false, errNoWitness
}
