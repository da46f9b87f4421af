package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/fault"
	"apiengine/internal/app"
	"apiengine/tasks"
)

// newTeam are nodes that share Redis and PostgreSQL.
func newTeam(t *testing.T, n int, change ...func(*app.Settings)) (team []*worker) {
	t.Helper()
	first := newWorker(t, backendPairs[3], change...)
	for range n - 1 {
		team = append(team, newWorker(t, backendPairs[3], append(change, func(s *app.Settings) {
			s.DatabaseURL, s.Prefix, s.Instance = first.app.Settings.DatabaseURL, first.app.Settings.Prefix, fmt.Sprint("node", len(team)+2)
			s.SecretKey = first.app.Settings.SecretKey
		})...))
	}
	return append([]*worker{first}, team...)
}

// waitGate is a server that slices wait for.
type waitGate struct {
	url  string
	came chan string // task ids
	open func()
}

func newGate(t *testing.T) *waitGate {
	opened := make(chan struct{})
	g := &waitGate{came: make(chan string, 100), open: sync.OnceFunc(func() { close(opened) })}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.came <- r.URL.Query().Get("id")
		select {
		case <-opened:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { g.open(); srv.Close() })
	g.url = srv.URL
	return g
}

// through lets a node's scripts reach the gate.
func (g *waitGate) through(s *app.Settings) {
	s.HTTPAllow = []string{g.host()}
}

func (g *waitGate) host() string { return strings.TrimPrefix(g.url, "http://") }

// files are an API that adds its row and then waits at the gate.
func (g *waitGate) files() fstest.MapFS {
	return fstest.MapFS{
		"schema/0001_seen.sql": {Data: []byte("-- +goose Up\nCREATE TABLE seen (id TEXT, n INTEGER);\n")},
		"wait.js": js(anonymous+"\nTimeout: 60", `V8.Db.FromSql('INSERT INTO seen (id, n) VALUES (@i, 1)').AddInParameter('@i', V8.Param._BackgroundTaskId).ExecuteNonQuery();
			V8.Method.UpdateBackgroundTask({ Current: 3, Total: 10, Log: 'waits' });
			V8.Http.Get({ Url: '`+g.url+`?id=' + V8.Param._BackgroundTaskId, Timeout: 60 }); return { Code: 1 };`),
	}
}

// reached waits until a slice of the task has come to the gate.
func (g *waitGate) reached(t *testing.T, id string) {
	t.Helper()
	select {
	case got := <-g.came:
		if got != id && id != "" {
			t.Fatalf("the task %s came, want %s", got, id)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no slice came to the gate")
	}
}

func TestCancelReachesTheSliceWhereverItRuns(t *testing.T) {
	for _, p := range taskPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			w := newWorker(t, p, g.through)
			other := w
			if p.postgres {
				other = newWorker(t, p, func(s *app.Settings) {
					s.DatabaseURL, s.Prefix, s.TaskWorkers = w.app.Settings.DatabaseURL, w.app.Settings.Prefix, 1
				})
				other.stop() // it takes no slice: they all run on w
			}
			w.load(t, w.tenant, g.files())
			id := w.order(t, tasks.Order{ApiEngineKey: "wait"})
			g.reached(t, id)
			await(t, "its progress to be told", func() bool { got := other.task(t, id); return got.Current == 3 && len(got.Log) == 1 })
			if got := other.task(t, id); got.Status != "Running" || *got.Progress != 30 || !strings.Contains(got.Why, "slice 1 runs") {
				t.Errorf("while it runs: %+v", got)
			}
			began := time.Now()
			if _, err := other.app.Tasks().Cancel(t.Context(), w.tenant, id); err != nil {
				t.Fatal(err)
			}
			got := w.until(t, id, "Canceled")
			t.Logf("canceled after %v", time.Since(began))
			if got.Slice != 0 || got.Error != "" || len(got.Log) != 1 {
				t.Errorf("%+v", got)
			}
			if n := w.rows(t, "SELECT count(*) FROM seen"); n != "0" {
				t.Errorf("a canceled slice left %s rows", n)
			}
			if _, err := w.app.Tasks().Cancel(t.Context(), w.tenant, id); err != nil && fault.Of(err) != fault.VersionConflict {
				t.Error(err)
			}
			future := time.Now().Add(time.Hour)
			id = w.order(t, tasks.Order{ApiEngineKey: "wait", RunAt: &future})
			if got := w.task(t, id); got.Status != "Pending" || !strings.HasPrefix(got.Why, "not before") {
				t.Errorf("before its time: %+v", got)
			}
			if got, err := other.app.Tasks().Cancel(t.Context(), w.tenant, id); err != nil || got.Status != "Canceled" {
				t.Errorf("before its time: %+v %v", got, err)
			}
		})
	}
}

