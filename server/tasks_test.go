package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/server"
)

// fakeTasks keeps tasks in memory.
type fakeTasks struct {
	mu     sync.Mutex
	tasks  map[string]*server.Task // by tenant + " " + id
	orders []server.TaskOrder
	filter server.TaskFilter
	done   []string // what was canceled and retried
	looks  int
}

func newFakeTasks(list ...server.Task) *fakeTasks {
	f := &fakeTasks{tasks: map[string]*server.Task{}}
	for _, t := range list {
		f.tasks["default "+t.Id] = &t
	}
	return f
}

func (f *fakeTasks) Submit(_ context.Context, tenant string, c engine.Caller, o server.TaskOrder) (server.Task, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders = append(f.orders, o)
	id := fmt.Sprint("new", len(f.orders))
	if o.IdempotencyKey != "" {
		id = o.IdempotencyKey
	}
	if t := f.tasks[tenant+" "+id]; t != nil {
		return *t, false, nil
	}
	t := server.Task{Id: id, Status: "Pending", ApiEngineKey: o.ApiEngineKey, Owner: c}
	f.tasks[tenant+" "+id] = &t
	return t, true, nil
}

func (f *fakeTasks) Get(_ context.Context, tenant, id string, after time.Time) (server.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	t := f.tasks[tenant+" "+id]
	if t == nil {
		return server.Task{}, fault.New(fault.NotFound, "there is no task %q", id)
	}
	out := *t
	out.Log = nil
	for _, l := range t.Log {
		if l.At.After(after) {
			out.Log = append(out.Log, l)
		}
	}
	return out, nil
}

func (f *fakeTasks) List(_ context.Context, _ string, filter server.TaskFilter) ([]server.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filter = filter
	list := make([]server.Task, filter.Max)
	for i := range list {
		list[i].Id = fmt.Sprint("t", i)
	}
	return list, nil
}

func (f *fakeTasks) decide(tenant, verb, id string) (server.Task, error) {
	f.mu.Lock()
	f.done = append(f.done, verb+" "+id)
	f.mu.Unlock()
	return f.Get(context.Background(), tenant, id, time.Time{})
}

func (f *fakeTasks) Cancel(_ context.Context, tenant, id string) (server.Task, error) {
	return f.decide(tenant, "cancel", id)
}

func (f *fakeTasks) Retry(_ context.Context, tenant, id string) (server.Task, error) {
	return f.decide(tenant, "retry", id)
}

// change alters a task as a slice does.
func (f *fakeTasks) change(id string, do func(*server.Task)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f.tasks["default "+id])
}

type fakeSchedules []server.Schedule

func (f fakeSchedules) List(context.Context, string) ([]server.Schedule, error) { return f, nil }

// workers are the people of these tests.
var workers = fakeTokens{
	"submit":  {Scopes: []string{server.ScopeSubmit}, Caller: engine.Caller{ID: "ann"}},
	"foreign": {Scopes: []string{server.ScopeSubmit}, Caller: engine.Caller{ID: "ann", Issuer: "https://other"}},
	"manage":  {Scopes: []string{server.ScopeManage}, Caller: engine.Caller{ID: "max"}},
	"viewer":  identity("", "viewer"),
	"admin":   identity("", "admin"),
	"noadmin": {NoAdmin: true, Caller: engine.Caller{ID: "jo", Roles: []string{"admin"}}},
	"none":    identity("", "clerk"),
	"acme":    {Tenant: "acme", Scopes: []string{server.ScopeManage}, Caller: engine.Caller{ID: "ann"}},
}

func ofAnn(id string) server.Task {
	return server.Task{Id: id, Status: "Pending", Owner: engine.Caller{ID: "ann"}}
}

func taskServer(t *testing.T, f *fakeTasks, change ...func(*server.Config)) *server.Server {
	cfg := server.Config{Tokens: workers, Tasks: f, Schedules: fakeSchedules{{ApiEngineKey: "nightly"}}}
	for _, c := range change {
		c(&cfg)
	}
	return newServer(t, cfg)
}

