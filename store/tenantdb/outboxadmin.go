package tenantdb

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"apiengine/fault"
	"apiengine/store/tenantdb/internal/sqltext"
)

// The states of an event.
const (
	StatePending   = "pending"
	StateDelivered = "delivered"
	StateDead      = "dead"
	StateDropped   = "dropped"
)

// StoredEvent is an event as an administrator sees it.
type StoredEvent struct {
	Row                int64
	State, Error       string
	Attempts           int
	Claimed            bool // a relay has it
	CreatedAt, NextTry time.Time
	EndedAt            time.Time // zero: pending or dead
	ID, Type, Key      string
	Target             string
	Data               json.RawMessage
	Token              int64
}

// EventFilter says which events are listed; an empty field lets all through. Before is the
// Row of the last event of the page before.
type EventFilter struct {
	State, ID, Type, Key, Target string
	Before                       int64
	Max                          int
}

const listOutbox = `SELECT id AS "Row", state AS "State", error AS "Error", attempts AS "Attempts", claim <> '' AS "Claimed", created_at AS "Created",
	next_at AS "Next", done_at AS "Done", event_id AS "ID", type AS "Type", key AS "Key", target AS "Target", data AS "Data", token AS "Token"
	FROM _apiengine_outbox WHERE `

// Events lists events, newest first.
func (db *DB) Events(ctx context.Context, f EventFilter) ([]StoredEvent, error) {
	conds, args := []string{"true"}, []any{}
	for _, c := range []struct{ column, value string }{
		{"state", f.State}, {"event_id", f.ID}, {"type", f.Type}, {"key", f.Key}, {"target", f.Target},
	} {
		if c.value != "" {
			args = append(args, c.value)
			conds = append(conds, c.column+" = $"+strconv.Itoa(len(args)))
		}
	}
	if f.Before > 0 {
		args = append(args, f.Before)
		conds = append(conds, "id < $"+strconv.Itoa(len(args)))
	}
	args = append(args, int64(f.Max))
	sql := listOutbox + strings.Join(conds, " AND ") + " ORDER BY id DESC LIMIT $" + strconv.Itoa(len(args))
	var rows []struct {
		StoredEvent
		Created, Next int64
		Done          *int64
		Data          string
		Claimed       any // SQLite has no bool
	}
	if _, err := db.one(ctx, ourStatement{sql: sql, args: args, rows: &rows}); err != nil {
		return nil, err
	}
	out := make([]StoredEvent, len(rows))
	for i, r := range rows {
		e := r.StoredEvent
		e.CreatedAt, e.NextTry, e.Data = time.UnixMicro(r.Created).UTC(), time.UnixMicro(r.Next).UTC(), json.RawMessage(r.Data)
		e.Claimed = r.Claimed == true || r.Claimed == 1.0
		if r.Done != nil {
			e.EndedAt = time.UnixMicro(*r.Done).UTC()
		}
		out[i] = e
	}
	return out, nil
}

const (
	// Due a little later: a claim of a later event of its key that has begun before must be
	// there to be seen when this one is claimed.
	retryEvent = `UPDATE _apiengine_outbox SET state = 'pending', attempts = 0, next_at = {now} + 200000, claim = '', done_at = NULL
		WHERE id = $1 AND (state IN ('dead', 'dropped') OR state = 'pending' AND claim = '')`
	dropEvent   = `UPDATE _apiengine_outbox SET state = 'dropped', claim = '', done_at = {now} WHERE id = $1 AND state IN ('pending', 'dead')`
	eventExists = `SELECT state AS "State" FROM _apiengine_outbox WHERE id = $1`
)

// RetryEvent makes a dead, a dropped or a waiting event due in a moment, its attempts counted
// anew. It comes before the later ones of its key that are still pending, and waits for one
// that is under way. The error is not_found, version_conflict for one that is being or was delivered,
// or as in Query.
func (db *DB) RetryEvent(ctx context.Context, row int64) error {
	return db.change(ctx, retryEvent, row, "it was delivered, or is being delivered now")
}

// DropEvent takes an event out of the delivery for good; its EventId stays taken as long
// as that of a delivered one. A delivery that is under way is not recalled.
func (db *DB) DropEvent(ctx context.Context, row int64) error {
	return db.change(ctx, dropEvent, row, "it was delivered or dropped before")
}

func (db *DB) change(ctx context.Context, sql string, row int64, why string) error {
	n, err := db.one(ctx, ourStatement{sql: sql, args: []any{row}, effect: sqltext.Writes})
	if err != nil || n == 1 {
		return err
	}
	var found []struct{ State string }
	if _, err := db.one(ctx, ourStatement{sql: eventExists, args: []any{row}, rows: &found}); err != nil {
		return err
	}
	if len(found) == 0 {
		return fault.New(fault.NotFound, "there is no event %d in the outbox", row)
	}
	return fault.New(fault.VersionConflict, "the event %d is %s: %s", row, found[0].State, why)
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
