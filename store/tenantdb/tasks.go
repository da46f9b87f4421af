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

// NewTask is a task to be kept.
type NewTask struct {
	ID, API     string
	Param       json.RawMessage
	Principal   json.RawMessage
	Owner       string // names the principal, for lists
	Source      string
	Idempotency string // names the wish, in the tenant; empty: each is its own
	Fingerprint string // of the wish; another one under the same name is refused
	Key         string // ConcurrencyKey
	Priority    int
	MaxAttempts int
	Delay       time.Duration // before it may run
	At          time.Time     // not before; zero: Delay counts
}

const (
	insertTask = `INSERT INTO _apiengine_tasks (id, api, param, principal, owner, source, idem, fingerprint, ckey, priority, max_attempts, created_at, next_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, {now}, CASE WHEN CAST($12 AS bigint) > 0 THEN CAST($12 AS bigint) ELSE {now} + $13 END) ON CONFLICT DO NOTHING`
	taskOfWish = `SELECT id AS "ID", fingerprint AS "Fingerprint" FROM _apiengine_tasks WHERE idem = $1`
)

// AddTask keeps a task in the transaction. A wish whose name is known is not kept again: the
// id of the first is returned, or idempotency_mismatch when it was another wish.
func (tx *Tx) AddTask(ctx context.Context, t NewTask) (id string, created bool, err error) {
	var at int64
	if !t.At.IsZero() {
		at = max(1, t.At.UnixMicro())
	}
	var idem any
	if t.Idempotency != "" {
		idem = t.Idempotency
	}
	n, err := tx.ours(ctx, ourStatement{sql: insertTask, effect: sqltext.Writes, args: []any{t.ID, t.API, string(t.Param), string(t.Principal),
		t.Owner, t.Source, idem, t.Fingerprint, t.Key, int64(t.Priority), int64(t.MaxAttempts), at, t.Delay.Microseconds()}})
	if err != nil || n == 1 {
		return t.ID, n == 1, err
	}
	var first []struct{ ID, Fingerprint string }
	if _, err := tx.ours(ctx, ourStatement{sql: taskOfWish, args: []any{t.Idempotency}, rows: &first}); err != nil {
		return "", false, err
	}
	switch {
	case len(first) == 0:
		return "", false, fault.New(fault.VersionConflict, "the task of this IdempotencyKey is being kept by another call: ask again")
	case first[0].Fingerprint != t.Fingerprint:
		return "", false, fault.New(fault.IdempotencyMismatch, "this IdempotencyKey was used for another task: a new task needs a new key")
	}
	return first[0].ID, false, nil
}

// AddTask is Tx.AddTask in a transaction of its own.
func (db *DB) AddTask(ctx context.Context, t NewTask) (id string, created bool, err error) {
	tx, err := db.Begin(ctx, Guard{})
	if err != nil {
		return "", false, err
	}
	defer tx.Rollback(ctx)
	if id, created, err = tx.AddTask(ctx, t); err != nil {
		return "", false, err
	}
	return id, created, tx.Commit(ctx)
}

// Task returns a task by its id, or not_found.
func (db *DB) Task(ctx context.Context, id string) (Task, error) {
	list, err := db.tasks(ctx, ourStatement{sql: `SELECT ` + taskColumns + ` FROM _apiengine_tasks WHERE id = $1`, args: []any{id}})
	if err == nil && len(list) == 0 {
		err = noTask(id)
	}
	if err != nil {
		return Task{}, err
	}
	return list[0], nil
}

func noTask(id string) error { return fault.New(fault.NotFound, "there is no task %q", id) }

// TaskFilter says which tasks are listed; an empty field lets all through. Before is the id
// of the last task of the page before.
type TaskFilter struct {
	State, API, Source, Key, Owner string
	Before                         string
	Max                            int
}

