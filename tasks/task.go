package tasks

import (
	"encoding/json"
	"fmt"
	"time"

	"apiengine/engine"
	"apiengine/store/tenantdb"
)

// Task is a task as it is shown.
type Task struct {
	ID             string `json:"Id"`
	ApiEngineKey   string
	Status         string // Pending, Running, Retrying, Succeeded, Failed, Canceled or Dead
	Slice          int64  // committed so far
	Attempt        int    // of the slice that runs or comes next
	MaxAttempts    int
	Current, Total int64    // units; Total 0: not known
	Progress       *float64 // percent; null without a Total, 100 only after success
	Msg            string
	Checkpoint     json.RawMessage
	Result         json.RawMessage // Data of the last slice, once it has succeeded
	Error          string          `json:",omitempty"`
	Source         string          // who asked: api, script:<key>, schedule:<key>
	ConcurrencyKey string          `json:",omitempty"`
	Priority       int
	CreatedAt      time.Time
	StartedAt      *time.Time
	EndedAt        *time.Time
	NextRunAt      *time.Time    // while it waits
	Eta            *time.Time    // when the rate of the committed units holds
	Why            string        `json:",omitempty"` // why it is not over
	Log            []Line        `json:",omitempty"`
	Owner          engine.Caller `json:"-"` // whom it runs as; without an ID: nobody
	New            bool          `json:"-"` // Submit has made it
}

// Line is one line of a task's log.
type Line struct {
	At   time.Time
	Text string
}

var statuses = map[string]string{
	tenantdb.TaskPending: "Pending", tenantdb.TaskRunning: "Running", tenantdb.TaskRetrying: "Retrying", tenantdb.TaskSucceeded: "Succeeded",
	tenantdb.TaskFailed: "Failed", tenantdb.TaskCanceled: "Canceled", tenantdb.TaskDead: "Dead",
}

// shown makes of a row what people see of it; what slices told has been put into the row.
func shown(t tenantdb.Task) Task {
	out := Task{ID: t.ID, ApiEngineKey: t.API, Status: statuses[t.State], Slice: t.Slice, Attempt: t.Attempt, MaxAttempts: t.MaxAttempts,
		Current: t.Current, Total: t.Total, Progress: percent(t), Msg: t.Msg, Checkpoint: t.Checkpoint, Result: t.Result, Error: t.Error,
		Source: t.Source, ConcurrencyKey: t.Key, Priority: t.Priority, CreatedAt: t.CreatedAt, StartedAt: optional(t.StartedAt), EndedAt: optional(t.EndedAt)}
	var p principal
	if json.Unmarshal(t.Principal, &p) == nil {
		out.Owner = engine.Caller(p)
	}
	if t.State == tenantdb.TaskPending || t.State == tenantdb.TaskRetrying {
		out.NextRunAt = optional(t.NextAt)
	}
	if left := t.Total - t.Current; t.Open() && t.Rate > 0 && left > 0 {
		eta := t.Now.Add(time.Duration(min(float64(left)/t.Rate, 10*365*24*3600) * float64(time.Second))).Round(time.Second)
		out.Eta = &eta
	}
	out.Why = why(t)
	return out
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// percent never says 100 before the task has succeeded, and never less than before: a Total
// that grows holds it where it is.
func percent(t tenantdb.Task) *float64 {
	var p float64
	switch {
	case t.State == tenantdb.TaskSucceeded:
		p = 100
	case t.Total <= 0:
		return nil
	default:
		p = float64(max(t.Best, perMille(t.Current, t.Total))) / 10
	}
	return &p
}

// why says what an open task waits for.
func why(t tenantdb.Task) string {
	switch {
	case !t.Open():
		return ""
	case t.State == tenantdb.TaskRunning && t.Cancel:
		return "is being canceled"
	case t.State == tenantdb.TaskRunning:
		return fmt.Sprintf("slice %d runs for %v, try %d of %d", t.Slice+1, t.Now.Sub(t.SliceAt).Round(time.Second), t.Attempt, t.MaxAttempts)
	case t.State == tenantdb.TaskRetrying:
		return fmt.Sprintf("try %d of %d at %s: %s", t.Attempt+1, t.MaxAttempts, t.NextAt.Format(time.TimeOnly), t.Error)
	case t.NextAt.After(t.Now):
		return "not before " + t.NextAt.Format(time.DateTime)
	case t.Slice > 0:
		return fmt.Sprintf("waits for a worker, %d slices are done", t.Slice)
	}
	return "waits for a worker"
}
