package tenantdb

import (
	"encoding/json"
	"strings"
	"time"
)

// Trusted tasks (contract.md section 6). A task's row decides what is to be done next: its
// slice is counted, and its checkpoint is kept, by the transaction in which the slice did its
// work. The queue of the platform only says that somebody should look.

// liteTasks and pgTasks make what is missing, each statement for itself. Times are
// microseconds by the database's own clock.
const liteTasks = `
CREATE TABLE IF NOT EXISTS _apiengine_tasks (
	id TEXT PRIMARY KEY, api TEXT NOT NULL, param TEXT NOT NULL, principal TEXT NOT NULL, owner TEXT NOT NULL, source TEXT NOT NULL,
	idem TEXT UNIQUE, fingerprint TEXT NOT NULL, ckey TEXT NOT NULL, holds INTEGER NOT NULL DEFAULT 0,
	priority INTEGER NOT NULL, max_attempts INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'pending', cancel INTEGER NOT NULL DEFAULT 0,
	slice INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 0, fence INTEGER NOT NULL DEFAULT 0, run TEXT NOT NULL DEFAULT '',
	checkpoint TEXT NOT NULL DEFAULT 'null', stuck INTEGER NOT NULL DEFAULT 0, current INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0,
	rate REAL NOT NULL DEFAULT 0, msg TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '', result TEXT NOT NULL DEFAULT 'null',
	created_at INTEGER NOT NULL, next_at INTEGER NOT NULL, started_at INTEGER, slice_at INTEGER, ended_at INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS _apiengine_tasks_open ON _apiengine_tasks (next_at) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX IF NOT EXISTS _apiengine_tasks_holder ON _apiengine_tasks (ckey) WHERE holds = 1;
CREATE INDEX IF NOT EXISTS _apiengine_tasks_key ON _apiengine_tasks (ckey, priority, id) WHERE ended_at IS NULL AND ckey <> '';
CREATE INDEX IF NOT EXISTS _apiengine_tasks_owner ON _apiengine_tasks (owner, id);
CREATE INDEX IF NOT EXISTS _apiengine_tasks_ended ON _apiengine_tasks (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS _apiengine_task_log (
	task TEXT NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (task, at, n)
) STRICT, WITHOUT ROWID`

const pgTasks = `
CREATE TABLE IF NOT EXISTS _apiengine_tasks (
	id text PRIMARY KEY, api text NOT NULL, param text NOT NULL, principal text NOT NULL, owner text NOT NULL, source text NOT NULL,
	idem text UNIQUE, fingerprint text NOT NULL, ckey text NOT NULL, holds int NOT NULL DEFAULT 0,
	priority int NOT NULL, max_attempts int NOT NULL, state text NOT NULL DEFAULT 'pending', cancel int NOT NULL DEFAULT 0,
	slice bigint NOT NULL DEFAULT 0, attempt int NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0, run text NOT NULL DEFAULT '',
	checkpoint text NOT NULL DEFAULT 'null', stuck int NOT NULL DEFAULT 0, current bigint NOT NULL DEFAULT 0, total bigint NOT NULL DEFAULT 0,
	rate double precision NOT NULL DEFAULT 0, msg text NOT NULL DEFAULT '', error text NOT NULL DEFAULT '', result text NOT NULL DEFAULT 'null',
	created_at bigint NOT NULL, next_at bigint NOT NULL, started_at bigint, slice_at bigint, ended_at bigint
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS _apiengine_tasks_open ON _apiengine_tasks (next_at) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX IF NOT EXISTS _apiengine_tasks_holder ON _apiengine_tasks (ckey) WHERE holds = 1;
CREATE INDEX IF NOT EXISTS _apiengine_tasks_key ON _apiengine_tasks (ckey, priority, id) WHERE ended_at IS NULL AND ckey <> '';
CREATE INDEX IF NOT EXISTS _apiengine_tasks_owner ON _apiengine_tasks (owner, id);
CREATE INDEX IF NOT EXISTS _apiengine_tasks_ended ON _apiengine_tasks (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS _apiengine_task_log (
	task text NOT NULL, at bigint NOT NULL, n int NOT NULL, text text NOT NULL, PRIMARY KEY (task, at, n)
)`

// Tables of tasks that were made before they had this column get it. PostgreSQL looks first,
// since ALTER TABLE waits for every slice that is about to commit, and others for it.
const (
	liteTasksLack = `SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pragma_table_info('_apiengine_tasks') WHERE name = 'best')`
	liteTasksBest = `ALTER TABLE _apiengine_tasks ADD COLUMN best INTEGER NOT NULL DEFAULT 0`
	pgTasksBest   = `DO $$ BEGIN
		IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = '_apiengine_tasks'::regclass AND attname = 'best') THEN
			ALTER TABLE _apiengine_tasks ADD COLUMN best int NOT NULL DEFAULT 0;
		END IF;
	END $$`
)

