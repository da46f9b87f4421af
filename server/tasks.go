package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"apiengine/engine"
	"apiengine/fault"
)

// Tasks takes orders for background tasks and shows what became of them.
type Tasks interface {
	// Submit keeps a task that runs as c; created is false when the IdempotencyKey gave one
	// back that was there. bad_request, not_found, forbidden, idempotency_mismatch.
	Submit(ctx context.Context, tenant string, c engine.Caller, o TaskOrder) (t Task, created bool, err error)
	// Get returns a task with the lines of its log that are younger than after, or not_found.
	Get(ctx context.Context, tenant, id string, after time.Time) (Task, error)
	// List returns tasks without their logs, newest first.
	List(ctx context.Context, tenant string, f TaskFilter) ([]Task, error)
	// Cancel ends a task, Retry makes one that has ended without success due again;
	// version_conflict when its state does not allow it.
	Cancel(ctx context.Context, tenant, id string) (Task, error)
	Retry(ctx context.Context, tenant, id string) (Task, error)
}

// Schedules shows the schedules of a tenant's definitions.
type Schedules interface {
	List(ctx context.Context, tenant string) ([]Schedule, error)
}

// TaskOrder is the body of POST /api/v1/tasks.
type TaskOrder struct {
	ApiEngineKey   string
	Param          json.RawMessage // an object; none: {}
	IdempotencyKey string          // the same key and order is the same task
	ConcurrencyKey string          // of the tasks of one key one runs at a time
	Delay          float64         // seconds before it may run, or
	RunAt          *time.Time      // not before
	Priority       int             // 1, urgent, to 4; 0: 2
	MaxAttempts    int             // of a slice; 0: by the settings
}

// TaskFilter says which tasks are listed; an empty field lets all through.
type TaskFilter struct {
	Status, API, Source, Key string
	Owner                    engine.Caller // without an ID: anybody's
	Before                   string        // the Id of the last one of the page before
	Max                      int
}

// Task is a task in an answer.
type Task struct {
	Id             string //nolint:revive // the spelling of the contract
	ApiEngineKey   string
	Status         string // one of taskStatuses
	Slice          int64
	Attempt        int
	MaxAttempts    int
	Current, Total int64
	Progress       *float64
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
	Why            string        `json:",omitempty"`
	Log            []TaskLine    `json:",omitempty"`
	Owner          engine.Caller `json:"-"` // whom it runs as; without an ID: nobody
}

// TaskLine is one line of a task's log. Its time is its name: no two of a task have the same.
type TaskLine struct {
	At   time.Time
	Text string
}

// Schedule is a definition's Schedule and how far it has come.
type Schedule struct {
	ApiEngineKey string
	Schedule     string
	NextRunAt    *time.Time
	LastTask     string     `json:",omitempty"`
	Missed       int64      // times that were not run
	MissedAt     *time.Time `json:",omitempty"` // the last of them
	Reason       string     `json:",omitempty"` // why
}

var taskStatuses = []string{"Pending", "Running", "Retrying", "Succeeded", "Failed", "Canceled", "Dead"}

// taskPrefix is where the tasks live.
const taskPrefix = "/api/v1"

func (s *Server) mountTasks(m chi.Router) {
	on := func(method, path string, do func(*taskCall) (answer, error)) {
		m.Method(method, taskPrefix+path, s.handle(func(x *exchange) reply { return x.task(do) }))
	}
	if s.cfg.Tasks != nil {
		on(http.MethodPost, "/tasks", (*taskCall).submit)
		on(http.MethodGet, "/tasks", (*taskCall).list)
		on(http.MethodGet, "/tasks/{id}", (*taskCall).show)
		on(http.MethodPost, "/tasks/{id}/cancel", (*taskCall).cancel)
		on(http.MethodPost, "/tasks/{id}/retry", (*taskCall).retry)
		m.Method(http.MethodGet, taskPrefix+"/tasks/{id}/events", s.handle((*exchange).taskEvents))
	}
	if s.cfg.Schedules != nil {
		on(http.MethodGet, "/schedules", (*taskCall).schedules)
	}
}

// taskCall is one request about tasks after it was let in.
type taskCall struct {
	adminCall
	query url.Values
}

func (x *exchange) task(do func(*taskCall) (answer, error)) reply {
	c, err := x.enterTasks()
	if err != nil {
		return x.fail(err)
	}
	a, err := do(c)
	if err != nil {
		return x.fail(err)
	}
	return x.success(a)
}

func (x *exchange) enterTasks() (*taskCall, error) {
	if x.s.draining.Load() {
		x.set("Connection", "close")
		return nil, refuse(fault.Draining, "the server is shutting down")
	}
	query, err := plainQuery(x.r.URL)
	if err != nil {
		return nil, err
	}
	id, tenant, err := x.admit("", query)
	switch {
	case err != nil:
		return nil, err
	case id.Anonymous():
		return nil, refuse(fault.Unauthenticated, "tasks need a token")
	}
	return &taskCall{adminCall{x: x, ctx: x.r.Context(), id: id, tenant: tenant}, query}, nil
}

// needs refuses a caller who has none of the scopes.
func (c *taskCall) needs(scopes ...string) error {
	if slices.ContainsFunc(scopes, c.id.can) {
		return nil
	}
	return refuse(fault.Forbidden, "this needs the scope %s", strings.Join(scopes, " or ")).with(map[string]any{"Scope": scopes[0]})
}