// A node that ends gives its slices back: they cost no attempt, and another node goes on.
func TestAShutdownCostsNoAttempt(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	team := newTeam(t, 2, func(s *app.Settings) { s.Grace = 300 * time.Millisecond }, g.through)
	a, b := team[0], team[1]
	a.load(t, a.tenant, g.files())
	var ids []string
	for range 4 {
		ids = append(ids, a.order(t, tasks.Order{ApiEngineKey: "wait", MaxAttempts: 1}))
	}
	for range ids {
		g.reached(t, "")
	}
	a.stop()
	for _, id := range ids { // told of it by the queue, or by the watch
		awaitLong(t, time.Minute, "the other node to run it", func() bool { got := b.task(t, id); return got.Status == "Running" && got.Attempt == 1 })
	}
	g.open()
	for _, id := range ids {
		if got := b.until(t, id, "Succeeded"); got.Slice != 1 {
			t.Errorf("%+v", got)
		}
	}
	if n := b.rows(t, "SELECT count(*) FROM seen"); n != "4" {
		t.Errorf("%s rows, want one of each task", n)
	}
}

// Tasks of one ConcurrencyKey follow each other, on whatever node; others do not wait.
func TestOneOfAConcurrencyKeyAtATime(t *testing.T) {
	team := newTeam(t, 2)
	w := team[0]
	w.load(t, w.tenant, fstest.MapFS{
		"schema/0001_turns.sql": {Data: []byte("-- +goose Up\nCREATE TABLE turns (k TEXT, who TEXT, what TEXT, at BIGINT GENERATED ALWAYS AS IDENTITY);\n")},
		"turn.js": js(anonymous, `var P = V8.Param, at = P._BackgroundTaskCheckpoint || 0;
			V8.Db.FromSql('INSERT INTO turns (k, who, what) VALUES (@k, @w, @s)').AddInParameter('@k', P.K).AddInParameter('@w', P._BackgroundTaskId).AddInParameter('@s', 'slice ' + at).ExecuteNonQuery();
			return { Code: 1, Data: { BackgroundTask: { HasMore: at < 3, Checkpoint: at + 1 } } };`),
	})
	await(t, "the API to be live on the other node", func() bool {
		return team[1].do(w.tenant, "POST", "/admin/api/v1/definitions/turn/plan", `{"Param":{}}`).Status == 200
	})
	var all []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			key := fmt.Sprint("k", i%2)
			got, err := team[i%2].app.Tasks().Submit(t.Context(), w.tenant, anyone, tasks.Order{ApiEngineKey: "turn", ConcurrencyKey: key, Param: json.RawMessage(`{"K":"` + key + `"}`)})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, got.ID)
		})
	}
	wg.Wait()
	for _, id := range all {
		w.until(t, id, "Succeeded")
	}
	// In the order of their commits every task of a key has its four slices in a row.
	for _, key := range []string{"k0", "k1"} {
		n := w.rows(t, "SELECT count(*) FROM (SELECT who, lag(who) OVER (ORDER BY at) AS before FROM turns WHERE k = '"+key+"') x WHERE before IS DISTINCT FROM who")
		if n != "6" {
			t.Errorf("tasks of %s changed %s times, want 6", key, n)
		}
	}
	if n := w.rows(t, "SELECT count(*) FROM turns"); n != "48" {
		t.Errorf("%s slices", n)
	}
}

