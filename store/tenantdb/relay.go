package tenantdb

import (
	"context"
	"encoding/json"
	"time"

	"apiengine/store/tenantdb/internal/sqltext"
)

// Claimed is an event that one relay may deliver until its claim ends.
type Claimed struct {
	Row       int64
	Attempts  int  // with this one
	Gap       bool // an earlier event of its key is a dead letter
	CreatedAt time.Time
	Event
}

// EventsClaim asks for events to deliver.
type EventsClaim struct {
	Name  string        // of the claim, unique
	Lease time.Duration // how long the events are kept from others
	Max   int
}

// unblocked are the events that wait for nothing but their time: no earlier one of their
// key is pending, and no later one under way, as can be when a dead letter is tried again.
// By flag and never from an id onwards: a transaction with a smaller id may commit later.
const unblocked = `c.state = 'pending' AND (c.key = '' OR NOT EXISTS (SELECT 1 FROM _apiengine_outbox e
	WHERE e.state = 'pending' AND e.key = c.key AND (e.id < c.id OR e.id > c.id AND e.claim <> '' AND e.next_at > {now})))`

const (
	peekOutbox = `SELECT c.next_at - {now} AS "Wait" FROM _apiengine_outbox c WHERE ` + unblocked + ` ORDER BY c.next_at LIMIT 1`

	claimReturns = ` RETURNING id AS "Row", attempts AS "Attempts", created_at AS "Created", event_id AS "ID",
		type AS "Type", key AS "Key", target AS "Target", data AS "Data", token AS "Token", hops AS "Hops",
		(SELECT count(*) FROM _apiengine_outbox e WHERE e.state = 'dead' AND _apiengine_outbox.key <> '' AND e.key = _apiengine_outbox.key AND e.id < _apiengine_outbox.id) AS "Gap"`
	liteClaimEvents = `UPDATE _apiengine_outbox SET claim = $1, next_at = {now} + $2, attempts = attempts + 1
		WHERE id IN (SELECT c.id FROM _apiengine_outbox c WHERE ` + unblocked + ` AND c.next_at <= {now} ORDER BY c.next_at, c.id LIMIT $3)` + claimReturns
	pgClaimEvents = `WITH due AS MATERIALIZED (SELECT c.id AS due_id FROM _apiengine_outbox c WHERE ` + unblocked + ` AND c.next_at <= {now}
		ORDER BY c.next_at, c.id LIMIT $3::bigint FOR UPDATE SKIP LOCKED)
		UPDATE _apiengine_outbox SET claim = $1, next_at = {now} + $2::bigint, attempts = attempts + 1
		FROM due WHERE id = due_id` + claimReturns
	mine         = ` WHERE id = $1 AND claim = $2 AND state = 'pending'`
	extendClaim  = `UPDATE _apiengine_outbox SET next_at = {now} + $3` + mine
	markSent     = `UPDATE _apiengine_outbox SET state = 'delivered', error = '', claim = '', done_at = {now}` + mine
	markDead     = `UPDATE _apiengine_outbox SET state = 'dead', error = coalesce(nullif($3, ''), nullif(error, ''), 'the node ended during every try'), claim = ''` + mine
	markAgain    = `UPDATE _apiengine_outbox SET next_at = {now} + $3, error = $4, claim = ''` + mine
	giveBack     = `UPDATE _apiengine_outbox SET next_at = {now}, attempts = attempts - 1, claim = ''` + mine
	sweepOutbox  = `DELETE FROM _apiengine_outbox WHERE id IN (SELECT id FROM _apiengine_outbox WHERE done_at < {now} - $1 ORDER BY done_at LIMIT 1000)`
	sweepInbox   = `DELETE FROM _apiengine_inbox WHERE event_id IN (SELECT event_id FROM _apiengine_inbox WHERE seen_at < {now} - $1 ORDER BY seen_at LIMIT 1000)`
	maxErrorText = 500
)