// sees says whether the caller sees all tasks of the tenant, or none but its own.
func (c *taskCall) sees() (all bool, err error) {
	if c.id.may(RoleViewer) || c.id.can(ScopeManage) {
		return true, nil
	}
	return false, c.needs(ScopeSubmit, ScopeManage)
}

// one returns the task of the path when the caller may see it; to change it asks for more.
func (c *taskCall) one(after time.Time, change bool) (Task, error) {
	all, err := c.sees()
	if err == nil && change {
		all, err = c.id.can(ScopeManage), c.needs(ScopeSubmit, ScopeManage)
	}
	if err != nil {
		return Task{}, err
	}
	id := c.param("id")
	none := refuse(fault.NotFound, "there is no task %q", id)
	if !saneID(id) {
		return Task{}, none
	}
	t, err := c.x.s.cfg.Tasks.Get(c.ctx, c.tenant, id, after)
	if err == nil && !all && !c.owns(t) {
		return Task{}, none
	}
	return t, err
}

func (c *taskCall) owns(t Task) bool { return t.Owner.ID == c.id.ID && t.Owner.Issuer == c.id.Issuer }

func (c *taskCall) submit() (answer, error) {
	if err := c.needs(ScopeSubmit); err != nil {
		return answer{}, err
	}
	var o TaskOrder
	if err := c.decode(&o); err != nil {
		return answer{}, err
	}
	if err := c.keyOf(&o); err != nil {
		return answer{}, err
	}
	t, created, err := c.x.s.cfg.Tasks.Submit(c.ctx, c.tenant, c.id.Caller, o)
	if created {
		return answer{status: http.StatusCreated, data: t}, err
	}
	return answer{data: t}, err
}

// keyOf takes the header for the field, which it is to an ordinary call.
func (c *taskCall) keyOf(o *TaskOrder) error {
	key, err := idempotencyKey(c.x.r.Header)
	if err != nil {
		return err
	}
	if key != "" && o.IdempotencyKey != "" && key != o.IdempotencyKey {
		return refuse(fault.BadRequest, "the header Idempotency-Key and the field IdempotencyKey name two keys").with(map[string]any{"Field": "IdempotencyKey"})
	}
	o.IdempotencyKey = cmp.Or(o.IdempotencyKey, key)
	return nil
}

func (c *taskCall) list() (answer, error) {
	all, err := c.sees()
	if err != nil {
		return answer{}, err
	}
	f, limit, err := taskFilter(c.query)
	if err != nil {
		return answer{}, err
	}
	if !all {
		f.Owner = c.id.Caller
	}
	found, err := c.x.s.cfg.Tasks.List(c.ctx, c.tenant, f)
	return page(found, limit, func(t Task) string { return t.Id }), err
}

// taskFilter reads the query of a list; a page has at most limit of what the filter finds.
func taskFilter(q url.Values) (f TaskFilter, limit int, err error) {
	f = TaskFilter{Status: q.Get("status"), API: q.Get("api"), Source: q.Get("source"), Key: q.Get("key"), Before: q.Get("cursor")}
	if i := slices.IndexFunc(taskStatuses, func(s string) bool { return strings.EqualFold(s, f.Status) }); i >= 0 {
		f.Status = taskStatuses[i]
	} else if f.Status != "" {
		return f, 0, refuse(fault.BadRequest, "status must be one of %s, not %q", strings.Join(taskStatuses, ", "), f.Status).with(map[string]any{"Field": "status"})
	}
	if f.Before != "" && uuid.Validate(f.Before) != nil {
		return f, 0, refuse(fault.BadRequest, "cursor must be the NextCursor of a page before").with(map[string]any{"Field": "cursor"})
	}
	limit, err = limitOf(q)
	f.Max = limit + 1
	return f, limit, err
}

func (c *taskCall) show() (answer, error) {
	after, err := c.after()
	if err != nil {
		return answer{}, err
	}
	t, err := c.one(after, false)
	return answer{data: t}, err
}

// after reads behind which line of the log the caller wants to go on: what an event source
// sends when it connects again, else ?after=.
func (c *taskCall) after() (time.Time, error) {
	text := c.x.r.Header.Get("Last-Event-Id")
	if text == "" {
		text = c.query.Get("after")
	}
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, refuse(fault.BadRequest, "after must be the time of a line of the log, like 2026-01-02T15:04:05.000001Z").with(map[string]any{"Field": "after"})
	}
	return at, nil
}

func (c *taskCall) cancel() (answer, error) { return c.change(c.x.s.cfg.Tasks.Cancel) }

func (c *taskCall) retry() (answer, error) { return c.change(c.x.s.cfg.Tasks.Retry) }

func (c *taskCall) change(do func(ctx context.Context, tenant, id string) (Task, error)) (answer, error) {
	t, err := c.one(time.Time{}, true)
	if err != nil {
		return answer{}, err
	}
	t, err = do(c.ctx, c.tenant, t.Id)
	return answer{data: t}, err
}

func (c *taskCall) schedules() (answer, error) {
	if !c.id.may(RoleViewer) {
		if err := c.needs(ScopeManage); err != nil {
			return answer{}, err
		}
	}
	list, err := c.x.s.cfg.Schedules.List(c.ctx, c.tenant)
	return answer{data: listed[Schedule]{Items: append([]Schedule{}, list...)}}, err
}
