package tenantdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"apiengine/store/tenantdb/internal/sqltext"
)

// DueTasks returns open tasks that have been due for at least age and may take their turn,
// the longest first. Of one in state running somebody must find out whether its runner lives.
func (db *DB) DueTasks(ctx context.Context, age time.Duration, limit int) ([]Task, error) {
	return db.tasks(ctx, ourStatement{args: []any{age.Microseconds(), int64(limit)},
		sql: `SELECT ` + taskColumns + ` FROM _apiengine_tasks t WHERE ended_at IS NULL AND next_at <= {now} - $1
			AND (state <> 'running' OR slice_at <= {now} - $1) AND ` + turnOfKey + ` ORDER BY next_at LIMIT $2`})
}

// NextOfKey returns the task whose turn it is among those of a ConcurrencyKey without a
// holder; false: none is due.
func (db *DB) NextOfKey(ctx context.Context, key string) (Task, bool, error) {
	list, err := db.tasks(ctx, ourStatement{args: []any{key},
		sql: `SELECT ` + taskColumns + ` FROM _apiengine_tasks t WHERE ckey = $1 AND ended_at IS NULL AND next_at <= {now} AND ` + turnOfKey + ` ORDER BY priority, id LIMIT 1`})
	return first(list), len(list) == 1, err
}

// HolderOfKey returns the task that a waiting one waits for.
func (db *DB) HolderOfKey(ctx context.Context, t Task) (Task, bool, error) {
	list, err := db.tasks(ctx, ourStatement{args: []any{t.Key, t.ID},
		sql: `SELECT ` + taskColumns + ` FROM _apiengine_tasks t WHERE ckey = $1 AND id <> $2 AND ended_at IS NULL ORDER BY holds DESC, priority, id LIMIT 1`})
	return first(list), len(list) == 1, err
}

// OpenTasks counts the tasks that have not come to their end, and returns when the next of
// them is due: zero when there is none.
func (db *DB) OpenTasks(ctx context.Context) (n int64, next time.Time, err error) {
	var rows []struct {
		N    int64
		Next *int64
	}
	_, err = db.one(ctx, ourStatement{sql: `SELECT count(*) AS "N", min(next_at) AS "Next" FROM _apiengine_tasks WHERE ended_at IS NULL`, rows: &rows})
	if err != nil || len(rows) == 0 || rows[0].Next == nil {
		return 0, time.Time{}, err
	}
	return rows[0].N, time.UnixMicro(*rows[0].Next).UTC(), nil
}

// ToBeEnded returns those of the ids whose tasks are marked to be ended.
func (db *DB) ToBeEnded(ctx context.Context, ids []string) ([]string, error) {
	var rows []struct{ ID string }
	marks, args := make([]string, len(ids)), make([]any, len(ids))
	for i, id := range ids {
		marks[i], args[i] = fmt.Sprintf("$%d", i+1), id
	}
	_, err := db.one(ctx, ourStatement{rows: &rows, args: args,
		sql: `SELECT id AS "ID" FROM _apiengine_tasks WHERE cancel = 1 AND id IN (` + strings.Join(marks, ", ") + `)`})
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.ID
	}
	return out, err
}

// TaskLine is one line of a task's log.
type TaskLine struct {
	At   time.Time
	Text string
}

// maxTaskLog is how many lines of one task are kept, the newest.
const maxTaskLog = 500

// LogTask is Tx.LogTask in a transaction of its own.
func (db *DB) LogTask(ctx context.Context, id string, lines []TaskLine) error {
	if len(lines) == 0 {
		return nil
	}
	tx, err := db.Begin(ctx, Guard{})
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if err := tx.LogTask(ctx, id, lines); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// LogTask keeps lines of a task's log. A line that is there already is not kept again.
func (tx *Tx) LogTask(ctx context.Context, id string, lines []TaskLine) error {
	if len(lines) == 0 {
		return nil
	}
	for i, l := range lines {
		if _, err := tx.ours(ctx, ourStatement{effect: sqltext.Writes, args: []any{id, l.At.UnixMicro(), int64(i), l.Text},
			sql: `INSERT INTO _apiengine_task_log (task, at, n, text) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`}); err != nil {
			return err
		}
	}
	_, err := tx.ours(ctx, ourStatement{effect: sqltext.Writes, args: []any{id, int64(maxTaskLog)},
		sql: `DELETE FROM _apiengine_task_log WHERE task = $1 AND at < (SELECT min(at) FROM
			(SELECT at FROM _apiengine_task_log WHERE task = $1 ORDER BY at DESC, n DESC LIMIT $2) AS newest)`})
	return err
}

// TaskLog returns the lines of a task's log that were written after a time, oldest first.
func (db *DB) TaskLog(ctx context.Context, id string, after time.Time) ([]TaskLine, error) {
	var rows []struct {
		At   int64
		Text string
	}
	us := int64(-1)
	if !after.IsZero() {
		us = after.UnixMicro()
	}
	_, err := db.one(ctx, ourStatement{rows: &rows, args: []any{id, us},
		sql: `SELECT at AS "At", text AS "Text" FROM _apiengine_task_log WHERE task = $1 AND at > $2 ORDER BY at, n`})
	out := make([]TaskLine, len(rows))
	for i, r := range rows {
		out[i] = TaskLine{At: time.UnixMicro(r.At).UTC(), Text: r.Text}
	}
	return out, err
}

// ForgetTasks deletes tasks that ended longer ago than keep, with their logs, at most a
// thousand; more: there may be others.
func (db *DB) ForgetTasks(ctx context.Context, keep time.Duration) (removed int64, more bool, err error) {
	tx, err := db.Begin(ctx, Guard{})
	if err != nil {
		return 0, false, err
	}
	defer tx.Rollback(ctx)
	const old = `(SELECT id FROM _apiengine_tasks WHERE ended_at < {now} - $1 ORDER BY ended_at LIMIT 1000)`
	args := []any{keep.Microseconds()}
	if _, err := tx.ours(ctx, ourStatement{sql: `DELETE FROM _apiengine_task_log WHERE task IN ` + old, args: args, effect: sqltext.Writes}); err != nil {
		return 0, false, err
	}
	n, err := tx.ours(ctx, ourStatement{sql: `DELETE FROM _apiengine_tasks WHERE id IN ` + old, args: args, effect: sqltext.Writes})
	if err != nil {
		return 0, false, err
	}
	return n, n == 1000, tx.Commit(ctx)
}
