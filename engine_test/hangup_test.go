package engine_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"testing/fstest"
)

// visit sends a request that its caller can give up.
func (h *house) visit(ctx context.Context, tenant, key string) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		req := httptest.NewRequestWithContext(ctx, "POST", "/apiengine/"+key, strings.NewReader("{}"))
		req.Header.Set("OsClient", tenant)
		req.Header.Set("Authorization", "Bearer "+adminToken)
		rec := httptest.NewRecorder()
		h.handler.ServeHTTP(rec, req)
		out <- answerOf(rec.Result())
	}()
	return out
}

// line is the log line of the last call of an API.
type line struct {
	Msg, API, Outcome, Error string
	Committed                bool
	Token                    int64
	Param, Result            string
}

func (h *house) lines(t *testing.T, api string) (found []line) {
	t.Helper()
	for text := range strings.Lines(h.log.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("a log line that is no JSON: %s", text)
		}
		if l.Msg == "call" && l.API == api {
			found = append(found, l)
		}
	}
	return found
}

func (h *house) last(t *testing.T, api string) line {
	t.Helper()
	all := h.lines(t, api)
	if len(all) == 0 {
		t.Fatalf("no log line of %s", api)
	}
	return all[len(all)-1]
}

// A caller that hangs up ends the run until it has begun a transaction; from then on the
// run goes on and its work counts. In each case the lock is free at once.
func TestHangingUp(t *testing.T) {
	for _, p := range backendPairs {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			for _, c := range []struct {
				name, code, outcome, count, staged string
			}{
				{"before a transaction", stagedWrite + sayStarted + untilLetGo + "return { Code: 1 };", "canceled", "0", "<nil>"},
				{"in a transaction", writeBoth + sayStarted + untilLetGo + "return { Code: 1 };", "ok", "100", "1"},
				{"in a child's transaction", "V8.ApiEngine.Run('child', {});" + sayStarted + untilLetGo + "return { Code: 1 };", "ok", "100", "1"},
				{"in a child before a transaction", "return V8.ApiEngine.Run('waits', {});", "canceled", "0", "<nil>"},
			} {
				t.Run(c.name, func(t *testing.T) {
					tenant := h.tenant(t)
					files := signals()
					files["run.js"] = js("Lock: true\nTimeout: 30", c.code)
					files["child.js"] = js("Category: x\nEffects: staged", writeBoth+"return { Code: 1 };")
					files["waits.js"] = js("Category: x", sayStarted+"while (true) {}")
					files["try.js"] = js("Lock: true\nLockScope: api:run\nLockWait: 10", "return { Code: 1 };")
					h.load(t, tenant, files)
					ctx, leave := context.WithCancel(t.Context())
					run := h.visit(ctx, tenant, "run")
					await(t, "the script to run", func() bool { return h.data(tenant, "started") == "1" })
					leave()
					if c.outcome == "canceled" { // else it waits to be let go
						<-run
					}
					h.do(tenant, "POST", "/apiengine/letgo", "{}")
					if c.outcome != "canceled" {
						<-run
					}
					if a := h.do(tenant, "POST", "/apiengine/try", "{}"); a.JSON.Code != 1 {
						t.Errorf("the lock: %d %s", a.Status, a.Body)
					}
					l := h.last(t, "run")
					if l.Outcome != c.outcome || l.Committed != (c.count != "0") {
						t.Errorf("outcome %s, committed %v: %s", l.Outcome, l.Committed, l.Error)
					}
					if n, staged := h.data(tenant, "count"), h.data(tenant, "staged"); n != c.count || staged != c.staged {
						t.Errorf("the counter is %s, the staged key %s", n, staged)
					}
				})
			}
		})
	}
}

