package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/internal/app"
	"apiengine/store"
	"apiengine/tasks"
)

// worker is a house that serves, and so runs tasks.
type worker struct {
	*house
	tenant string
	stop   func() // SIGTERM's part: no more slices, then back
}

// taskPairs are the backends that tasks are tried on.
var taskPairs = []pair{backendPairs[0], backendPairs[3]}

func newWorker(t *testing.T, p pair, change ...func(*app.Settings)) *worker {
	t.Helper()
	w := &worker{house: newHouse(t, p, append([]func(*app.Settings){func(s *app.Settings) {
		s.TaskBackoff, s.Grace, s.LogLevel, s.Addr = 20*time.Millisecond, 10*time.Second, "warn", "127.0.0.1:0"
	}}, change...)...), tenant: "default"}
	w.run(t)
	return w
}

// run begins to work.
func (w *worker) run(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.app.Serve(ctx, io.Discard) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	t.Cleanup(w.stop)
}

var anyone = engine.Caller{}

func (w *worker) order(t *testing.T, o tasks.Order) string {
	t.Helper()
	got, err := w.app.Tasks().Submit(t.Context(), w.tenant, anyone, o)
	if err != nil {
		t.Fatal(err)
	}
	return got.ID
}

func (w *worker) task(t *testing.T, id string) tasks.Task {
	t.Helper()
	got, err := w.app.Tasks().Get(t.Context(), w.tenant, id, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// until waits for a task to have a status and returns it.
func (w *worker) until(t *testing.T, id, status string) (got tasks.Task) {
	t.Helper()
	awaitLong(t, 60*time.Second, "the task to be "+status, func() bool {
		got = w.task(t, id)
		if got.EndedAt != nil && got.Status != status {
			t.Fatalf("the task is %+v, want %s", got, status)
		}
		return got.Status == status
	})
	return got
}

// rows counts what a statement finds.
func (w *worker) rows(t *testing.T, sql string) string {
	t.Helper()
	a := w.do(w.tenant, "POST", "/admin/api/v1/sql", asJSON(map[string]any{"Sql": sql}))
	data, _ := a.JSON.Data.(map[string]any)
	rows, _ := data["Rows"].([]any)
	if len(rows) != 1 {
		t.Fatalf("%s: %s", sql, a.Body)
	}
	return fmt.Sprint(rows[0].([]any)[0])
}

const anonymous = "AllowAnonymous: true"

// importer writes ten rows a slice.
func importer() fstest.MapFS {
	return fstest.MapFS{
		"schema/0001_items.sql": {Data: []byte("-- +goose Up\nCREATE TABLE items (n INTEGER, slice TEXT);\n")},
		"import.js": js(anonymous+"\nTimeout: 20", `
			var P = V8.Param, at = P._BackgroundTaskCheckpoint ? P._BackgroundTaskCheckpoint.At : 0, to = Math.min(at + 10, P.Rows);
			V8.Method.UpdateBackgroundTask({ Current: at, Total: P.Rows, Log: 'from ' + at });
			for (var i = at; i < to; i++)
				V8.Db.FromSql('INSERT INTO items (n, slice) VALUES (@n, @s)').AddInParameter('@n', i).AddInParameter('@s', P._BackgroundTaskIdempotencyKey).ExecuteNonQuery();
			if (P.Broken === at && V8.Cache.Increment('broken') <= P.Times) return { Code: 0, Msg: 'broken at ' + at, Data: { BackgroundTask: { HasMore: true, Checkpoint: { At: to } } } };
			return { Code: 1, Data: { Said: [P._BackgroundTaskAttempt, P._BackgroundTaskFencingToken > 0, V8.InvokeType, V8.FencingToken],
				BackgroundTask: { HasMore: to < P.Rows, Checkpoint: { At: to }, Current: to, Total: P.Rows, Msg: to + ' rows' } } };`),
	}
}

func TestATaskGoesOnBySlices(t *testing.T) {
	for _, p := range taskPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorker(t, p)
			w.load(t, w.tenant, importer())
			id := w.order(t, tasks.Order{ApiEngineKey: "IMPORT", Param: json.RawMessage(`{"Rows":45}`)})
			got := w.until(t, id, "Succeeded")
			if got.Slice != 5 || got.Current != 45 || got.Total != 45 || got.Progress == nil || *got.Progress != 100 || got.Msg != "45 rows" || len(got.Log) != 5 {
				t.Errorf("at its end: %+v", got)
			}
			var result struct{ Said []any }
			if err := json.Unmarshal(got.Result, &result); err != nil || fmt.Sprint(result.Said) != "[1 true Server 0]" {
				t.Errorf("the script saw %v, %v", result.Said, err)
			}
			if n := w.rows(t, "SELECT count(*) FROM items"); n != "45" {
				t.Errorf("%s rows", n)
			}
			if n := w.rows(t, "SELECT count(DISTINCT slice) FROM items"); n != "5" {
				t.Errorf("%s slices", n)
			}
		})
	}
}

