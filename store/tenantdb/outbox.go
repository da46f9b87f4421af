package tenantdb

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"apiengine/store/tenantdb/internal/sqltext"
)

// The outbox and the inbox: messages that leave with a commit, and those that have come in.
// Times are microseconds by the database's own clock.

// liteBox and pgBox make what is missing, each statement for itself.
const liteBox = `
CREATE TABLE IF NOT EXISTS _apiengine_outbox (
	id INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL UNIQUE, type TEXT NOT NULL, key TEXT NOT NULL,
	target TEXT NOT NULL, data TEXT NOT NULL, token INTEGER NOT NULL, hops INTEGER NOT NULL,
	state TEXT NOT NULL DEFAULT 'pending', attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL,
	claim TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '', created_at INTEGER NOT NULL, done_at INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS _apiengine_outbox_due ON _apiengine_outbox (next_at, id) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS _apiengine_outbox_key ON _apiengine_outbox (key, id) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS _apiengine_outbox_dead ON _apiengine_outbox (key, id) WHERE state = 'dead';
CREATE INDEX IF NOT EXISTS _apiengine_outbox_done ON _apiengine_outbox (done_at) WHERE done_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS _apiengine_inbox (event_id TEXT PRIMARY KEY, seen_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS _apiengine_inbox_seen ON _apiengine_inbox (seen_at)`

const pgBox = `
CREATE TABLE IF NOT EXISTS _apiengine_outbox (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text NOT NULL UNIQUE, type text NOT NULL, key text NOT NULL,
	target text NOT NULL, data text NOT NULL, token bigint NOT NULL, hops int NOT NULL,
	state text NOT NULL DEFAULT 'pending', attempts int NOT NULL DEFAULT 0, next_at bigint NOT NULL,
	claim text NOT NULL DEFAULT '', error text NOT NULL DEFAULT '', created_at bigint NOT NULL, done_at bigint
);
CREATE INDEX IF NOT EXISTS _apiengine_outbox_due ON _apiengine_outbox (next_at, id) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS _apiengine_outbox_key ON _apiengine_outbox (key, id) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS _apiengine_outbox_dead ON _apiengine_outbox (key, id) WHERE state = 'dead';
CREATE INDEX IF NOT EXISTS _apiengine_outbox_done ON _apiengine_outbox (done_at) WHERE done_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS _apiengine_inbox (event_id text PRIMARY KEY, seen_at bigint NOT NULL);
CREATE INDEX IF NOT EXISTS _apiengine_inbox_seen ON _apiengine_inbox (seen_at)`

// Limits of one event.
const (
	MaxEventData = 256 << 10 // bytes of Data
	maxEventName = 255       // bytes of EventId, Type and Key
	maxTarget    = 2000
)

// Event is one message of V8.Outbox.Send.
type Event struct {
	ID     string // unique in the tenant
	Type   string
	Key    string // messages of one key are delivered in order; empty: in any
	Target string
	Data   json.RawMessage
	Token  int64 // fencing token of the sender's lock; 0: none
	Hops   int64 // how often the chain that led here has left a server
}

func (e Event) valid() error {
	for name, v := range map[string]string{"EventId": e.ID, "Type": e.Type, "Key": e.Key} {
		if len(v) > maxEventName || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return badCall("%s must have at most %d bytes and no control characters", name, maxEventName)
		}
	}
	switch {
	case e.ID == "" || strings.ContainsFunc(e.ID, func(r rune) bool { return r <= ' ' || r > '~' }): // it is sent as a header
		return badCall("EventId must be printable ASCII without spaces")
	case e.Target == "" || len(e.Target) > maxTarget:
		return badCall("Target must have 1 to %d bytes", maxTarget)
	case len(e.Data) > MaxEventData:
		return badCall("Data has %d bytes, at most %d are allowed: send a reference to it", len(e.Data), MaxEventData)
	}
	return nil
}

const (
	// Transactions that send under one key take turns from here to their end, so that the
	// order of ids is that of the commits. SQLite has one writer anyway.
	pgKeyTurn  = `SELECT pg_advisory_xact_lock(hashtextextended('apiengine outbox ' || current_schema() || ':' || $1::text, 0)) IS NULL AS n`
	insertSend = `INSERT INTO _apiengine_outbox (event_id, type, key, target, data, token, hops, next_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, {now}, {now}) ON CONFLICT (event_id) DO NOTHING`
	insertOnce = `INSERT INTO _apiengine_inbox (event_id, seen_at) VALUES ($1, {now}) ON CONFLICT (event_id) DO NOTHING`
)

// Send stores an event in the transaction. It reports false when an event with this ID is
// there already, whatever became of it: then nothing is stored. The error is a *SQLError
// for an event that cannot be stored, else as in Query.
func (tx *Tx) Send(ctx context.Context, e Event) (stored bool, err error) {
	if err := e.valid(); err != nil {
		return false, err
	}
	if len(e.Data) == 0 {
		e.Data = json.RawMessage("null")
	}
	if e.Key != "" && tx.db.g.dialect == sqltext.Postgres {
		if _, err := tx.ours(ctx, ourStatement{sql: pgKeyTurn, args: []any{e.Key}, effect: sqltext.Writes}); err != nil {
			return false, err
		}
	}
	n, err := tx.ours(ctx, ourStatement{sql: insertSend, effect: sqltext.Writes,
		args: []any{e.ID, e.Type, e.Key, e.Target, string(e.Data), e.Token, e.Hops}})
	return n == 1, err
}

// Once notes that eventID was handled and reports whether it was the first time. A
// transaction that is rolled back has noted nothing; two that overlap take turns.
func (tx *Tx) Once(ctx context.Context, eventID string) (first bool, err error) {
	if err := (Event{ID: eventID, Target: "-"}).valid(); err != nil {
		return false, err
	}
	n, err := tx.ours(ctx, ourStatement{sql: insertOnce, args: []any{eventID}, effect: sqltext.Writes})
	return n == 1, err
}

// ourStatement is a statement of the platform in PostgreSQL's words: $1 is a placeholder,
// numbered in the order of appearance, {now} the time.
type ourStatement struct {
	sql    string
	args   []any
	effect sqltext.Effect
	rows   any // a pointer to a slice of structs that the rows are decoded into; nil: none
}

// ours runs a statement of the platform and returns the number of rows changed.
func (tx *Tx) ours(ctx context.Context, st ourStatement) (int64, error) {
	text := strings.ReplaceAll(st.sql, "{now}", tx.db.g.now)
	if tx.db.g.dialect == sqltext.SQLite {
		text = strings.ReplaceAll(text, "$", "?")
	}
	w := tx.db.writer(objects)
	n, err := tx.run(ctx, statement{Statement: sqltext.Statement{SQL: text, Args: keepable(st.args), Effect: st.effect}, platform: true, own: true}, w)
	if err != nil || st.rows == nil {
		return n, err
	}
	return n, json.Unmarshal(w.json(), st.rows)
}

// keepable are arguments whose texts every database keeps: PostgreSQL has no NUL in any, and
// what comes from a script or a caller may.
func keepable(args []any) []any {
	for i, a := range args {
		if s, ok := a.(string); ok && strings.Contains(s, "\x00") {
			args = slices.Clone(args)
			args[i] = strings.ReplaceAll(s, "\x00", "\uFFFD")
		}
	}
	return args
}
