package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/app"
)

// Nothing that a client, a token or a script can say makes a call a trusted one.

// slowPoint answers each request after 5 s, which is the time that leases are compared over.
func slowPoint(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// probe tells what it sees of trust: the platform's own parameters, how much of its lease of
// 12 s is left after more than 5 s (a trusted one is renewed after 4 s, so it has more than
// what is left of 12 s), and whether it is a task for the platform.
func probe(url string) fstest.MapFS {
	code := `var seen = Object.keys(V8.Param).filter(function (k) { return /^_(background|trusted|currentuser|invoketype)/i.test(k); });
		var began = Date.now(); V8.Http.Get({ Url: '` + url + `', Timeout: 11 });
		return { Code: 1, Data: { Seen: seen, Left: V8.Lock.RemainingMs(), Run: V8.Limits.RemainingMs, Waited: Date.now() - began,
			Task: V8.Method.UpdateBackgroundTask({ Current: 1 }), Type: V8.InvokeType, Inherited: typeof V8.Param._BackgroundTaskId } };`
	nested := func(call string) *fstest.MapFile {
		return js("AllowAnonymous: true", "var P = Object.assign({}, V8.Param, { _BackgroundTaskId: 'x', _TrustedServerInvocation: true, _backgroundtaskcheckpoint: 1 });\n"+call)
	}
	return fstest.MapFS{
		"probe.js":    js("AllowAnonymous: true\nLock: true\nLockKey: Id\nTimeout: 12", code), // an address cannot hold {_names}
		"nested.js":   nested("return V8.ApiEngine.Run('probe', P);"),
		"nested3.js":  nested("return V8.ApiEngine.Run('probe', P, V8.DbTrans);"),
		"nestedV8.js": nested("V8.Param._BackgroundTaskId = 'x'; try { V8.InvokeType = 'Server'; V8.Param.__proto__ = { _BackgroundTaskId: 'x' }; } catch (e) {} return V8.ApiEngine.Run('probe', V8.Param);"),
	}
}

// claims are names that say a call is trusted, in many spellings.
func claims() map[string]any {
	out := map[string]any{}
	for _, name := range []string{"_TrustedServerInvocation", "_BackgroundTaskId", "_BackgroundTaskCheckpoint", "_BackgroundTaskIdempotencyKey", "_BackgroundTaskFencingToken",
		"_BackgroundTaskAttempt", "_BackgroundTaskLease", "_BackgroundTask", "_CurrentUser", "_InvokeType"} {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			out[spelled] = "x"
		}
	}
	for _, name := range []string{"Origin", "Trust", "trust", "Trusted", "Lease", "Renew", "Plan", "Caller", "Author", "Record", "BackgroundTask", "V8", "call"} {
		out[name] = map[string]any{"Trusted": true, "Origin": "task", "_BackgroundTaskId": "x", "Lease": 43200}
	}
	return out
}

// claimHeaders say it in headers.
func claimHeaders() []string {
	var out []string
	for _, name := range []string{"X-Background-Task", "X-Background-Task-Id", "X-BackgroundTaskId", "X-Trusted", "X-Trusted-Server-Invocation", "_TrustedServerInvocation",
		"_BackgroundTaskId", "X-Apiengine-Trusted", "X-Origin", "Origin", "X-Invoke-Type", "V8-InvokeType", "X-Lease", "X-Fencing-Token", "X-Execution-Id", "X-Outbox-Attempt"} {
		out = append(out, name+": task")
	}
	return out
}

// attempt is one way to try it. id names the lock, so that attempts do not wait for each other.
type attempt struct {
	name string
	do   func(w *worker, id string) answer
}

