package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/app"
)

// Tasks from outside: HTTP with scopes, live events, commands.

// asked is one request with a token; header lines are "Name: value".
func (h *house) asked(token, method, target, body string, header ...string) answer {
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	h.handler.ServeHTTP(rec, req)
	return answerOf(rec.Result())
}

// token makes one over the admin API; more are further fields.
func (h *house) tokenWith(t *testing.T, name, more string) string {
	t.Helper()
	a := h.asked(adminToken, "POST", "/admin/api/v1/tokens", `{"Name":"`+name+`"`+more+`}`)
	if a.Status != 201 {
		t.Fatalf("token %s: %d %s", name, a.Status, a.Body)
	}
	return fmt.Sprint(a.JSON.Data.(map[string]any)["Token"])
}

// taskOf is the task of an answer.
func taskOf(t *testing.T, a answer, status int) map[string]any {
	t.Helper()
	got, ok := a.JSON.Data.(map[string]any)
	if a.Status != status || !ok {
		t.Fatalf("%d, want %d: %s", a.Status, status, a.Body)
	}
	return got
}

const submits = `,"Scopes":["tasks:submit"]`

func TestTasksOverHTTP(t *testing.T) {
	for _, p := range taskPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorker(t, p)
			files := importer()
			files["clerk.js"] = js("ApiRole: [clerk]", "return { Code: 1 };")
			files["nightly.js"] = js("StopHttp: true\nSchedule: TZ=Asia/Shanghai 30 2 * * *", "return { Code: 1 };")
			w.load(t, w.tenant, files)
			ann, ben := w.tokenWith(t, "ann", submits), w.tokenWith(t, "ben", submits)
			max := w.tokenWith(t, "max", `,"Scopes":["tasks:manage"]`)

			order := `{"ApiEngineKey":"IMPORT","Param":{"Rows":25,"_BackgroundTaskId":"mine"},"IdempotencyKey":"k"}`
			made := taskOf(t, w.asked(ann, "POST", "/api/v1/tasks", order), 201)
			if again := taskOf(t, w.asked(ann, "POST", "/api/v1/tasks", order), 200); again["Id"] != made["Id"] {
				t.Errorf("the same order is another task: %v", again)
			}
			if other := taskOf(t, w.asked(ben, "POST", "/api/v1/tasks", order), 201); other["Id"] == made["Id"] {
				t.Error("two callers share a task by their IdempotencyKey")
			}
			if a := w.asked(ann, "POST", "/api/v1/tasks", strings.Replace(order, "25", "26", 1)); a.kind() != "idempotency_mismatch" || a.Status != 422 {
				t.Errorf("another order under the key: %s", a.Body)
			}
			one := "/api/v1/tasks/" + fmt.Sprint(made["Id"])
			await(t, "the task to succeed, and its last lines to be kept", func() bool {
				got := taskOf(t, w.asked(ann, "GET", one, ""), 200)
				log, _ := got["Log"].([]any) // written behind the commit
				return got["Status"] == "Succeeded" && len(log) == 3
			})
			got := taskOf(t, w.asked(max, "GET", one, ""), 200)
			if got["ApiEngineKey"] != "import" || got["Slice"] != 3.0 || got["Progress"] != 100.0 || len(got["Log"].([]any)) != 3 || got["Source"] != "api" || got["EndedAt"] == nil {
				t.Errorf("at its end: %v", got)
			}
			if n := w.rows(t, "SELECT count(*) FROM items WHERE slice LIKE 'mine%'"); n != "0" {
				t.Error("Param has set the platform's own names")
			}

			for _, c := range []struct {
				token, method, target, body string
				status                      int
				says                        string
			}{
				{ben, "GET", one, "", 404, "there is no task"},
				{ben, "POST", one + "/cancel", "", 404, "there is no task"},
				{ben, "GET", one + "/events", "", 404, "there is no task"},
				{ann, "POST", one + "/cancel", "", 409, "version_conflict"},
				{ann, "POST", one + "/retry", "", 409, "version_conflict"},
				{max, "POST", "/api/v1/tasks", order, 403, "tasks:submit"},
				{w.tokenWith(t, "nobody", ""), "GET", "/api/v1/tasks", "", 403, "tasks:submit"},
				{"", "GET", "/api/v1/tasks", "", 401, "token"},
				{ann, "POST", "/api/v1/tasks", `{"ApiEngineKey":"clerk"}`, 403, "role"},
				{ann, "POST", "/api/v1/tasks", `{"ApiEngineKey":"none"}`, 404, "none"},
				{ann, "POST", "/api/v1/tasks", `{"ApiEngineKey":"import","Priority":9}`, 400, "Priority"},
				{ann, "POST", "/api/v1/tasks", `{"ApiEngineKey":"import","Delay":-1}`, 400, "Delay"},
				{ann, "POST", "/api/v1/tasks", `{"ApiEngineKey":"import","Trust":{}}`, 400, "Trust"},
				{adminToken, "POST", "/admin/api/v1/tokens", `{"Name":"x","Scopes":["tasks:all"]}`, 400, "tasks:manage"},
			} {
				if a := w.asked(c.token, c.method, c.target, c.body); a.Status != c.status || !strings.Contains(a.Body, c.says) {
					t.Errorf("%s %s %s: %d %s, want %d saying %q", c.method, c.target, c.body, a.Status, a.Body, c.status, c.says)
				}
			}

			later := taskOf(t, w.asked(ann, "POST", "/api/v1/tasks", `{"ApiEngineKey":"import","Param":{"Rows":1},"Delay":3600,"ConcurrencyKey":"c"}`), 201)
			two := "/api/v1/tasks/" + fmt.Sprint(later["Id"])
			if later["Status"] != "Pending" || !strings.Contains(fmt.Sprint(later["Why"]), "not before") {
				t.Errorf("a task that waits: %v", later)
			}
			w.listed(t, ann, "", later["Id"], made["Id"])
			w.listed(t, ann, "?status=succeeded", made["Id"])
			w.listed(t, max, "?key=c", later["Id"])
			w.listed(t, max, "?api=clerk&source=api")
			if a := w.asked(max, "GET", "/api/v1/tasks?limit=2", ""); len(taskOf(t, a, 200)["Items"].([]any)) != 2 {
				t.Errorf("a page: %s", a.Body)
			} else {
				w.listed(t, max, "?cursor="+fmt.Sprint(taskOf(t, a, 200)["NextCursor"]), made["Id"])
			}
			if c := taskOf(t, w.asked(ann, "POST", two+"/cancel", ""), 200); c["Status"] != "Canceled" {
				t.Errorf("canceled: %v", c)
			}
			taskOf(t, w.asked(ann, "POST", two+"/retry", ""), 200)
			await(t, "the retry to succeed", func() bool { return taskOf(t, w.asked(ann, "GET", two, ""), 200)["Status"] == "Succeeded" })
			a := w.asked(max, "GET", "/api/v1/schedules", "")
			if s := taskOf(t, a, 200)["Items"].([]any); len(s) != 1 || !strings.Contains(a.Body, `"ApiEngineKey":"nightly","Schedule":"TZ=Asia/Shanghai 30 2 * * *","NextRunAt":"`) {
				t.Errorf("schedules: %s", a.Body)
			}
		})
	}
}