// A caller that hangs up while it waits for a lock leaves the queue, and its place goes on.
func TestHangingUpInTheQueue(t *testing.T) {
	for _, p := range backendPairs[:2] {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			files := signals()
			files["run.js"] = js("Lock: true\nLockScope: s", sayStarted+untilLetGo+"return { Code: 1 };")
			files["next.js"] = js("Lock: true\nLockScope: s", "V8.Cache.Increment('runs'); return { Code: 1 };")
			files["runs.js"] = js("Category: x", "return { Code: 1, Data: V8.Cache.Get('runs') };")
			h.load(t, tenant, files)
			run := h.begin(t, tenant, "run", "{}")
			ctx, leave := context.WithCancel(t.Context())
			gone, stays := h.visit(ctx, tenant, "next"), h.visit(t.Context(), tenant, "next")
			leave()
			<-gone // while the lock is held
			if l := h.last(t, "next"); l.Outcome != "canceled" {
				t.Errorf("outcome %s: %s", l.Outcome, l.Error)
			}
			h.do(tenant, "POST", "/apiengine/letgo", "{}")
			for _, a := range []answer{<-run, <-stays} {
				if a.JSON.Code != 1 {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			}
			if n := h.data(tenant, "runs"); n != "1" {
				t.Errorf("%s runs counted", n)
			}
		})
	}
}

// One outcome a call, the same word in the log as in the answer; parameters and results
// are kept only where the definition says so, without secrets.
func TestOutcomesAndRecords(t *testing.T) {
	h := newHouse(t, pair{})
	tenant := h.tenant(t)
	h.load(t, tenant, fstest.MapFS{
		"api.js": js("AllowAnonymous: true\nLogParam: true\nLogResult: true\nMethods: [POST]", `switch (V8.Param.How) {
case 'business': return { Code: 0, Msg: 'no', Password: 'p3' };
case 'throw': throw new Error('no');
case 'text': return 'secret? no';
}
V8.Db.FromSql("UPDATE counter SET n = n + 1 WHERE id = 'a'").ExecuteNonQuery();
return { Code: V8.Param.How === 'undo' ? 2 : 1, Data: { AccessToken: 'hunter2', Ok: true } };`),
		"none.js":                 js("Transaction: none", `V8.Db.FromSql("UPDATE counter SET n = n + 1 WHERE id = 'a'").ExecuteNonQuery(); return { Code: 0 };`),
		"quiet.js":                js("Category: x", "return { Code: 1, Data: 'seen' };"),
		"schema/0001_counter.sql": {Data: []byte(counterTable)},
	})
	for _, c := range []struct {
		api, body, outcome, param, result string
		committed                         bool
	}{
		{"api", `{"n":12345678901234567890,"user":{"passWord":"hunter2"},"list":[{"api_key":1}]}`, "ok",
			`{"list":[{"api_key":"[redacted]"}],"n":12345678901234567890,"user":{"passWord":"[redacted]"}}`, `{"Code":1,"Data":{"AccessToken":"[redacted]","Ok":true}}`, true},
		{"api", `{"How":"business"}`, "business", `{"How":"business"}`, `{"Code":0,"Msg":"no","Password":"[redacted]"}`, false},
		{"api", `{"How":"undo"}`, "business", `{"How":"undo"}`, `{"Code":2,"Data":{"AccessToken":"[redacted]","Ok":true}}`, false},
		{"api", `{"How":"throw"}`, "script_error", `{"How":"throw"}`, "", false},
		{"api", `{"How":"text"}`, "ok", `{"How":"text"}`, `"secret? no"`, false},
		{"none", `{}`, "business", "", "", true},
		{"quiet", `{"seen":1}`, "ok", "", "", false},
		{"nobody", `{}`, "not_found", "", "", false},
	} {
		h.do(tenant, "POST", "/apiengine/"+c.api, c.body)
		l := h.last(t, c.api)
		if l.Outcome != c.outcome || l.Param != c.param || l.Result != c.result || l.Committed != c.committed {
			t.Errorf("%s %s: %+v", c.api, c.body, l)
		}
	}
	if strings.Contains(h.log.String(), "hunter2") {
		t.Error("a secret is in the log")
	}
}
