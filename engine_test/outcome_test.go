package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"apiengine/internal/app"
	"apiengine/internal/faultproxy"
)

// slowTable's rows are committed when nobody holds the advisory lock 77 any more.
const slowTable = `-- +goose Up
CREATE TABLE slow (id TEXT);
-- +goose StatementBegin
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NULL; END';
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow();
-- +goose Down
DROP TABLE slow;`

// The answer to COMMIT is lost together with the database, for longer than the run waits
// for it: outcome_unknown. When the database is back it is told what became of each run, the
// same on every ask, by whatever the run left behind.
func TestOutcomesOnPostgres(t *testing.T) {
	t.Parallel()
	p, through, direct := proxiedDatabase(t)
	h := newHouse(t, pair{}, func(s *app.Settings) { s.DatabaseURL, s.LockBackend = through, "embedded" })
	tenant := h.tenant(t)
	const insert = "V8.Db.FromSql('INSERT INTO ledger VALUES (@p0, 1)').AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery();"
	files := ledgerAPIs()
	maps.Copy(files, fstest.MapFS{
		"schema/0002_slow.sql": {Data: []byte(slowTable)},
		"plain.js":             js("Timeout: 30", insert+"return { Code: 1 };"),
		"slow.js":              js("Timeout: 30", insert+"V8.Db.FromSql(\"INSERT INTO slow VALUES ('x')\").ExecuteNonQuery(); return { Code: 1 };"),
		"locked.js":            js("Lock: true\nLockKey: Id\nTimeout: 30", insert+"return { Code: 1 };"),
		"ids.js":               js("Category: x", "return { Code: 1, Data: V8.Db.FromSql('SELECT id FROM ledger ORDER BY id').ToArray().map(r => r.id).join() };"),
	})
	files["schema/aaa/0001_counter.sql"] = &fstest.MapFile{Data: []byte(dbsTables)}
	files["named.js"] = js("Lock: true\nLockKey: Id\nTimeout: 30", insert+addIn(aaa)+"return { Code: 1 };")
	h.named(t, tenant, "aaa")
	h.load(t, tenant, files)
	gate, err := pgx.Connect(t.Context(), direct)
	if err == nil {
		_, err = gate.Exec(t.Context(), "SELECT pg_advisory_lock(77)")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close(t.Context())
	cases := []struct {
		id, api, key string
		fault        faultproxy.Fault
		want         string
	}{
		{"a transaction id that came through", "slow", "", faultproxy.HoldRest, "committed"},
		{"a transaction id that was lost", "plain", "", faultproxy.HoldReply, "unknown"},
		{"a lock, COMMIT done", "locked", "", faultproxy.HoldReply, "committed"},
		{"a lock, COMMIT lost", "locked", "", faultproxy.HoldCall, "rolled_back"},
		{"a key, COMMIT done", "plain", "k1", faultproxy.HoldReply, "committed"},
		{"a key, COMMIT lost", "plain", "k2", faultproxy.HoldCall, "rolled_back"},
		{"the first of two databases, done", "named", "", faultproxy.HoldReply, "partly_committed"},
		{"the first of two databases, lost", "named", "", faultproxy.HoldCall, "rolled_back"},
	}
	answers := make([]chan answer, len(cases))
	for i, c := range cases {
		trap := p.Add(faultproxy.Rule{Match: commits, Times: 1, Fault: c.fault})
		answers[i] = make(chan answer, 1)
		go func() { answers[i] <- h.keyed(tenant, "/apiengine/"+c.api, c.key, fmt.Sprintf(`{"Id":%q}`, c.id)) }()
		caught(t, trap)
		if c.fault == faultproxy.HoldRest {
			if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_unlock(77)"); err != nil {
				t.Fatal(err)
			}
			caught(t, trap)
		}
	}
	p.Refuse(true)
	executions := make([]string, len(cases))
	for i, c := range cases {
		select {
		case a := <-answers[i]:
			if a.Status != 500 || a.kind() != "outcome_unknown" {
				t.Fatalf("%s: %d %s", c.id, a.Status, a.Body)
			}
			executions[i] = fmt.Sprint(a.JSON.DataAppend.Error["ExecutionId"])
		case <-time.After(60 * time.Second):
			t.Fatalf("%s: no answer", c.id)
		}
		if a := h.outcome(tenant, executions[i]); a.Status != 503 {
			t.Errorf("%s, the database away: %d %s", c.id, a.Status, a.Body)
		}
	}
	p.Refuse(false)
	var there []string
	for i, c := range cases {
		for range 3 {
			a := h.outcome(tenant, executions[i])
			data, _ := a.JSON.Data.(map[string]any)
			if a.Status != 200 || data["Outcome"] != c.want {
				t.Errorf("%s: %d %s, want %s", c.id, a.Status, a.Body, c.want)
			}
		}
		if c.want == "committed" || c.want == "unknown" {
			there = append(there, c.id)
		}
	}
	slices.Sort(there)
	if a := h.do(tenant, "POST", "/admin/api/v1/sql", `{"Sql":"SELECT n FROM counter","Database":"aaa"}`); !strings.Contains(a.Body, `"Rows":[[1]]`) {
		t.Errorf("the other database has %s", a.Body)
	}
	if got := h.data(tenant, "ids"); got != strings.Join(there, ",") {
		t.Errorf("the ledger has %s, want %v", got, there)
	}
}

func (h *house) outcome(tenant, execution string) answer {
	return h.do(tenant, "GET", "/api/v1/executions/"+execution+"/outcome", "")
}

// What became of a run that was answered can be asked for as well, on its node and for a
// while; of what nothing is known nothing is said.
func TestOutcomesThatWereAnswered(t *testing.T) {
	h := newHouse(t, pair{})
	tenant := h.tenant(t)
	files := ledgerAPIs()
	const insert = "V8.Db.FromSql('INSERT INTO ledger VALUES (@p0, 1)').AddInParameter('@p0', 'x').ExecuteNonQuery();"
	maps.Copy(files, fstest.MapFS{
		"ok.js":       js("Category: x", insert+"return { Code: 1 };"),
		"business.js": js("Category: x", insert+"return { Code: 0 };"),
		"throws.js":   js("Category: x", insert+"throw new Error('no');"),
		"nothing.js":  js("Category: x", "return { Code: 1 };"),
		"none.js":     js("Transaction: none", insert+"throw new Error('no');"),
	})
	h.load(t, tenant, files)
	for api, want := range map[string]string{"ok": "committed", "business": "rolled_back", "throws": "rolled_back", "none": "partly_committed", "nothing": ""} {
		id := h.do(tenant, "POST", "/apiengine/"+api, "{}").Header.Get("X-Execution-Id")
		a := h.outcome(tenant, id)
		data, _ := a.JSON.Data.(map[string]any)
		if want == "" && (a.Status != 404 || a.kind() != "not_found") || want != "" && data["Outcome"] != want {
			t.Errorf("%s: %d %s, want %s", api, a.Status, a.Body, want)
		}
		if other := h.outcome(h.tenant(t), id); other.Status != 404 {
			t.Errorf("%s, asked by another tenant: %d", api, other.Status)
		}
	}
}
