package tenantdb

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// head NULL: the attempt is still running, until lease_until at least. No index on
// expires_at: every call would pay for what the cleaning needs now and then.
const pgIdempotencyTable = `CREATE TABLE IF NOT EXISTS _apiengine_idempotency (
	id text COLLATE "C" PRIMARY KEY, attempt bigint NOT NULL, fingerprint text NOT NULL, execution text NOT NULL,
	lease_until timestamptz NOT NULL, expires_at timestamptz NOT NULL, head text, body bytea
) WITH (fillfactor = 60)`

const (
	// What a claim's own short transaction has: a wait for a row is one for another
	// attempt's commit, which is short unless that attempt's node hangs in it.
	pgClaimLocal = "SELECT set_config('search_path', $1, true), set_config('synchronous_commit', 'off', true)," +
		" set_config('lock_timeout', '2000', true), set_config('statement_timeout', '5000', true)"
	pgClaim = "INSERT INTO _apiengine_idempotency AS i (id, attempt, fingerprint, execution, lease_until, expires_at)" +
		" VALUES ($1, 1, $2, $3, clock_timestamp() + $4::interval, clock_timestamp() + $5::interval)" +
		" ON CONFLICT (id) DO UPDATE SET attempt = i.attempt + 1, fingerprint = excluded.fingerprint, execution = excluded.execution," +
		" lease_until = excluded.lease_until, expires_at = excluded.expires_at, head = NULL, body = NULL" +
		" WHERE CASE WHEN i.head IS NULL THEN i.lease_until ELSE i.expires_at END <= clock_timestamp()" +
		" RETURNING attempt::text"
	pgClaimed = "SELECT fingerprint, execution, coalesce(head, ''), coalesce(encode(body, 'hex'), ''), attempt::text FROM _apiengine_idempotency WHERE id = $1"
	pgRenew   = "UPDATE _apiengine_idempotency SET lease_until = clock_timestamp() + $4::interval" +
		" WHERE id = $1 AND attempt = $2 AND execution = $3 AND head IS NULL RETURNING 1::text"
	pgAbandon = "DELETE FROM _apiengine_idempotency WHERE id = $1 AND attempt = $2 AND execution = $3 AND head IS NULL"
	// Its row is the witness of a commit whose answer was lost. It travels with COMMIT, so
	// where the key is another's by now it must fail: by a division by zero, pgNotMine. It
	// ends by changing to the tenant's tables, which constraints that are checked at the
	// commit must find.
	pgComplete = "WITH mine AS (UPDATE _apiengine_idempotency SET head = $4, body = decode($5, 'hex'), expires_at = clock_timestamp() + $6::interval" +
		" WHERE id = $1 AND attempt = $2 AND execution = $3 AND head IS NULL RETURNING 1)" +
		" SELECT 1 / (SELECT count(*) FROM mine), set_config('search_path', $7, true), set_config('role', $8, true)"
	// In portions: one long transaction would keep rows locked that claims want.
	pgForget = "WITH old AS (SELECT id FROM _apiengine_idempotency WHERE expires_at < clock_timestamp() LIMIT 10000 FOR UPDATE SKIP LOCKED)," +
		" gone AS (DELETE FROM _apiengine_idempotency i USING old WHERE i.id = old.id AND (i.head IS NOT NULL OR i.lease_until < clock_timestamp()) RETURNING 1)" +
		" SELECT count(*)::text FROM gone"
)

// pgNotMine is the SQLSTATE of pgComplete for an attempt whose key was taken over.
const pgNotMine = "22012"

var errTakenOver = errors.New("tenantdb: the key was taken over")

// claimTries: the row that stood in the way can be given back before it is looked at.
const claimTries = 3