// Tasks lists tasks, newest first.
func (db *DB) Tasks(ctx context.Context, f TaskFilter) ([]Task, error) {
	conds, args := []string{"true"}, []any{}
	add := func(cond, value string) {
		if value != "" {
			args = append(args, value)
			conds = append(conds, cond+" $"+strconv.Itoa(len(args)))
		}
	}
	add("state =", f.State)
	add("lower(api) =", strings.ToLower(f.API))
	add("source =", f.Source)
	add("ckey =", f.Key)
	add("owner =", f.Owner)
	add("id <", f.Before)
	args = append(args, int64(f.Max))
	return db.tasks(ctx, ourStatement{args: args,
		sql: `SELECT ` + taskColumns + ` FROM _apiengine_tasks WHERE ` + strings.Join(conds, " AND ") + ` ORDER BY id DESC LIMIT $` + strconv.Itoa(len(args))})
}

func (db *DB) tasks(ctx context.Context, st ourStatement) ([]Task, error) {
	var rows []taskRow
	st.rows = &rows
	if _, err := db.one(ctx, st); err != nil {
		return nil, err
	}
	return tasksOf(rows), nil
}

// Of the tasks of one ConcurrencyKey the holder runs; when there is none, the first in the
// order of priority and age may become it.
const turnOfKey = `(t.ckey = '' OR t.holds = 1 OR NOT EXISTS (SELECT 1 FROM _apiengine_tasks o WHERE o.ckey = t.ckey AND o.id <> t.id AND o.ended_at IS NULL
	AND (o.holds = 1 OR o.next_at <= {now} AND (o.priority < t.priority OR o.priority = t.priority AND o.id < t.id))))`

const (
	pgTaskTurn = `SELECT pg_advisory_xact_lock(hashtextextended('apiengine task ' || current_schema() || ':' || $1::text, 0)) IS NULL AS n`
	startSlice = `UPDATE _apiengine_tasks AS t SET state = 'running', run = $2, fence = $3, attempt = attempt + 1,
		holds = CASE WHEN ckey = '' THEN 0 ELSE 1 END, started_at = coalesce(started_at, {now}), slice_at = {now}
		WHERE id = $1 AND ended_at IS NULL AND cancel = 0 AND fence < $3 AND next_at <= {now} AND ` + turnOfKey + ` RETURNING `
)

// StartSlice makes the holder of the token the one who runs the task's next slice, and counts
// the attempt. It reports false when there is nothing to run now: the task is over, not due,
// to be ended, waits for its turn, or a later holder was there.
func (db *DB) StartSlice(ctx context.Context, t Task, run string, token int64) (Task, bool, error) {
	tx, err := db.Begin(ctx, Guard{})
	if err != nil {
		return Task{}, false, err
	}
	defer tx.Rollback(ctx)
	if t.Key != "" && db.g.dialect == sqltext.Postgres {
		if _, err := tx.ours(ctx, ourStatement{sql: pgTaskTurn, args: []any{t.Key}, effect: sqltext.Writes}); err != nil {
			return Task{}, false, err
		}
	}
	var rows []taskRow
	if _, err := tx.ours(ctx, ourStatement{sql: startSlice + taskColumns, args: []any{t.ID, run, token}, effect: sqltext.Writes, rows: &rows}); err != nil {
		return Task{}, false, err
	}
	if len(rows) == 0 {
		return Task{}, false, nil
	}
	return rows[0].task(), true, tx.Commit(ctx)
}

// SliceEnd is what a slice leaves behind. ID, Run and Fence say which slice it is.
type SliceEnd struct {
	ID, Run string
	Fence   int64
	State   string // pending: it goes on; else one of the ends, or retrying
	Slice   int64  // slices committed with this one
	Attempt int    // tries of the next one so far

	Delay      time.Duration // before the next
	Param      json.RawMessage
	Checkpoint json.RawMessage
	Stuck      int
	Current    int64
	Total      int64
	Best       int
	Rate       float64
	Msg, Error string
	Result     json.RawMessage
}

const endSlice = `UPDATE _apiengine_tasks AS t SET state = $4, slice = $5, attempt = $6, next_at = {now} + $7, param = $8, checkpoint = $9, stuck = $10,
	current = CASE WHEN current < $11 THEN $11 ELSE current END, total = $12, rate = $13, msg = $14, error = $15, result = $16, run = '',
	best = CASE WHEN best < $18 THEN $18 ELSE best END,
	ended_at = CASE WHEN $17 = 1 THEN {now} END, holds = CASE WHEN $17 = 1 THEN 0 ELSE holds END
	WHERE id = $1 AND run = $2 AND fence = $3 AND state = 'running' AND ended_at IS NULL AND (cancel = 0 OR $17 = 1)`