// attempts are every door and every place of a request.
func attempts() []attempt {
	body := func(id string, more ...string) string {
		all := claims()
		all["Id"] = id
		for i := 0; i+1 < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return asJSON(all)
	}
	query := func(id string) string {
		out := "Id=" + id
		for name := range claims() {
			out += "&" + name + "=x"
		}
		return out
	}
	post := func(path string) func(*worker, string) answer {
		return func(w *worker, id string) answer { return w.asked(adminToken, "POST", path, body(id)) }
	}
	list := []attempt{
		{"the JSON body", post("/apiengine/probe")},
		{"escaped names", func(w *worker, id string) answer {
			return w.asked("", "POST", "/apiengine/probe", `{"Id":"`+id+`","\u005fBackgroundTaskId":"x","\u005f\u0054rustedServerInvocation":true,"__proto__":{"_BackgroundTaskId":"x"}}`)
		}},
		{"the query", func(w *worker, id string) answer { return w.asked("", "GET", "/apiengine/probe?"+query(id), "") }},
		{"a form", func(w *worker, id string) answer {
			return w.asked("", "POST", "/apiengine/probe", query(id), "Content-Type: application/x-www-form-urlencoded")
		}},
		{"a multipart form", func(w *worker, id string) answer {
			var b bytes.Buffer
			m := multipart.NewWriter(&b)
			for name := range claims() {
				m.WriteField(name, "x")
			}
			m.WriteField("Id", id)
			m.Close()
			return w.asked("", "POST", "/apiengine/probe", b.String(), "Content-Type: "+m.FormDataContentType())
		}},
		{"XML", func(w *worker, id string) answer {
			return w.asked("", "POST", "/apiengine/probe", "<a><Id>"+id+"</Id><_BackgroundTaskId>x</_BackgroundTaskId><_TrustedServerInvocation>1</_TrustedServerInvocation></a>", "Content-Type: application/xml")
		}},
		{"all headers", func(w *worker, id string) answer {
			return w.asked(adminToken, "POST", "/apiengine/probe", body(id), claimHeaders()...)
		}},
		{"the other address", func(w *worker, id string) answer {
			return w.asked(adminToken, "POST", "/api/ApiEngine/Run", body(id, "ApiEngineKey", "probe"), claimHeaders()...)
		}},
		{"an Idempotency-Key like a slice's", func(w *worker, id string) answer {
			return w.asked(adminToken, "POST", "/apiengine/probe", body(id), "Idempotency-Key: "+id+":1")
		}},
		{"an administrator's test run", func(w *worker, id string) answer {
			a := w.asked(adminToken, "POST", "/admin/api/v1/definitions/probe/run", `{"Param":`+body(id)+`}`)
			data, _ := a.JSON.Data.(map[string]any)
			inner, _ := data["Result"].(map[string]any)
			a.JSON.Data = inner["Data"]
			return a
		}},
		{"a nested call", post("/apiengine/nested")},
		{"a nested call with a transaction", post("/apiengine/nested3")},
		{"a nested call of a changed V8", post("/apiengine/nestedV8")},
	}
	return list
}

// saw reads what the probe answered.
type saw struct {
	Seen              []string
	Left, Run, Waited float64
	Task              bool
	Type, Inherited   string
}

func sawOf(t *testing.T, data any) (s saw) {
	t.Helper()
	if err := json.Unmarshal([]byte(asJSON(data)), &s); err != nil || s.Waited < 5000 {
		t.Fatalf("%v: the probe answered %v", err, data)
	}
	return s
}

func TestNobodyCanClaimTrust(t *testing.T) {
	for _, p := range taskPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			point := slowPoint(t)
			w := newWorker(t, p, func(s *app.Settings) { s.HTTPAllow = []string{strings.TrimPrefix(point.URL, "http://")} })
			w.load(t, w.tenant, probe(point.URL))
			roles := w.tokenWith(t, "roles", `,"Roles":["task","trusted","server","system","Server"],"Scopes":["tasks:submit","tasks:manage"]`)
			list := append(attempts(), attempt{"a token's roles and scopes", func(w *worker, id string) answer {
				return w.asked(roles, "POST", "/apiengine/probe", `{"Id":"`+id+`"}`)
			}})
			answers := make([]answer, len(list))
			var all sync.WaitGroup
			four := make(chan struct{}, 4) // at a time: each must come through within its Timeout
			for i, a := range list {
				all.Go(func() {
					four <- struct{}{}
					defer func() { <-four }()
					for try := range 5 { // a machine that is too slow to tell is asked again
						if answers[i] = a.do(w, fmt.Sprint("a", i, "-", try)); answers[i].JSON.Data != nil {
							break
						}
					}
				})
			}
			all.Wait()
			for i, a := range list {
				if answers[i].JSON.Data == nil {
					t.Errorf("%s: %d %s", a.name, answers[i].Status, answers[i].Body)
					continue
				}
				s := sawOf(t, answers[i].JSON.Data)
				if s.Left > 12000-s.Waited || s.Run > 12000-s.Waited || s.Task || len(s.Seen) > 0 || s.Inherited != "undefined" && !strings.Contains(a.name, "changed V8") {
					t.Errorf("%s made it look trusted: %+v", a.name, s)
				}
			}
			w.realTask(t)
			w.noOrderIsTrustedMore(t)
		})
	}
}

