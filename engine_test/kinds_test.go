package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"apiengine/internal/app"
	"apiengine/internal/testserver"
)

// Every Kind of contract.md section 4.3 that can occur so far, through HTTP: its status,
// its Code, and something of its message.

func js(header, code string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("/*---\n" + header + "\n---*/\n" + code)}
}

func TestKinds(t *testing.T) {
	h := newHouse(t, pair{}, func(s *app.Settings) { s.MaxBody = 1000 })
	tenant := h.tenant(t)
	h.load(t, tenant, fstest.MapFS{
		"ok.js":       js("AllowAnonymous: true", "return { Code: 1 };"),
		"closed.js":   js("ApiRole: [clerk]", "return { Code: 1 };"),
		"off.js":      js("IsEnable: false", "return { Code: 1 };"),
		"inside.js":   js("StopHttp: true", "return { Code: 1 };"),
		"post.js":     js("Methods: [POST, PUT]", "return { Code: 1 };"),
		"order.js":    js("Lock: true\nLockKey: Order.Id", "return { Code: 1 };"),
		"rated.js":    js("RateLimit: 1/h", "return { Code: 1 };"),
		"throws.js":   js("Category: x", "var a = 1;\nthrow new Error('no luck');"),
		"cycle.js":    js("Category: x", "var a = {}; a.a = a; return a;"),
		"big.js":      js("Category: x", "var s = 'x'.repeat(1000000); return [s, s, s, s, s, s, s, s, s, s];"),
		"deep.js":     js("Category: x", "function f() { return f() + 1; } try { f(); } catch (e) {} return { Code: 1 };"),
		"recurse.js":  js("Category: x", "return V8.ApiEngine.Run('recurse', {});"),
		"loop.js":     js("Timeout: 1", "while (true) { try { while (true) {} } catch (e) {} }"),
		"own.js":      js("Transaction: own", "return { Code: 1, Data: V8.Db.FromSql('SELECT 1').ToScalar() };"),
		"callsown.js": js("Category: x", "V8.Db.FromSql('SELECT 1').ToScalar(); return V8.ApiEngine.Run('own', {});"),
	})
	clerk := h.token(t, tenant, "clerk")
	guest := h.token(t, tenant, "guest")
	elsewhere := h.token(t, h.tenant(t), "clerk")
	for _, c := range []struct {
		name, method, path, token, body string
		status                          int
		code                            float64
		kind, msg                       string
		header                          [2]string
	}{
		{name: "a body that is not JSON", path: "/apiengine/ok", body: `{"a":`, status: 400, kind: "bad_request", msg: "JSON"},
		{name: "a body that is no object", path: "/apiengine/ok", body: `[1]`, status: 400, kind: "bad_request", msg: "object"},
		{name: "no lock value", path: "/apiengine/order", body: `{"Order":{}}`, status: 400, kind: "lock_key_missing", msg: "Order.Id"},
		{name: "an empty lock value", path: "/apiengine/order", body: `{"Order":{"Id":""}}`, status: 400, kind: "lock_key_missing", msg: "Order.Id"},
		{name: "a null lock value", path: "/apiengine/order", body: `{"Order":{"Id":null}}`, status: 400, kind: "lock_key_missing", msg: "Order.Id"},
		{name: "an object as lock value", path: "/apiengine/order", body: `{"Order":{"Id":{}}}`, status: 400, kind: "bad_request", msg: "Order.Id"},
		{name: "no token", path: "/apiengine/closed", token: "-", status: 401, code: 1001, kind: "unauthenticated"},
		{name: "a made-up token", path: "/apiengine/closed", token: "aek_nobody", status: 401, code: 1001, kind: "unauthenticated"},
		{name: "without the role", path: "/apiengine/closed", token: guest, status: 403, kind: "forbidden", msg: "role"},
		{name: "with the role", path: "/apiengine/closed", token: clerk, status: 200, code: 1},
		{name: "another tenant's token", path: "/apiengine/closed", token: elsewhere, status: 403, code: 1002, kind: "forbidden"},
		{name: "internal only", path: "/apiengine/inside", status: 403, kind: "http_stopped", msg: "inside"},
		{name: "unknown", path: "/apiengine/nobody", status: 404, kind: "not_found", msg: "nobody"},
		{name: "unknown address", path: "/somewhere/else", status: 404, kind: "not_found", msg: "/somewhere/else"},
		{name: "switched off", path: "/apiengine/off", status: 404, kind: "disabled", msg: "off"},
		{name: "wrong method", method: "GET", path: "/apiengine/post", status: 405, kind: "method_not_allowed", header: [2]string{"Allow", "POST, PUT"}},
		{name: "a body over the limit", path: "/apiengine/ok", body: `{"a":"` + strings.Repeat("x", 1000) + `"}`, status: 413, kind: "payload_too_large"},
		{name: "the first call of an hour", path: "/apiengine/rated", status: 200, code: 1},
		{name: "the second call of an hour", path: "/apiengine/rated", status: 429, kind: "rate_limited", header: [2]string{"Retry-After", "*"}},
		{name: "an uncaught error", path: "/apiengine/throws", status: 500, kind: "script_error", msg: "no luck"},
		{name: "a result with a cycle", path: "/apiengine/cycle", status: 500, kind: "result_invalid"},
		{name: "a result over the limit", path: "/apiengine/big", status: 500, kind: "limit_output"},
		{name: "endless recursion, even caught", path: "/apiengine/deep", status: 500, kind: "limit_stack"},
		{name: "endless nested calls", path: "/apiengine/recurse", status: 500, kind: "limit_depth", msg: "32"},
		{name: "an endless loop, even caught", path: "/apiengine/loop", status: 504, kind: "timeout", msg: "Timeout 1 s"},
		{name: "a child that would wait for its caller", path: "/apiengine/callsown", status: 200, code: 0, kind: "script_error", msg: "Transaction: own"},
		{name: "an Idempotency-Key that is too long", path: "/apiengine/ok", header: [2]string{">Idempotency-Key", strings.Repeat("k", 256)}, status: 400, kind: "bad_request", msg: "Idempotency-Key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := httptest.NewRequest(orPost(c.method), c.path, strings.NewReader(c.body))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("OsClient", tenant)
			switch c.token {
			case "":
				req.Header.Set("Authorization", "Bearer "+adminToken)
			case "-":
			default:
				req.Header.Set("Authorization", "Bearer "+c.token)
			}
			if name, ok := strings.CutPrefix(c.header[0], ">"); ok {
				req.Header.Set(name, c.header[1])
				c.header = [2]string{}
			}
			rec := httptest.NewRecorder()
			h.handler.ServeHTTP(rec, req)
			a := answerOf(rec.Result())
			if a.Status != c.status || a.JSON.Code != c.code || (c.kind != "" && a.kind() != c.kind) || !strings.Contains(a.JSON.Msg, c.msg) {
				t.Errorf("got %d %s\nwant status %d, Code %v, Kind %s, Msg with %q", a.Status, a.Body, c.status, c.code, c.kind, c.msg)
			}
			if got := a.Header.Get(c.header[0]); c.header[0] != "" && got != c.header[1] && (got == "" || c.header[1] != "*") {
				t.Errorf("header %s is %q, want %q", c.header[0], got, c.header[1])
			}
			if c.kind != "" && c.status != 200 && (a.JSON.DataAppend.Error["ExecutionId"] == "" || a.Header.Get("X-Request-Id") == "") {
				t.Errorf("no ids in %s", a.Body)
			}
		})
	}
	t.Run("an unknown tenant", func(t *testing.T) {
		if a := h.do("nosuch", "POST", "/apiengine/ok", "{}"); a.Status != 404 || a.kind() != "not_found" || !strings.Contains(a.JSON.Msg, "nosuch") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	t.Run("the process lives on", func(t *testing.T) {
		if a := h.do(tenant, "POST", "/apiengine/ok", "{}"); a.JSON.Code != 1 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
}

// What a run has committed before it failed stays, and the answer says so.
func TestFailedAfterACommit(t *testing.T) {
	h := newHouse(t, pair{}, func(*app.Settings) {})
	tenant := h.tenant(t)
	h.load(t, tenant, fstest.MapFS{
		"schema/0001_kept.sql": {Data: []byte("-- +goose Up\nCREATE TABLE kept (n int);")},
		"child.js":             js("Transaction: own", "V8.Db.FromSql('INSERT INTO kept VALUES (1)').ExecuteNonQuery(); return { Code: 1 };"),
		"kept.js":              js("Category: x", "return { Code: 1, Data: V8.Db.FromSql('SELECT count(*) FROM kept').ToScalar() };"),
		"parent.js":            js("Category: x", "V8.ApiEngine.Run('child', {}); throw new Error('no luck');"),
	})
	a := h.do(tenant, "POST", "/apiengine/parent", "{}")
	if n := h.do(tenant, "POST", "/apiengine/kept", "{}").JSON.Data; a.kind() != "script_error" || a.JSON.DataAppend.Error["Committed"] != true || n != 1.0 {
		t.Errorf("after a nested call's commit: %s, %v rows", a.Body, n)
	}
	for i, c := range []struct {
		how, end  string
		kind      string
		committed any
	}{
		{"none", "return [1n]", "result_invalid", true},
		{"none", "var a = {}; a.a = a; return a", "result_invalid", true},
		{"none", "V8.Response.Header('X-Execution-Id', 'mine'); return 1", "result_invalid", true},
		{"none", "throw new Error('no luck')", "script_error", true},
		{"auto", "return [1n]", "result_invalid", false},
		{"auto", "V8.Response.Header('X-Execution-Id', 'mine'); return 1", "result_invalid", false},
		{"auto", "throw new Error('no luck')", "script_error", nil},
	} {
		t.Run(c.how+" "+c.end, func(t *testing.T) {
			key := fmt.Sprint("ends", i)
			h.load(t, tenant, fstest.MapFS{
				key + ".js":       js("Transaction: "+c.how, "V8.Db.FromSql('CREATE TABLE "+key+" (n int)').ExecuteNonQuery();\n"+c.end+";"),
				key + "-there.js": js("Transaction: none", "try { return { Code: 1, Data: V8.Db.FromSql('SELECT count(*) FROM "+key+"').ToScalar() } } catch (e) { return { Code: 0 } }"),
			})
			a := h.do(tenant, "POST", "/apiengine/"+key, "{}")
			if a.kind() != c.kind || a.JSON.DataAppend.Error["Committed"] != c.committed {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			if there := h.do(tenant, "POST", "/apiengine/"+key+"-there", "{}"); (there.JSON.Code == 1) != (c.committed == true) {
				t.Errorf("%s, then %s", a.Body, there.Body)
			}
		})
	}
}

func orPost(method string) string {
	if method == "" {
		return http.MethodPost
	}
	return method
}

// token makes a token with one role.
func (h *house) token(t *testing.T, tenant, role string) string {
	t.Helper()
	a := h.do(tenant, "POST", "/admin/api/v1/tokens", fmt.Sprintf(`{"Name":"test","Roles":[%q]}`, role))
	data, _ := a.JSON.Data.(map[string]any)
	plain, _ := data["Token"].(string)
	if plain == "" {
		t.Fatalf("no token: %d %s", a.Status, a.Body)
	}
	return plain
}

// lock_busy names the holder and says when to come again; a wait that another call cuts
// short is queue_full.
func TestKindsOfWaiting(t *testing.T) {
	for _, p := range backendPairs[:2] {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p, func(s *app.Settings) { s.MaxWaiters = 1 })
			tenant := h.tenant(t)
			h.load(t, tenant, fstest.MapFS{
				"hold.js": js("Lock: true\nLockScope: s\nTimeout: 30",
					"V8.Cache.SetIfNotExists('held', '1'); "+untilLetGo+" return { Code: 1 };"),
				"held.js":  js("Category: x", "return { Code: 1, Data: V8.Cache.Get('held') };"),
				"letgo.js": js("Category: x", "V8.Cache.Set('let go', '1'); return { Code: 1 };"),
				"once.js":  js("Lock: true\nLockScope: s\nLockWait: 0\nLockMsg: try the other door", "return { Code: 1 };"),
				"wait.js":  js("Lock: true\nLockScope: s\nLockWait: 20", "return { Code: 1 };"),
			})
			holder := make(chan answer, 1)
			go func() { holder <- h.do(tenant, "POST", "/apiengine/hold", "{}") }()
			await(t, "the lock to be held", func() bool { return h.do(tenant, "POST", "/apiengine/held", "{}").JSON.Data == "1" })
			busy := h.do(tenant, "POST", "/apiengine/once", "{}")
			if busy.Status != 423 || busy.kind() != "lock_busy" || busy.JSON.Msg != "try the other door" || busy.Header.Get("Retry-After") == "" {
				t.Errorf("busy: %d %v %s", busy.Status, busy.Header, busy.Body)
			}
			who, _ := busy.JSON.DataAppend.Error["Holder"].(map[string]any)
			if who["Api"] != "hold" || who["Since"] == nil {
				t.Errorf("the holder is not named: %s", busy.Body)
			}
			waiters := make(chan answer, 2)
			for range 2 {
				go func() { waiters <- h.do(tenant, "POST", "/apiengine/wait", "{}") }()
			}
			full := <-waiters
			if full.Status != 429 || full.kind() != "queue_full" || full.Header.Get("Retry-After") == "" {
				t.Errorf("full: %d %s", full.Status, full.Body)
			}
			h.do(tenant, "POST", "/apiengine/letgo", "{}")
			for _, a := range []answer{<-holder, <-waiters} {
				if a.JSON.Code != 1 {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			}
		})
	}
}

// Calls in flight are bounded, in all and for one tenant.
func TestKindsOfLoad(t *testing.T) {
	for _, c := range []struct {
		kind   string
		status int
		change func(*app.Settings)
	}{
		{"overloaded", 503, func(s *app.Settings) { s.MaxCalls, s.MaxTenantCalls = 1, 1 }},
		{"tenant_busy", 429, func(s *app.Settings) { s.MaxCalls, s.MaxTenantCalls = 10, 1 }},
	} {
		t.Run(c.kind, func(t *testing.T) {
			h := newHouse(t, pair{}, c.change)
			tenant := h.tenant(t)
			h.load(t, tenant, fstest.MapFS{
				"hold.js": js("Timeout: 30", "while (true) {}"),
				"ok.js":   js("Category: x", "return { Code: 1 };"),
			})
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan struct{})
			go func() {
				defer close(left)
				for ctx.Err() == nil { // until it is the one call that there is room for
					req := httptest.NewRequestWithContext(ctx, "POST", "/apiengine/hold", strings.NewReader("{}"))
					req.Header.Set("OsClient", tenant)
					req.Header.Set("Authorization", "Bearer "+adminToken)
					h.handler.ServeHTTP(httptest.NewRecorder(), req)
				}
			}()
			var a answer
			await(t, "the server to be full", func() bool {
				a = h.do(tenant, "POST", "/apiengine/ok", "")
				return a.Status != 200
			})
			if a.Status != c.status || a.kind() != c.kind || a.Header.Get("Retry-After") == "" {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			leave() // a caller that hangs up ends a run that has not begun a transaction
			<-left
			if a := h.do(tenant, "POST", "/apiengine/ok", ""); a.JSON.Code != 1 {
				t.Errorf("after the caller left: %d %s", a.Status, a.Body)
			}
		})
	}
}

// What cannot be reached refuses, and comes back by itself; nothing runs without its lock.
func TestKindsOfOutage(t *testing.T) {
	s := testserver.NewRedis(t)
	h := newHouse(t, pair{}, func(c *app.Settings) { c.RedisURL = s.URL() })
	tenant := h.tenant(t)
	h.load(t, tenant, fstest.MapFS{
		"locked.js": js("Lock: true\nTimeout: 2", "return { Code: 1 };"),
		"cached.js": js("Timeout: 20", "return { Code: 1, Data: V8.Cache.Get('x') };"),
		"plain.js":  js("Timeout: 2", "return { Code: 1 };"),
	})
	if err := s.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"locked": "503 lock_unavailable", "cached": "503 store_unavailable", "plain": "200 <nil>"} {
		a := h.do(tenant, "POST", "/apiengine/"+path, "{}")
		if got := fmt.Sprintf("%d %s", a.Status, a.kind()); got != want {
			t.Errorf("%s with Redis down: %s, want %s: %s", path, got, want, a.Body)
		}
		if a.Status == 503 && a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
	}
	s.Restart(t)
	for _, path := range []string{"locked", "cached"} {
		if a := h.do(tenant, "POST", "/apiengine/"+path, "{}"); a.JSON.Code != 1 {
			t.Errorf("%s with Redis back: %d %s", path, a.Status, a.Body)
		}
	}
}

// A definition that cannot be used is refused when saved, with line and column, and the
// one before stays live.
func TestSavingRefuses(t *testing.T) {
	h := newHouse(t, pair{})
	tenant := h.tenant(t)
	h.load(t, tenant, fstest.MapFS{
		"api.js":   js("ApiAddress: /taken/{id}", "return { Code: 1, Data: 'first' };"),
		"other.js": js("Category: x", "return { Code: 1 };"),
	})
	for _, c := range []struct {
		name string
		def  map[string]any
		msg  string
		line float64
	}{
		{"broken script", map[string]any{"ApiEngineKey": "api", "ApiV8Code": "var a = 1;\nreturn {"}, "", 2},
		{"unknown field", map[string]any{"ApiEngineKey": "api", "ApiV8Code": "return 1", "Lokc": true}, "Lokc", 0},
		{"timeout out of range", map[string]any{"ApiEngineKey": "api", "ApiV8Code": "return 1", "Timeout": 0.5}, "Timeout", 0},
		{"reserved address", map[string]any{"ApiEngineKey": "api", "ApiV8Code": "return 1", "ApiAddress": "/admin/x"}, "/admin", 0},
		{"taken address", map[string]any{"ApiEngineKey": "other", "ApiV8Code": "return 1", "ApiAddress": "/taken/{name}"}, "/taken", 0},
		{"a schedule without such a minute", map[string]any{"ApiEngineKey": "api", "ApiV8Code": "return 1", "Schedule": "61 * * * *"}, "Schedule", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, _ := json.Marshal(c.def)
			a := h.do(tenant, "PUT", "/admin/api/v1/definitions/"+c.def["ApiEngineKey"].(string), string(body))
			if a.Status != 400 && a.Status != 500 || !strings.Contains(a.JSON.Msg, c.msg) {
				t.Errorf("got %d %s", a.Status, a.Body)
			}
			if got := a.JSON.DataAppend.Error["Line"]; c.line > 0 && got != c.line {
				t.Errorf("line %v, want %v: %s", got, c.line, a.Body)
			}
			if a := h.do(tenant, "POST", "/apiengine/api", "{}"); a.JSON.Data != "first" {
				t.Errorf("what was live is gone: %s", a.Body)
			}
		})
	}
}
