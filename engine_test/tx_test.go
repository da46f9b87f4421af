package engine_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"apiengine/internal/app"
	"apiengine/internal/testserver"
)

// PostgreSQL crashes under runs: each caller hears of it, even when the script catches the
// error and returns Code 1, nothing is half-written, and the next call works.
func TestTheDatabaseCrashesUnderRuns(t *testing.T) {
	const read = "V8.Db.FromSql('SELECT 1').ToScalar();"
	type crash struct {
		name, header, code string
		want               string // status and Kind
		n                  string // what the row then holds
	}
	down := "503 store_unavailable"
	cases := []crash{
		{name: "uncaught", code: read + "return { Code: 1 };", want: down, n: "0"},
		{name: "caught", code: "try { " + read + " } catch (e) {} return { Code: 1 };", want: down, n: "0"},
		{name: "under the lock", header: "Lock: true", code: "try { " + read + " } catch (e) {} return { Code: 1 };", want: down, n: "0"},
		{name: "inside a child", code: "var r = V8.ApiEngine.Run('child', {}); return { Code: 1, Data: r };", want: down, n: "0"},
		{name: "a child caught it", code: "V8.ApiEngine.Run('child', { Catch: true }); return { Code: 1 };", want: down, n: "0"},
		{name: "rolled back", code: "return { Code: 0 };", want: "200 <nil>", n: "0"},
		{name: "each by itself", header: "Transaction: none", code: "try { " + read + " } catch (e) {} return { Code: 1 };", want: "200 <nil>", n: "100"},
		// The crash shows first in the commit: without a guard nobody can tell what became of it.
		{name: "at the commit", code: "return { Code: 1 };", want: "500 outcome_unknown", n: "0"},
		{name: "at the commit, with a guard", header: "Lock: true", code: "return { Code: 1 };", want: down, n: "0"},
	}
	h := newHouse(t, pair{postgres: true})
	tenant := h.tenant(t)
	files := signals()
	files["hold.js"] = js("Lock: true\nLockScope: gate\nTimeout: 120", sayStarted+untilLetGo+"return { Code: 1 };")
	files["gate.js"] = js("Lock: true\nLockScope: gate\nTransaction: own", "return { Code: 1 };") // where the runs wait
	files["child.js"] = js("Category: x", "try { "+read+" } catch (e) { if (!V8.Param.Catch) { throw e; } } return { Code: 1 };")
	files["running.js"] = js("Category: x", "return { Code: 1, Data: V8.Cache.Get('running') };")
	files["n.js"] = js("Category: x", "return { Code: 1, Data: V8.FormEngine.GetFormData('counter', { Id: V8.Param.Id }).Data.n };")
	for i, c := range cases {
		files[fmt.Sprintf("run%d.js", i)] = js("Timeout: 120\n"+c.header, "V8.Db.FromSql('UPDATE counter SET n = n + 100 WHERE id = @p0').AddInParameter('@p0', V8.ApiEngineKey).ExecuteNonQuery();"+
			"V8.Cache.Increment('running'); V8.ApiEngine.Run('gate', {});"+c.code)
		files[fmt.Sprintf("schema/%04d_row.sql", i+2)] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"-- +goose Up\nINSERT INTO counter (id, n) VALUES ('run%d', 0);\n-- +goose Down\nDELETE FROM counter;", i)}
	}
	h.load(t, tenant, files)
	hold := h.begin(t, tenant, "hold", "{}")
	answers := make([]chan answer, len(cases))
	for i := range cases {
		answers[i] = make(chan answer, 1)
		go func() { answers[i] <- h.do(tenant, "POST", fmt.Sprintf("/apiengine/run%d", i), "{}") }()
	}
	await(t, "all to have written", func() bool { return h.data(tenant, "running") == fmt.Sprint(len(cases)) })
	testserver.Postgres(t).Restart(t)
	h.do(tenant, "POST", "/apiengine/letgo", "{}")
	<-hold
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := <-answers[i]
			if got := fmt.Sprintf("%d %s", a.Status, a.kind()); got != c.want || a.Status == 503 && a.Header.Get("Retry-After") == "" {
				t.Errorf("got %s, want %s: %s", got, c.want, a.Body)
			}
			a = h.do(tenant, "POST", "/apiengine/n", fmt.Sprintf(`{"Id":"run%d"}`, i))
			if n := fmt.Sprint(a.JSON.Data); n != c.n {
				t.Errorf("after the crash the row has %s, want %s: %s", n, c.n, a.Body)
			}
		})
	}
}

// The guard of a lock that only a child took refuses as that of the root would: the whole
// call ends, whatever the caller does with its child's answer.
func TestAChildsStaleGuardEndsTheCall(t *testing.T) {
	database := testserver.Database(t)
	h := newHouse(t, pair{}, func(s *app.Settings) { s.DatabaseURL = database })
	tenant := h.tenant(t)
	files := signals()
	files["run.js"] = js("Category: x", "V8.Db.FromSql(\"UPDATE counter SET n = n + 1 WHERE id = 'a'\").ExecuteNonQuery();"+
		"try { V8.ApiEngine.Run('child', {}); } catch (e) {} return { Code: 1 };")
	files["child.js"] = js("Lock: true", "try { V8.Db.FromSql(\"UPDATE counter SET n = n + 1 WHERE id = 'b'\").ExecuteNonQuery(); } catch (e) {} return { Code: 1 };")
	h.load(t, tenant, files)
	if a := h.do(tenant, "POST", "/apiengine/run", "{}"); a.JSON.Code != 1 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	tag, err := conn.Exec(t.Context(), "UPDATE "+`"_apiengine_tenant_`+tenant+`:own"`+"._apiengine_fence SET token = 9007199254740000")
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d rows, %v", tag.RowsAffected(), err)
	}
	a := h.do(tenant, "POST", "/apiengine/run", "{}")
	if a.Status != 409 || a.kind() != "stale_fence" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if n := h.data(tenant, "count"); n != "1" {
		t.Errorf("the counter is %s", n)
	}
}