// A slice that fails leaves nothing, and is tried again at the same place.
func TestASliceThatFails(t *testing.T) {
	for _, p := range taskPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorker(t, p)
			w.load(t, w.tenant, importer())
			id := w.order(t, tasks.Order{ApiEngineKey: "import", Param: json.RawMessage(`{"Rows":30,"Broken":10,"Times":2}`)})
			if got := w.until(t, id, "Succeeded"); got.Slice != 3 || len(got.Log) != 5 {
				t.Errorf("after two failures: %+v", got)
			}
			if n := w.rows(t, "SELECT count(*) FROM items"); n != "30" {
				t.Errorf("%s rows", n)
			}
			id = w.order(t, tasks.Order{ApiEngineKey: "import", Param: json.RawMessage(`{"Rows":30,"Broken":20,"Times":100}`), MaxAttempts: 3})
			got := w.until(t, id, "Dead")
			if got.Slice != 2 || got.Attempt != 3 || got.Error != "broken at 20" || got.Current != 20 || *got.Progress >= 100 {
				t.Errorf("dead: %+v", got)
			}
			w.load(t, w.tenant, fstest.MapFS{"import.js": js(anonymous, "return { Code: 1, Data: V8.Param._BackgroundTaskCheckpoint.At };")})
			if _, err := w.app.Tasks().Retry(t.Context(), w.tenant, id); err != nil {
				t.Fatal(err)
			}
			if got = w.until(t, id, "Succeeded"); string(got.Result) != "20" || got.Slice != 3 {
				t.Errorf("tried again by hand: %+v", got)
			}
		})
	}
}