// Who may do what with a task of ann's, and one of nobody's.
func TestRightsOnTasks(t *testing.T) {
	nobodys := server.Task{Id: "n", Status: "Dead"}
	for _, c := range []struct {
		what string
		want map[string]int // status by token
	}{
		{"POST /api/v1/tasks", map[string]int{"submit": 201, "foreign": 201, "manage": 403, "viewer": 403, "admin": 201, "noadmin": 403, "none": 403, "": 401, "wrong": 401}},
		{"GET /api/v1/tasks", map[string]int{"submit": 200, "foreign": 200, "manage": 200, "viewer": 200, "admin": 200, "noadmin": 403, "none": 403, "": 401}},
		{"GET /api/v1/tasks/a", map[string]int{"submit": 200, "foreign": 404, "manage": 200, "viewer": 200, "admin": 200, "noadmin": 403, "none": 403, "": 401, "acme": 404}},
		{"GET /api/v1/tasks/n", map[string]int{"submit": 404, "foreign": 404, "manage": 200, "viewer": 200, "admin": 200}},
		{"GET /api/v1/tasks/n/events", map[string]int{"submit": 404, "foreign": 404, "none": 403, "": 401, "acme": 404}},
		{"POST /api/v1/tasks/a/cancel", map[string]int{"submit": 200, "foreign": 404, "manage": 200, "viewer": 403, "admin": 200, "noadmin": 403, "none": 403, "": 401, "acme": 404}},
		{"POST /api/v1/tasks/a/retry", map[string]int{"submit": 200, "foreign": 404, "manage": 200, "viewer": 403, "admin": 200, "noadmin": 403, "none": 403, "": 401, "acme": 404}},
		{"POST /api/v1/tasks/n/retry", map[string]int{"submit": 404, "manage": 200}},
		{"GET /api/v1/schedules", map[string]int{"submit": 403, "manage": 200, "viewer": 200, "admin": 200, "none": 403, "": 401}},
		{"GET /api/v1/tasks/a?OsClient=other", map[string]int{"acme": 403, "admin": 404}},
		{"DELETE /api/v1/tasks/a", map[string]int{"admin": 405}},
		{"GET /api/v1/tasks/a%20b", map[string]int{"admin": 404}},
	} {
		for token, status := range c.want {
			t.Run(c.what+" by "+token, func(t *testing.T) {
				f := newFakeTasks(ofAnn("a"), nobodys)
				method, target, _ := strings.Cut(c.what, " ")
				a := ask{method: method, target: target, token: token}
				if a.target == "/api/v1/tasks" && method == "POST" {
					a.body, a.header = `{"ApiEngineKey":"k"}`, []string{"Content-Type: application/json"}
				}
				got := do(t, taskServer(t, f).Handler(), a)
				if got.status != status {
					t.Errorf("%d, want %d: %s", got.status, status, got.body)
				}
				if status == 403 && got.kind(t) == "forbidden" && token != "acme" && !strings.Contains(got.envelope(t).Msg, "the scope tasks:") {
					t.Errorf("it does not name the scope: %s", got.body)
				}
				if status != 200 && len(f.done)+len(f.orders) > 0 && status != 201 {
					t.Errorf("refused, but %v %v", f.done, f.orders)
				}
			})
		}
	}
}