func TestOneIdempotencyKeyIsOneTask(t *testing.T) {
	for _, p := range taskPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorker(t, p)
			w.load(t, w.tenant, fstest.MapFS{
				"one.js":   js(anonymous, "return { Code: 1 };"),
				"two.js":   js(anonymous, "return { Code: 1 };"),
				"order.js": js(anonymous, "var o = V8.Task.Submit(V8.Param.Order); return { Code: V8.Param.Code, Data: o.Id };"),
			})
			ids := map[string]bool{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					got, err := w.app.Tasks().Submit(t.Context(), w.tenant, anyone, tasks.Order{ApiEngineKey: "one", IdempotencyKey: "k", Param: json.RawMessage(`{"a":1,"b":2}`)})
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					ids[got.ID] = true
				})
			}
			wg.Wait()
			if len(ids) != 1 {
				t.Errorf("%d tasks", len(ids))
			}
			ctx := t.Context()
			_, err := w.app.Tasks().Submit(ctx, w.tenant, anyone, tasks.Order{ApiEngineKey: "one", IdempotencyKey: "k", Param: json.RawMessage(`{"b":2, "a":1}`)})
			if err != nil {
				t.Errorf("the same order in other words: %v", err)
			}
			_, err = w.app.Tasks().Submit(ctx, w.tenant, anyone, tasks.Order{ApiEngineKey: "one", IdempotencyKey: "k", Param: json.RawMessage(`{"a":2}`)})
			if fault.Of(err) != fault.IdempotencyMismatch {
				t.Errorf("another order: %v", err)
			}
			// In a script the task is part of the run.
			order := func(code int, text string) answer {
				return w.do(w.tenant, "POST", "/apiengine/order", `{"Code":`+fmt.Sprint(code)+`,"Order":`+text+`}`)
			}
			undone := order(0, `{"ApiEngineKey":"two"}`)
			if _, err := w.app.Tasks().Get(ctx, w.tenant, fmt.Sprint(undone.JSON.Data), time.Time{}); fault.Of(err) != fault.NotFound {
				t.Errorf("a task of a run that was rolled back: %v", err)
			}
			kept := order(1, `{"ApiEngineKey":"two","IdempotencyKey":"s"}`)
			again := order(1, `{"ApiEngineKey":"two","IdempotencyKey":"s"}`)
			if kept.JSON.Data != again.JSON.Data {
				t.Errorf("%v and %v", kept.JSON.Data, again.JSON.Data)
			}
			w.until(t, fmt.Sprint(kept.JSON.Data), "Succeeded")
			for text, word := range map[string]string{`{"ApiEngineKey":"two","Trusted":true}`: "Trusted", `{}`: "ApiEngineKey", `{"ApiEngineKey":"nobody"}`: "nobody",
				`{"ApiEngineKey":"two","Delay":-1}`: "Delay", `{"ApiEngineKey":"two","Param":[1]}`: "Param", `{"ApiEngineKey":"two","Priority":9}`: "Priority"} {
				if a := order(1, text); a.JSON.Code == 1 || !strings.Contains(a.JSON.Msg, word) {
					t.Errorf("%s: %s", text, a.Body)
				}
			}
		})
	}
}

// What a process leaves, the next one finds: the order of a task that no node was told of, and a
// task in its middle.
func TestTasksOutliveTheirNode(t *testing.T) {
	for _, p := range taskPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			w := newWorker(t, p, g.through, func(s *app.Settings) { s.Grace = 200 * time.Millisecond })
			w.load(t, w.tenant, g.files())
			begun := w.order(t, tasks.Order{ApiEngineKey: "wait"})
			g.reached(t, begun)
			w.stop() // its slices are given back, and nobody runs any now
			waits := w.order(t, tasks.Order{ApiEngineKey: "wait"})
			if err := w.app.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.open()
			again := newWorker(t, p, func(s *app.Settings) { *s = w.app.Settings })
			for _, id := range []string{begun, waits} {
				if got := again.until(t, id, "Succeeded"); got.Slice != 1 || got.Attempt > 1 {
					t.Errorf("%+v", got)
				}
			}
			if n := again.rows(t, "SELECT count(*) FROM seen"); n != "2" {
				t.Errorf("%s rows", n)
			}
		})
	}
}