// What a slice says, and what becomes of its task.
func TestWhatASliceSays(t *testing.T) {
	w := newWorker(t, taskPairs[0])
	more := func(text string) string { return "return { Code: 1, Data: { BackgroundTask: " + text + " } };" }
	for name, c := range map[string]struct {
		code, status, error string
		check               func(tasks.Task) bool
	}{
		"nothing":       {"var nothing;", "Succeeded", "", nil},
		"text":          {"return 'done';", "Succeeded", "", func(g tasks.Task) bool { return string(g.Result) == `"done"` }},
		"a list":        {"return [1];", "Succeeded", "", func(g tasks.Task) bool { return string(g.Result) == `[1]` }},
		"no more":       {more("{ HasMore: false, Current: 5, Total: 10, Checkpoint: 7 }"), "Succeeded", "", func(g tasks.Task) bool { return g.Current == 5 && *g.Progress == 100 && string(g.Checkpoint) == "7" }},
		"no total":      {more("{ Current: 5 }"), "Succeeded", "", func(g tasks.Task) bool { return g.Total == 0 && *g.Progress == 100 }},
		"no way on":     {more("{ HasMore: true, Checkpoint: { a: 1, b: 2 } }"), "Failed", "3 times in a row", func(g tasks.Task) bool { return g.Slice == 3 }},
		"no checkpoint": {more("{ HasMore: true }"), "Failed", "3 times in a row", nil},
		"unknown":       {more("{ HasMore: true, CheckPoint: 1 }"), "Failed", "Data.BackgroundTask has no CheckPoint; did you mean Checkpoint?", func(g tasks.Task) bool { return g.Slice == 0 }},
		"no object":     {more("true"), "Failed", "Data.BackgroundTask must be an object", nil},
		"no bool":       {more("{ HasMore: 'yes' }"), "Failed", "HasMore must be true or false", nil},
		"negative":      {more("{ HasMore: true, NextDelaySeconds: -1 }"), "Failed", "NextDelaySeconds", nil},
		"half a unit":   {more("{ HasMore: true, Current: 1.5 }"), "Failed", "Current must be a whole number", nil},
		"ours":          {more("{ HasMore: true, ParamPatch: { _CurrentUser: 1 } }"), "Failed", "ParamPatch must not set _CurrentUser", nil},
		"patched": {"if (!V8.Param.Seen) " + more("{ HasMore: true, Checkpoint: 1, ParamPatch: { Seen: [1], Gone: null } }") +
			"return { Code: 1, Data: V8.Param };", "Succeeded", "", func(g tasks.Task) bool {
			var p map[string]any
			return json.Unmarshal(g.Result, &p) == nil && fmt.Sprint(p["Seen"], p["Gone"], p["Kept"]) == "[1] <nil> 1"
		}},
		"a delay": {"var at = V8.Param._BackgroundTaskCheckpoint; if (!at) " + more("{ HasMore: true, Checkpoint: Date.now(), NextDelaySeconds: 1.5 }") +
			"return { Code: 1, Data: Date.now() - at >= 1400 };", "Succeeded", "", func(g tasks.Task) bool { return string(g.Result) == "true" }},
		"thrown":        {"throw new Error('no luck');", "Dead", "no luck", func(g tasks.Task) bool { return g.Attempt == 2 }},
		"Code 0":        {"return { Code: 0, Msg: 'not today' };", "Dead", "not today", nil},
		"no Code":       {"return { Data: 1 };", "Dead", "an object without Code", nil},
		"too late":      {"while (true);", "Dead", "deadline", nil},
		"progress back": {"V8.Method.UpdateBackgroundTask({ Current: 9, Total: 10 }); V8.Method.UpdateBackgroundTask({ Current: 3, Msg: 'm' }); return { Code: 1 };", "Succeeded", "", func(g tasks.Task) bool { return g.Current == 9 && g.Msg == "m" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := strings.ReplaceAll(name, " ", "_")
			timeout := 60
			if name == "too late" {
				timeout = 1
			}
			w.load(t, w.tenant, fstest.MapFS{key + ".js": js(fmt.Sprint(anonymous, "\nTimeout: ", timeout), c.code)})
			id := w.order(t, tasks.Order{ApiEngineKey: key, Param: json.RawMessage(`{"Kept":1,"Gone":2}`), MaxAttempts: 2})
			got := w.until(t, id, c.status)
			if !strings.Contains(got.Error, c.error) || (c.error == "") != (got.Error == "") || c.check != nil && !c.check(got) {
				t.Errorf("%+v\nchecked false, or the error is not %q", got, c.error)
			}
		})
	}
}

// A task's lease is renewed; that of an ordinary call of the same API is not.
func TestOnlyATaskIsRenewed(t *testing.T) {
	for _, p := range taskPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorker(t, p)
			w.load(t, w.tenant, fstest.MapFS{"slow.js": js(anonymous+"\nLock: true\nTimeout: 6",
				`var began = V8.Lock.RemainingMs(), until = Date.now() + 4000; while (Date.now() < until); return { Code: 1, Data: [began, V8.Lock.RemainingMs(), V8.FencingToken > 0] };`)})
			left := func(data any) float64 {
				list, ok := data.([]any)
				if !ok || len(list) != 3 || list[2] != true {
					t.Fatalf("the script answered %v", data)
				}
				return list[1].(float64)
			}
			a := w.do(w.tenant, "POST", "/apiengine/slow", "{}")
			if ms := left(a.JSON.Data); ms > 2000 {
				t.Errorf("an ordinary call has %v ms left after 4 s of 6", ms)
			}
			got := w.until(t, w.order(t, tasks.Order{ApiEngineKey: "slow"}), "Succeeded")
			var data any
			if err := json.Unmarshal(got.Result, &data); err != nil {
				t.Fatal(err)
			}
			if ms := left(data); ms < 2000 {
				t.Errorf("a task has %v ms left after 4 s, renewed every two", ms)
			}
		})
	}
}