func TestOrderOfATask(t *testing.T) {
	f := newFakeTasks()
	h := taskServer(t, f).Handler()
	post := func(body string, header ...string) got {
		if len(header) == 0 {
			header = []string{"Content-Type: application/json"}
		}
		return do(t, h, ask{method: "POST", target: "/api/v1/tasks", body: body, token: "submit", header: header})
	}
	whole := `{"ApiEngineKey":"k","Param":{"a":1},"IdempotencyKey":"i","ConcurrencyKey":"c","MaxAttempts":3,"RunAt":"2030-01-02T03:04:05Z","Delay":1.5,"Priority":1}`
	for _, status := range []int{201, 200} {
		got := post(whole)
		var task server.Task
		if err := json.Unmarshal(got.envelope(t).Data, &task); err != nil || got.status != status || task.Id != "i" || task.Status != "Pending" {
			t.Fatalf("%v: %d, want %d: %s", err, got.status, status, got.body)
		}
	}
	o := f.orders[0]
	if o.ApiEngineKey != "k" || string(o.Param) != `{"a":1}` || o.ConcurrencyKey != "c" || o.MaxAttempts != 3 || o.RunAt.Year() != 2030 || o.Delay != 1.5 || o.Priority != 1 {
		t.Errorf("%+v", o)
	}
	for body, name := range map[string]string{
		`{"ApiEngineKey":"k","Lease":60}`:                  "Lease",
		`{"apienginekey":"k"}`:                             "apienginekey",
		`{"ApiEngineKey":"k","ApiEngineKey":"l"}`:          "duplicate",
		`{"ApiEngineKey":"k","Priority":"high"}`:           "Priority",
		`{"ApiEngineKey":"k","RunAt":"tomorrow"}`:          "RunAt",
		`{"ApiEngineKey":"k","_BackgroundTaskId":"x"}`:     "_BackgroundTaskId",
		`{"ApiEngineKey":["k"]}`:                           "ApiEngineKey",
		`[{"ApiEngineKey":"k"}]`:                           "array",
		``:                                                 "body",
		`{"ApiEngineKey":"k","Caller":{"ID":"somebody"} }`: "Caller",
	} {
		if got := post(body); got.status != 400 || !strings.Contains(got.body, name) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	for _, ctype := range []string{"Content-Type: text/plain", "X-None: 1"} {
		if got := post(whole, ctype); got.status != 400 || !strings.Contains(got.body, "application/json") {
			t.Errorf("%s: %d %s", ctype, got.status, got.body)
		}
	}
	if len(f.orders) != 2 {
		t.Errorf("%d orders came through", len(f.orders))
	}
}

func TestListOfTasks(t *testing.T) {
	f := newFakeTasks()
	h := taskServer(t, f).Handler()
	list := func(token, query string) got { return do(t, h, ask{target: "/api/v1/tasks" + query, token: token}) }
	got := list("manage", "?status=dead&api=K&key=c&source=api&limit=2&cursor=01a22a25-4aca-707d-912e-8c2a482df3f8")
	var data struct {
		Items      []server.Task
		NextCursor string
	}
	if err := json.Unmarshal(got.envelope(t).Data, &data); err != nil || len(data.Items) != 2 || data.NextCursor != "t1" {
		t.Errorf("%v: %s", err, got.body)
	}
	if x := f.filter; x.Status != "Dead" || x.API != "K" || x.Key != "c" || x.Source != "api" || x.Before != "01a22a25-4aca-707d-912e-8c2a482df3f8" || x.Owner.ID != "" {
		t.Errorf("%+v", x)
	}
	if list("foreign", ""); f.filter.Owner.ID != "ann" || f.filter.Owner.Issuer != "https://other" {
		t.Errorf("somebody without tasks:manage is shown the tasks of %+v", f.filter.Owner)
	}
	for query, field := range map[string]string{"?status=done": "status", "?limit=0": "limit", "?limit=x": "limit", "?cursor=a+b": "cursor", "?cursor=zzz": "cursor", "?key=%00": "key", "?ke%00y=1": "key"} {
		if got := list("manage", query); got.status != 400 || got.envelope(t).DataAppend.Error["Field"] != field {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	line := server.TaskLine{At: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Text: "one"}
	f.tasks["default a"] = &server.Task{Id: "a", Log: []server.TaskLine{line, {At: line.At.Add(time.Microsecond), Text: "two"}}}
	if got := do(t, h, ask{target: "/api/v1/tasks/a?after=2026-01-02T03:04:05.000006Z", token: "admin"}); strings.Contains(got.body, "one") || !strings.Contains(got.body, "two") {
		t.Errorf("the log behind a line: %s", got.body)
	}
	if got := do(t, h, ask{target: "/api/v1/tasks/a?after=1", token: "admin"}); got.status != 400 {
		t.Errorf("after=1: %d", got.status)
	}
}

func TestNoTasksWhileDraining(t *testing.T) {
	s := taskServer(t, newFakeTasks(ofAnn("a")))
	s.Drain()
	s.Drain()
	for _, target := range []string{"/api/v1/tasks", "/api/v1/tasks/a/events"} {
		if got := do(t, s.Handler(), ask{target: target, token: "admin"}); got.status != http.StatusServiceUnavailable || got.kind(t) != "draining" {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
}

// The header of an ordinary call is the field of an order; a time that is none is told what
// a time looks like.
func TestTheKeyOfAnOrder(t *testing.T) {
	for _, c := range []struct {
		header, body string
		status       int
		key, has     string
	}{
		{"k1", `{"ApiEngineKey":"k"}`, 201, "k1", ""},
		{"k1", `{"ApiEngineKey":"k","IdempotencyKey":"k1"}`, 201, "k1", ""},
		{"k1", `{"ApiEngineKey":"k","IdempotencyKey":"k2"}`, 400, "", "two keys"},
		{"\t", `{"ApiEngineKey":"k"}`, 400, "", "Idempotency-Key"},
		{"", `{"ApiEngineKey":"k","RunAt":"tomorrow"}`, 400, "", "2026-01-02T15:04:05Z"},
	} {
		f := newFakeTasks()
		head := []string{"Content-Type: application/json"}
		if c.header != "" {
			head = append(head, "Idempotency-Key: "+c.header)
		}
		got := do(t, taskServer(t, f).Handler(), ask{method: "POST", target: "/api/v1/tasks", token: "submit", body: c.body, header: head})
		if got.status != c.status || !strings.Contains(got.body, c.has) || c.status == 201 && f.orders[0].IdempotencyKey != c.key {
			t.Errorf("%+v: %d %s %+v", c, got.status, got.body, f.orders)
		}
	}
}