func (e *SliceEnd) over() int64 {
	switch e.State {
	case TaskPending, TaskRetrying:
		return 0
	}
	return 1
}

// EndSlice writes a slice's end into the transaction in which it did its work. It reports
// false when the task is not this slice's any more, or is to be ended: then the transaction
// must be rolled back.
func (tx *Tx) EndSlice(ctx context.Context, e SliceEnd) (ours bool, err error) {
	n, err := tx.ours(ctx, ourStatement{sql: endSlice, effect: sqltext.Writes, args: []any{e.ID, e.Run, e.Fence, e.State, e.Slice, int64(e.Attempt),
		e.Delay.Microseconds(), string(e.Param), string(e.Checkpoint), int64(e.Stuck), e.Current, e.Total, e.Rate, e.Msg, e.Error, string(e.Result), e.over(), int64(e.Best)}})
	return n == 1, err
}

// EndSlice is Tx.EndSlice in a transaction of its own, for a slice whose work was rolled back.
func (db *DB) EndSlice(ctx context.Context, e SliceEnd) (ours bool, err error) {
	tx, err := db.Begin(ctx, Guard{})
	if err != nil {
		return false, err
	}
	defer tx.Rollback(ctx)
	if ours, err = tx.EndSlice(ctx, e); err != nil || !ours {
		return ours, err
	}
	return true, tx.Commit(ctx)
}

const (
	cancelTask = `UPDATE _apiengine_tasks AS t SET cancel = 1, state = CASE WHEN state = 'running' THEN state ELSE 'canceled' END,
		ended_at = CASE WHEN state = 'running' THEN NULL ELSE {now} END, holds = CASE WHEN state = 'running' THEN holds ELSE 0 END
		WHERE id = $1 AND ended_at IS NULL RETURNING `
	// Who ran it is gone, and it is to be ended: its last slice left nothing.
	buryTask = `UPDATE _apiengine_tasks AS t SET state = 'canceled', ended_at = {now}, holds = 0, run = '', fence = $2
		WHERE id = $1 AND ended_at IS NULL AND cancel = 1 AND fence < $2 RETURNING `
	retryTask = `UPDATE _apiengine_tasks AS t SET state = 'pending', cancel = 0, attempt = 0, stuck = 0, error = '', ended_at = NULL, next_at = {now}
		WHERE id = $1 AND (state IN ('failed', 'dead', 'canceled') OR state = 'retrying') RETURNING `
)

// CancelTask ends a task that is not running, and marks a running one. It returns the task as
// it stands then; not_found, or version_conflict for one that is over.
func (db *DB) CancelTask(ctx context.Context, id string) (Task, error) {
	return db.turn(ctx, ourStatement{sql: cancelTask, args: []any{id}}, "its end cannot be changed any more")
}

// BuryTask ends a task that is marked to be ended and whose runner is gone: the holder of a
// later token says so.
func (db *DB) BuryTask(ctx context.Context, id string, token int64) (Task, error) {
	return db.turn(ctx, ourStatement{sql: buryTask, args: []any{id, token}}, "it goes on")
}

// RetryTask makes a task that has failed, was ended or waits for a try due at once, its
// attempts counted anew.
func (db *DB) RetryTask(ctx context.Context, id string) (Task, error) {
	return db.turn(ctx, ourStatement{sql: retryTask, args: []any{id}}, "only a task that failed, was canceled or waits for its next try can be tried again")
}

func (db *DB) turn(ctx context.Context, st ourStatement, why string) (Task, error) {
	st.sql, st.effect = st.sql+taskColumns, sqltext.Writes
	list, err := db.tasks(ctx, st)
	if err != nil || len(list) == 1 {
		return first(list), err
	}
	t, err := db.Task(ctx, st.args[0].(string))
	if err != nil {
		return Task{}, err
	}
	return t, fault.New(fault.VersionConflict, "the task is %s: %s", t.State, why)
}

func first(list []Task) Task {
	if len(list) == 0 {
		return Task{}
	}
	return list[0]
}