// listed fails unless a list has these tasks, in this order.
func (w *worker) listed(t *testing.T, token, query string, want ...any) {
	t.Helper()
	a := w.asked(token, "GET", "/api/v1/tasks"+query, "")
	items, ok := taskOf(t, a, 200)["Items"].([]any)
	var ids []any
	for _, i := range items {
		ids = append(ids, i.(map[string]any)["Id"])
	}
	if !ok || !slices.Equal(ids, want) {
		t.Errorf("%s lists %v, want %v", query, ids, want)
	}
}

// A token of one tenant sees nothing of another's tasks, and one that is not for a tenant
// names it as everywhere.
func TestTasksOfTenants(t *testing.T) {
	w := newWorker(t, taskPairs[0])
	other := w.house.tenant(t)
	w.load(t, w.tenant, importer())
	w.load(t, other, importer())
	ann := w.tokenWith(t, "ann", submits)
	order := `{"ApiEngineKey":"import","Param":{"Rows":1}}`
	id := fmt.Sprint(taskOf(t, w.asked(adminToken, "POST", "/api/v1/tasks?OsClient="+other, order), 201)["Id"])
	for target, status := range map[string]int{"?OsClient=" + other: 200, "?OsClient=default": 404, "": 404, "?OsClient=a&osclient=b": 400} {
		if a := w.asked(adminToken, "GET", "/api/v1/tasks/"+id+target, ""); a.Status != status {
			t.Errorf("%s: %d %s", target, a.Status, a.Body)
		}
	}
	if a := w.asked(ann, "POST", "/api/v1/tasks", order, "OsClient: "+other); a.Status != 403 || a.JSON.Code != 1002 {
		t.Errorf("another tenant's token: %d %s", a.Status, a.Body)
	}
}

// watched is a task that stops in its middle until it is told to go on.
func watched(g *waitGate) fstest.MapFS {
	return fstest.MapFS{
		"watched.js": js("Timeout: 60", `var at = V8.Param._BackgroundTaskCheckpoint || 0;
			V8.Method.UpdateBackgroundTask({ Current: at, Total: 4, Msg: 'step ' + at, Log: 'line ' + at });
			if (at === 2) V8.Http.Get({ Url: '`+g.url+`', Timeout: 60 });
			if (V8.Param.Fail && at === 3) throw new Error('broken');
			return { Code: 1, Data: { BackgroundTask: { HasMore: at < 3, Checkpoint: at + 1, Current: at + 1, Total: 4 } } };`),
	}
}