// realTask shows that the probe can tell: the platform's own slice is renewed, and sees the
// platform's own values whatever its Param says.
func (w *worker) realTask(t *testing.T) {
	t.Helper()
	param := claims()
	param["Id"] = "task"
	got := taskOf(t, w.asked(adminToken, "POST", "/api/v1/tasks", asJSON(map[string]any{"ApiEngineKey": "probe", "Param": param})), 201)
	end := w.until(t, fmt.Sprint(got["Id"]), "Succeeded")
	s := sawOf(t, end.Result)
	if s.Left <= 12000-s.Waited || !s.Task || s.Type != "Server" {
		t.Errorf("a slice of a task: %+v", s)
	}
	if len(s.Seen) != 5 { // each name once, in the platform's own spelling
		t.Errorf("a slice sees %v", s.Seen)
	}
}

// noOrderIsTrustedMore: the order of a task has no field that says more than what to run.
func (w *worker) noOrderIsTrustedMore(t *testing.T) {
	t.Helper()
	w.load(t, w.tenant, fstest.MapFS{"order.js": js("AllowAnonymous: true", "return { Code: 1, Data: V8.Task.Submit(V8.Param.Order) };")})
	for _, name := range []string{"Origin", "Trust", "Lease", "Caller", "Principal", "Source", "Author", "Tenant", "Timeout", "Fence", "_TrustedServerInvocation", "_BackgroundTaskId", "param", "apienginekey"} {
		order := `{"ApiEngineKey":"probe","` + name + `":{}}`
		for door, a := range map[string]answer{
			"over HTTP":   w.asked(adminToken, "POST", "/api/v1/tasks", order),
			"by a script": w.asked(adminToken, "POST", "/apiengine/order", `{"Order":`+order+`}`),
		} {
			if a.Status == 200 || a.Status == 201 || !strings.Contains(a.JSON.Msg, name) {
				t.Errorf("an order with %s %s: %d %s", name, door, a.Status, a.Body)
			}
		}
	}
	if list := w.asked(adminToken, "GET", "/api/v1/tasks?api=probe", ""); len(taskOf(t, list, 200)["Items"].([]any)) != 1 {
		t.Errorf("a refused order made a task: %s", list.Body)
	}
}

// An ordinary call ends at its Timeout whatever it says; its lease is over then.
func TestAClaimDoesNotMakeARunLonger(t *testing.T) {
	w := newWorker(t, taskPairs[0])
	w.load(t, w.tenant, fstest.MapFS{"endless.js": js("AllowAnonymous: true\nLock: true\nLockKey: Id\nTimeout: 1", "while (true) {}")})
	all := claims()
	all["Id"] = "a"
	a := w.asked(adminToken, "POST", "/apiengine/endless", asJSON(all), claimHeaders()...)
	if a.kind() != "timeout" && a.kind() != "lease_lost" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if locks := w.asked(adminToken, "GET", "/admin/api/v1/locks", ""); strings.Contains(locks.Body, "Id:a") {
		t.Errorf("its lock is still held: %s", locks.Body)
	}
}

// Only package tasks makes a trusted call, and nobody else so much as names one.
func TestOnlyTasksMakesTrust(t *testing.T) {
	uses := map[string]int{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Trusted" || s.Sel.Name == "Trust") {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "engine" {
					uses[dir]++
				}
			}
			// Inside engine: a composite or an assignment that sets the field itself.
			if s, ok := n.(*ast.AssignStmt); ok && dir == "../engine" {
				for _, l := range s.Lhs {
					if sel, ok := l.(*ast.SelectorExpr); ok && sel.Sel.Name == "trust" && !strings.HasSuffix(path, "_test.go") {
						uses[path]++
					}
				}
			}
			if kv, ok := n.(*ast.KeyValueExpr); ok && dir == "../engine" {
				if k, ok := kv.Key.(*ast.Ident); ok && k.Name == "trust" && !strings.HasSuffix(path, "_test.go") {
					uses[path]++
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for where := range uses {
		if where != "../tasks" && where != "../engine/trusted.go" {
			t.Errorf("%s makes a call trusted, or names engine.Trust", where)
		}
	}
	if uses["../tasks"] == 0 || uses["../engine/trusted.go"] == 0 {
		t.Errorf("the walk has found %v: it looks in the wrong place", uses)
	}
}