// A Timeout beyond 12 h is for tasks.
func TestATimeoutForTasksOnly(t *testing.T) {
	w := newWorker(t, taskPairs[0])
	w.load(t, w.tenant, fstest.MapFS{
		"night.js": js("StopHttp: true\nTimeout: 172800", "return { Code: 1, Data: V8.Limits.RemainingMs > 86400000 };"),
		"call.js":  js(anonymous, "return V8.ApiEngine.Run('night', {});"),
	})
	if a := w.do(w.tenant, "POST", "/apiengine/call", "{}"); a.kind() != "bad_request" || !strings.Contains(a.JSON.Msg, "as a task only") {
		t.Errorf("a nested call: %s", a.Body)
	}
	got, err := w.app.Tasks().Submit(t.Context(), w.tenant, engine.Caller{ID: "x"}, tasks.Order{ApiEngineKey: "night"})
	if err != nil {
		t.Fatal(err)
	}
	w.until(t, got.ID, "Failed") // x is nobody's token
	w.load(t, w.tenant, fstest.MapFS{"order.js": js(anonymous, "return { Code: 1, Data: V8.Task.Submit({ ApiEngineKey: 'night' }).Id };")})
	a := w.do(w.tenant, "POST", "/apiengine/order", "{}")
	if got := w.until(t, fmt.Sprint(a.JSON.Data), "Succeeded"); string(got.Result) != "true" || got.Source != "script:order" {
		t.Errorf("%+v", got)
	}
}

func TestWhoATaskRunsAs(t *testing.T) {
	w := newWorker(t, taskPairs[0])
	w.load(t, w.tenant, fstest.MapFS{
		"clerk.js": js("ApiRole: [clerk]", "var n = V8.Param._BackgroundTaskCheckpoint || 0; return { Code: 1, Data: { Me: V8.CurrentUser.Name, BackgroundTask: { HasMore: n < V8.Param.N, Checkpoint: n + 1, NextDelaySeconds: 0.2 } } };"),
	})
	token := func(roles ...string) engine.Caller {
		_, tok, err := w.app.Store.CreateToken(t.Context(), store.NewToken{Tenant: w.tenant, Name: "test", Roles: roles})
		if err != nil {
			t.Fatal(err)
		}
		return engine.Caller{ID: tok.ID, Name: tok.Name, Roles: tok.Roles}
	}
	ctx := t.Context()
	if _, err := w.app.Tasks().Submit(ctx, w.tenant, token("other"), tasks.Order{ApiEngineKey: "clerk"}); fault.Of(err) != fault.Forbidden {
		t.Errorf("ordered without the role: %v", err)
	}
	if _, err := w.app.Tasks().Submit(ctx, w.tenant, anyone, tasks.Order{ApiEngineKey: "clerk"}); fault.Of(err) != fault.Unauthenticated {
		t.Errorf("ordered by nobody: %v", err)
	}
	clerk := token("clerk")
	got, err := w.app.Tasks().Submit(ctx, w.tenant, clerk, tasks.Order{ApiEngineKey: "clerk", Param: json.RawMessage(`{"N":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got = w.until(t, got.ID, "Succeeded"); !strings.Contains(string(got.Result), `"Me":"test"`) {
		t.Errorf("%s", got.Result)
	}
	long, err := w.app.Tasks().Submit(ctx, w.tenant, clerk, tasks.Order{ApiEngineKey: "clerk", Param: json.RawMessage(`{"N":100000}`)})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "a slice", func() bool { return w.task(t, long.ID).Slice > 0 })
	if err := w.app.Store.RevokeToken(ctx, clerk.ID); err != nil {
		t.Fatal(err)
	}
	if got := w.until(t, long.ID, "Failed"); !strings.Contains(got.Error, "no longer valid") || got.Slice == 0 {
		t.Errorf("after the token was revoked: %+v", got)
	}
}