// `task submit --follow` shows a task of real nodes until its end, and its exit code says
// how that was.
func TestFollowATask(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			n := mailNode(t, kind, "--task-backoff", "20ms", "--http-allow", strings.TrimPrefix(g.url, "http://"))
			n.pushFiles(t, watched(g))
			var out, errs syncBuffer
			done := make(chan int, 1)
			go func() {
				done <- app.Main([]string{"task", "submit", "watched", "--follow", "--url", n.URL, "--token", adminToken}, &out, &errs)
			}()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("followed:\n%s", errs.String())
				}
			})
			var id string
			await(t, "the task to reach its middle", func() bool {
				items := n.call(t, "GET", "/api/v1/tasks", nil).JSON.Data.(map[string]any)["Items"].([]any)
				if len(items) == 1 {
					id = fmt.Sprint(items[0].(map[string]any)["Id"])
				}
				return len(items) == 1 && strings.Contains(errs.String(), "Running 50.0% 2/4 step 2")
			})
			n.cli("task", "list", "--status", "Running").want(t, 0, id)
			n.cli("task", "show", id).want(t, 0, "step 2")
			g.open()
			r := ran{code: <-done, out: out.String(), err: errs.String()}.want(t, 0, "100.0% 4/4")
			for _, line := range []string{"task " + id, " line 0\n", " line 3\n", "Succeeded 100.0% 4/4 step 3\n"} {
				if !strings.Contains(r.err, line) {
					t.Errorf("the progress lacks %q:\n%s", line, r.err)
				}
			}
			bad := n.cli("task", "submit", "watched", "--param", `{"Fail":true}`, "--max-attempts", "1", "--follow", "--json").want(t, 1, `"Status": "Dead"`)
			var end struct{ Id, Error string }
			if err := json.Unmarshal([]byte(bad.out), &end); err != nil || end.Error != "broken" {
				t.Errorf("%v: %s", err, bad.out)
			}
			n.cli("task", "show", end.Id, "--follow").want(t, 1, "broken")
			n.cli("task", "retry", end.Id).want(t, 0, end.Id)
			later := n.cli("task", "submit", "watched", "--delay", "1h", "--json").want(t, 0, "Pending")
			_ = json.Unmarshal([]byte(later.out), &end)
			n.cli("task", "cancel", end.Id).want(t, 0, "Canceled")
			n.cli("task", "show", "nothing", "--follow").want(t, 1, "there is no task")
			n.cli("task", "submit", "watched", "--run-at", "tomorrow").want(t, 2, "--run-at")
			n.cli("task", "schedules").want(t, 0, "SCHEDULE")
		})
	}
}

// A stream of events does not keep a node from ending.
func TestEventsEndWithTheNode(t *testing.T) {
	n := mailNode(t, "sqlite")
	n.pushFiles(t, watched(newGate(t)))
	id := fmt.Sprint(n.call(t, "POST", "/api/v1/tasks", map[string]any{"ApiEngineKey": "watched", "Delay": 3600}).JSON.Data.(map[string]any)["Id"])
	req, _ := http.NewRequestWithContext(t.Context(), "GET", n.URL+"/api/v1/tasks/"+id+"/events", nil)
	req.Header.Set("Authorization", "Bearer "+adminToken)
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%v, %v", res, err)
	}
	began := time.Now()
	n.cmd.Process.Signal(syscall.SIGTERM)
	a := answerOf(res) // reads to the end
	if !strings.Contains(a.Body, "event: task\ndata: {\"Id\":\""+id) || strings.Contains(a.Body, "event: end") {
		t.Errorf("the stream was %s", a.Body)
	}
	<-n.done
	if took := time.Since(began); took > 20*time.Second || n.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the node ended after %v by %v", took, n.cmd.ProcessState)
	}
}

// plan --task shows what a slice would have.
func TestPlanOfATask(t *testing.T) {
	n := mailNode(t, "sqlite")
	n.push(t, map[string]any{"ApiEngineKey": "long", "Lock": true, "LockKey": "Id", "Timeout": 1200, "ApiV8Code": "return 1;"})
	n.push(t, map[string]any{"ApiEngineKey": "free", "Timeout": 3, "ApiV8Code": "return 1;"})
	plan := func(args ...string) string { return n.cli(append([]string{"plan"}, args...)...).want(t, 0, "").out }
	for text, wants := range map[string][]string{
		plan("long", "--param", `{"Id":"a"}`, "--task"): {"lock           default:Id:a", "lease          1m0s", "renewed every  20s", "longest hold   12h0m0s", "run deadline   20m0s"},
		plan("long", "--param", `{"Id":"a"}`):           {"lease          20m0s", "renewed        never", "longest hold   20m0s"},
		plan("free", "--task"):                          {"lock           none", "lease          3s", "renewed every  1s", "run deadline   3s"},
		plan("free"):                                    {"lock           none", "run deadline   3s"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	}
	n.cli("plan", "long", "--task").want(t, 1, "Id")
}
