package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// taskRoot is where the tasks live.
const taskRoot = "/api/v1"

// NewTask is the wish for a background task; a zero field takes the server's default.
type NewTask struct {
	ApiEngineKey   string
	Param          json.RawMessage `json:",omitempty"`
	IdempotencyKey string          `json:",omitempty"`
	ConcurrencyKey string          `json:",omitempty"`
	Delay          float64         `json:",omitempty"` // seconds
	RunAt          *time.Time      `json:",omitempty"`
	Priority       int             `json:",omitempty"`
	MaxAttempts    int             `json:",omitempty"`
}

// Task is a background task.
type Task struct {
	Id             string
	ApiEngineKey   string
	Status         string
	Slice          int64
	Attempt        int
	MaxAttempts    int
	Current, Total int64
	Progress       *float64 // percent; nil: not known
	Msg            string
	Checkpoint     json.RawMessage
	Result         json.RawMessage
	Error          string `json:",omitempty"`
	Source         string
	ConcurrencyKey string `json:",omitempty"`
	Priority       int
	CreatedAt      time.Time
	StartedAt      *time.Time
	EndedAt        *time.Time
	NextRunAt      *time.Time
	Eta            *time.Time
	Why            string     `json:",omitempty"`
	Log            []TaskLine `json:",omitempty"`
}

// TaskLine is one line of a task's log.
type TaskLine struct {
	At   time.Time
	Text string
}

func (l TaskLine) String() string { return l.At.UTC().Format("15:04:05.000") + " " + visible(l.Text) }

// Percent is the progress as a text, "-" where it is not known.
func (t *Task) Percent() string {
	if t.Progress == nil {
		return "-"
	}
	return strconv.FormatFloat(*t.Progress, 'f', 1, 64) + "%"
}

// Units says how far the task is, such as 450/1000.
func (t *Task) Units() string {
	switch {
	case t.Total > 0:
		return fmt.Sprintf("%d/%d", t.Current, t.Total)
	case t.Current > 0:
		return strconv.FormatInt(t.Current, 10)
	}
	return ""
}

// Word is what the task says of itself, in one line: its error, its message, or why it waits.
func (t *Task) Word() string {
	word := cmp.Or(t.Error, t.Msg, t.Why)
	if t.EndedAt == nil && t.Status != "Running" {
		word = cmp.Or(t.Why, word)
	}
	return strings.ReplaceAll(visible(word), "\n", " ")
}

// String is one line for each thing that is known, then the log.
func (t *Task) String() string {
	var b strings.Builder
	row := func(name, v string) {
		if v != "" && v != "null" && v != "-" {
			fmt.Fprintf(&b, "%-12s %s\n", name, visible(v))
		}
	}
	row("task", t.Id)
	row("api", t.ApiEngineKey)
	row("status", t.Status)
	row("progress", strings.TrimSpace(t.Percent()+" "+t.Units()))
	row("slices", fmt.Sprintf("%d done, try %d of %d", t.Slice, t.Attempt, t.MaxAttempts))
	row("message", t.Msg)
	row("error", t.Error)
	row("why", t.Why)
	row("checkpoint", string(t.Checkpoint))
	row("result", string(t.Result))
	row("source", t.Source)
	row("key", t.ConcurrencyKey)
	row("created", day(&t.CreatedAt))
	row("started", day(t.StartedAt))
	row("next run", day(t.NextRunAt))
	row("eta", day(t.Eta))
	row("ended", day(t.EndedAt))
	for _, l := range t.Log {
		fmt.Fprintln(&b, l)
	}
	return b.String()
}

// TaskEnd is a task that was followed to its end.
type TaskEnd struct{ *Task }

// Failed reports whether it ended in any way but well.
func (t TaskEnd) Failed() bool { return t.Status != "Succeeded" }

// Tasks is a page of tasks, newest first.
type Tasks struct {
	Items      []Task
	NextCursor string `json:",omitempty"`
}

func (l *Tasks) String() string {
	text := table("ID\tAPI\tSTATUS\tPROGRESS\tUNITS\tSLICES\tTRY\tCREATED\tSAYS", len(l.Items), func(i int) []any {
		t := &l.Items[i]
		return []any{t.Id, t.ApiEngineKey, t.Status, t.Percent(), t.Units(), t.Slice, t.Attempt, day(&t.CreatedAt), t.Word()}
	})
	if l.NextCursor != "" {
		text += "more with --cursor " + l.NextCursor + "\n"
	}
	return text
}

// TaskFilter says which tasks are listed; an empty field lets all through.
type TaskFilter struct {
	Status, API, Source, Key, Cursor string
	Limit                            int
}

// SubmitTask orders a task.
func (c *Client) SubmitTask(ctx context.Context, n NewTask) (*Task, error) {
	out := &Task{}
	return out, c.call(ctx, request{root: taskRoot, method: http.MethodPost, path: "/tasks", body: n}, out)
}

// Tasks lists the tasks that the client may see.
func (c *Client) Tasks(ctx context.Context, f TaskFilter) (*Tasks, error) {
	q := url.Values{}
	for name, v := range map[string]string{"status": f.Status, "api": f.API, "source": f.Source, "key": f.Key, "cursor": f.Cursor} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	out := &Tasks{}
	return out, c.call(ctx, request{root: taskRoot, method: http.MethodGet, path: "/tasks?" + q.Encode()}, out)
}

// Task returns a task with its log.
func (c *Client) Task(ctx context.Context, id string) (*Task, error) {
	out := &Task{}
	return out, c.call(ctx, request{root: taskRoot, method: http.MethodGet, path: taskPath(id)}, out)
}

func taskPath(id string) string { return "/tasks/" + url.PathEscape(id) }

// CancelTask ends a task; a slice that runs is ended and rolled back.
func (c *Client) CancelTask(ctx context.Context, id string) (*Task, error) {
	out := &Task{}
	return out, c.call(ctx, request{root: taskRoot, method: http.MethodPost, path: taskPath(id) + "/cancel"}, out)
}

// RetryTask makes a task that ended without success due again, behind what it has committed.
func (c *Client) RetryTask(ctx context.Context, id string) (*Task, error) {
	out := &Task{}
	return out, c.call(ctx, request{root: taskRoot, method: http.MethodPost, path: taskPath(id) + "/retry"}, out)
}

// Schedule is a definition's Schedule and how far it has come.
type Schedule struct {
	ApiEngineKey string
	Schedule     string
	NextRunAt    *time.Time
	LastTask     string     `json:",omitempty"`
	Missed       int64      // times that were not run
	MissedAt     *time.Time `json:",omitempty"`
	Reason       string     `json:",omitempty"`
}

// Schedules are those of a tenant.
type Schedules struct{ Items []Schedule }

func (l *Schedules) String() string {
	return table("API\tSCHEDULE\tNEXT\tLAST TASK\tMISSED\tLAST MISSED\tWHY", len(l.Items), func(i int) []any {
		s := l.Items[i]
		return []any{s.ApiEngineKey, s.Schedule, day(s.NextRunAt), cmp.Or(s.LastTask, "-"), s.Missed, day(s.MissedAt), s.Reason}
	})
}

// Schedules lists the tenant's schedules.
func (c *Client) Schedules(ctx context.Context) (*Schedules, error) {
	out := &Schedules{}
	return out, c.call(ctx, request{root: taskRoot, method: http.MethodGet, path: "/schedules"}, out)
}