// The states of a task.
const (
	TaskPending   = "pending"   // waits for its time, for its turn or for a worker
	TaskRunning   = "running"   // a slice is under way
	TaskRetrying  = "retrying"  // its last slice failed; it waits for the next try
	TaskSucceeded = "succeeded" // the first of the states that a task does not leave by itself
	TaskFailed    = "failed"
	TaskCanceled  = "canceled"
	TaskDead      = "dead" // it failed as often as it may
)

// Task is a task's row.
type Task struct {
	ID, API     string
	Param       json.RawMessage // an object
	Principal   json.RawMessage // who it runs as; the owner's own form
	Source      string
	Key         string // ConcurrencyKey; empty: none
	Holds       bool   // it is the one of its key that may run
	Priority    int    // 1 is the most urgent
	MaxAttempts int
	State       string
	Cancel      bool  // somebody wants it to end
	Slice       int64 // slices that were committed
	Attempt     int   // tries of the next slice
	Fence       int64 // token of the slice that ran last
	Run         string
	Checkpoint  json.RawMessage
	Stuck       int // how often in a row a slice left the checkpoint that it had found
	Current     int64
	Total       int64   // 0: not known
	Best        int     // the most thousandths that Current ever was of Total
	Rate        float64 // committed units a second, smoothed
	Msg, Error  string
	Result      json.RawMessage

	CreatedAt, NextAt           time.Time
	StartedAt, SliceAt, EndedAt time.Time // zero: not yet
	Now                         time.Time // the database's clock when the row was read
}

// Due reports whether the task may run by the database's clock.
func (t *Task) Due() bool { return t.Open() && !t.NextAt.After(t.Now) }

// Open reports whether the task has not come to its end.
func (t *Task) Open() bool { return t.EndedAt.IsZero() }

var taskColumns = strings.Join([]string{
	`id AS "ID"`, `api AS "API"`, `param AS "Param"`, `principal AS "Principal"`, `source AS "Source"`, `ckey AS "Key"`, `holds AS "Holds"`,
	`priority AS "Priority"`, `max_attempts AS "MaxAttempts"`, `state AS "State"`, `cancel AS "Cancel"`, `slice AS "Slice"`, `attempt AS "Attempt"`,
	`fence AS "Fence"`, `run AS "Run"`, `checkpoint AS "Checkpoint"`, `stuck AS "Stuck"`, `current AS "Current"`, `total AS "Total"`, `best AS "Best"`,
	`rate AS "Rate"`, `msg AS "Msg"`, `error AS "Error"`, `result AS "Result"`, `created_at AS "CreatedAt"`, `next_at AS "NextAt"`,
	`started_at AS "StartedAt"`, `slice_at AS "SliceAt"`, `ended_at AS "EndedAt"`, `{now} AS "Now"`,
}, ", ")

// taskRow is a row as a query returns it.
type taskRow struct {
	ID, API, Param, Principal, Source, Key string
	Holds, Priority, MaxAttempts           int
	State                                  string
	Cancel, Attempt, Stuck, Best           int
	Slice, Fence, Current, Total           int64
	Run, Checkpoint, Msg, Error, Result    string
	Rate                                   float64
	CreatedAt, NextAt, Now                 int64
	StartedAt, SliceAt, EndedAt            *int64
}

func (r *taskRow) task() Task {
	at := func(us *int64) time.Time {
		if us == nil {
			return time.Time{}
		}
		return time.UnixMicro(*us).UTC()
	}
	return Task{ID: r.ID, API: r.API, Param: json.RawMessage(r.Param), Principal: json.RawMessage(r.Principal), Source: r.Source,
		Key: r.Key, Holds: r.Holds == 1, Priority: r.Priority, MaxAttempts: r.MaxAttempts, State: r.State, Cancel: r.Cancel == 1,
		Slice: r.Slice, Attempt: r.Attempt, Fence: r.Fence, Run: r.Run, Checkpoint: json.RawMessage(r.Checkpoint), Stuck: r.Stuck,
		Current: r.Current, Total: r.Total, Best: r.Best, Rate: r.Rate, Msg: r.Msg, Error: r.Error, Result: json.RawMessage(r.Result),
		CreatedAt: at(&r.CreatedAt), NextAt: at(&r.NextAt), StartedAt: at(r.StartedAt), SliceAt: at(r.SliceAt), EndedAt: at(r.EndedAt), Now: at(&r.Now)}
}

func tasksOf(rows []taskRow) []Task {
	out := make([]Task, len(rows))
	for i := range rows {
		out[i] = rows[i].task()
	}
	return out
}