// ClaimEvents takes events that are due, oldest first and of each key only the oldest, and
// tells how long it is until the next one is due; wait is negative when none is pending.
func (db *DB) ClaimEvents(ctx context.Context, c EventsClaim) (events []Claimed, wait time.Duration, err error) {
	var next []struct{ Wait int64 }
	if _, err := db.one(ctx, ourStatement{sql: peekOutbox, rows: &next}); err != nil || len(next) == 0 {
		return nil, -1, err
	}
	if wait = time.Duration(next[0].Wait) * time.Microsecond; wait > 0 {
		return nil, wait, nil
	}
	sql := liteClaimEvents
	if db.g.dialect == sqltext.Postgres {
		sql = pgClaimEvents
	}
	var rows []struct {
		Row, Created, Token, Hops   int64
		Gap                         int64
		Attempts                    int
		ID, Type, Key, Target, Data string
	}
	if _, err := db.one(ctx, ourStatement{sql: sql, args: []any{c.Name, c.Lease.Microseconds(), int64(c.Max)}, effect: sqltext.Writes, rows: &rows}); err != nil {
		return nil, 0, err
	}
	for _, r := range rows {
		events = append(events, Claimed{Row: r.Row, Attempts: r.Attempts, Gap: r.Gap > 0, CreatedAt: time.UnixMicro(r.Created).UTC(),
			Event: Event{ID: r.ID, Type: r.Type, Key: r.Key, Target: r.Target, Data: json.RawMessage(r.Data), Token: r.Token, Hops: r.Hops}})
	}
	return events, 0, nil
}

// ExtendClaim keeps a claimed event for another lease. false: the claim has ended.
func (db *DB) ExtendClaim(ctx context.Context, row int64, claim string, lease time.Duration) (bool, error) {
	return db.mark(ctx, extendClaim, row, claim, lease.Microseconds())
}

// Delivered ends a claimed event. Like the other marks it reports false, and changes
// nothing, when the claim has ended: another relay has the event.
func (db *DB) Delivered(ctx context.Context, row int64, claim string) (bool, error) {
	return db.mark(ctx, markSent, row, claim)
}

// Failed gives a claimed event back for another try after a while.
func (db *DB) Failed(ctx context.Context, row int64, claim string, after time.Duration, why string) (bool, error) {
	return db.mark(ctx, markAgain, row, claim, after.Microseconds(), errorText(why))
}

// Dead makes a claimed event a dead letter, which no longer holds up its key: those behind
// it are delivered with Gap. An empty why
// keeps the reason of the last try that had one.
func (db *DB) Dead(ctx context.Context, row int64, claim, why string) (bool, error) {
	return db.mark(ctx, markDead, row, claim, errorText(why))
}

// GiveBack gives up a claim as if it had not been made.
func (db *DB) GiveBack(ctx context.Context, row int64, claim string) (bool, error) {
	return db.mark(ctx, giveBack, row, claim)
}

// Sweep removes events that were delivered or dropped longer ago than sent, and what the
// inbox noted longer ago than seen. It does so in portions: more tells that there is more.
func (db *DB) Sweep(ctx context.Context, sent, seen time.Duration) (more bool, err error) {
	a, err := db.one(ctx, ourStatement{sql: sweepOutbox, args: []any{sent.Microseconds()}, effect: sqltext.Writes})
	if err != nil {
		return false, err
	}
	b, err := db.one(ctx, ourStatement{sql: sweepInbox, args: []any{seen.Microseconds()}, effect: sqltext.Writes})
	return a == 1000 || b == 1000, err
}

func (db *DB) mark(ctx context.Context, sql string, row int64, claim string, more ...any) (bool, error) {
	n, err := db.one(ctx, ourStatement{sql: sql, args: append([]any{row, claim}, more...), effect: sqltext.Writes})
	return n == 1, err
}

// one runs a statement of the platform in a transaction of its own.
func (db *DB) one(ctx context.Context, st ourStatement) (int64, error) {
	tx, err := db.Begin(ctx, Guard{})
	if err != nil {
		return 0, err
	}
	defer tx.Rollback(ctx)
	n, err := tx.ours(ctx, st)
	if err != nil {
		return 0, err
	}
	return n, tx.Commit(ctx)
}

// errorText is what is kept of an error: text that every database takes.
func errorText(s string) string {
	runes := []rune(printable(s))
	return string(runes[:min(len(runes), maxErrorText)])
}