func (b *pgBackend) claim(ctx context.Context, c Claim) (number int64, other *claimRow, err error) {
	for range claimTries {
		rows, err := b.short(ctx, pgStatement{name: "apiengine_claim", sql: pgClaim,
			args: texts(c.ID, c.Fingerprint, c.Execution, interval(c.Lease), interval(c.Keep))})
		if err != nil {
			return 0, nil, blockedClaim(err)
		}
		if len(rows) == 1 {
			number, err := strconv.ParseInt(rows[0][0], 10, 64)
			return number, nil, err
		}
		if rows, err = b.short(ctx, pgStatement{name: "apiengine_claimed", sql: pgClaimed, args: texts(c.ID)}); err != nil {
			return 0, nil, err
		}
		if len(rows) == 1 {
			r := &claimRow{fingerprint: rows[0][0], execution: rows[0][1], head: rows[0][2]}
			if r.execution == c.Execution { // ours: the answer to the claim was lost
				number, err := strconv.ParseInt(rows[0][4], 10, 64)
				return number, nil, err
			}
			r.body, err = hex.DecodeString(rows[0][3])
			return 0, r, err
		}
	}
	return 0, nil, &InProgressError{} // runs come and go
}

// blockedClaim: whoever holds the row is about to commit the answer.
func blockedClaim(err error) error {
	if e := new(pgconn.PgError); errors.As(err, &e) && e.Code == "55P03" {
		return &InProgressError{}
	}
	return err
}

// short runs statements of ours in a transaction of their own, one round trip, and does
// not wait for the disk.
func (b *pgBackend) short(ctx context.Context, statements ...pgStatement) (rows [][]string, err error) {
	for range beginTries { // the statements may be repeated: claim knows its own row by its execution
		if rows, err = b.shortOnce(ctx, statements); err == nil || ctx.Err() != nil {
			return rows, err
		}
		if e := new(pgconn.PgError); errors.As(err, &e) && ((e.Code != "26000" && e.Code != "42P05") || b.unprepared.Swap(true)) {
			return nil, err
		}
	}
	return nil, err
}

func (b *pgBackend) shortOnce(ctx context.Context, statements []pgStatement) ([][]string, error) {
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return nil, pgError(ctx, time.Time{}, err)
	}
	defer conn.Release()
	s := &pgSession{b: b, conn: conn}
	// No BEGIN: what stands before one Sync is one transaction.
	local := pgStatement{name: "apiengine_claim_local", sql: pgClaimLocal, args: texts(b.own), mute: true}
	return s.flush(ctx, append([]pgStatement{local}, statements...)...)
}

func (b *pgBackend) renew(ctx context.Context, a *Attempt) (bool, error) {
	rows, err := b.short(ctx, pgStatement{sql: pgRenew, args: append(a.texts(), []byte(interval(a.Lease)))})
	return len(rows) == 1, err
}

func (b *pgBackend) end(ctx context.Context, a *Attempt, kept bool) error {
	if kept {
		return nil
	}
	_, err := b.short(ctx, pgStatement{name: "apiengine_abandon", sql: pgAbandon, args: a.texts()})
	return err
}

func (b *pgBackend) forget(ctx context.Context) (int64, error) {
	for all := int64(0); ; {
		rows, err := b.short(ctx, pgStatement{sql: pgForget})
		if err != nil {
			return all, err
		}
		n, err := strconv.ParseInt(rows[0][0], 10, 64)
		if all += n; err != nil || n == 0 {
			return all, err
		}
	}
}

// complete keeps the answer for the flush of COMMIT, which tells whether the key was taken over.
func (s *pgSession) complete(_ context.Context, a *Attempt, head string, body []byte) (bool, error) {
	if s.dead != nil {
		return false, s.dead
	}
	s.completed = a
	s.answer = &pgStatement{name: "apiengine_complete", sql: pgComplete,
		args: append(a.texts(), texts(head, hex.EncodeToString(body), interval(a.Keep), s.b.path, s.b.role)...)}
	return true, nil
}

func (a *Attempt) texts() [][]byte { return texts(a.ID, strconv.FormatInt(a.Number, 10), a.Execution) }

func interval(d time.Duration) string {
	return strconv.FormatInt(d.Microseconds(), 10) + " microseconds"
}
