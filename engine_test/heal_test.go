package engine_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"
)

// advance makes a tenant's database remember a token of an hour from now for each lock, as
// if the lock's backend had lost its counters while its clock is an hour behind.
func (h *house) advance(t *testing.T, tenant string) (token int64) {
	t.Helper()
	driver, address, table := "sqlite", filepath.Join(h.app.Settings.DataDir, "tenants", tenant+".db"), "_apiengine_fence"
	if url := h.app.Settings.DatabaseURL; url != "" {
		driver, address, table = "pgx", url, fmt.Sprintf(`"_apiengine_tenant_%s:own"._apiengine_fence`, tenant)
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	token = time.Now().Add(time.Hour).UnixMicro()
	res, err := db.ExecContext(t.Context(), "UPDATE "+table+" SET token = $1, owner = 'earlier'", token)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); n == 0 || err != nil {
		t.Fatalf("%d guard rows, %v", n, err)
	}
	return token
}

const countOne = "V8.Db.FromSql(\"UPDATE counter SET n = n + 1 WHERE id = 'a'\").ExecuteNonQuery();"

// The lock says that a run holds it and the database has seen a larger token: the run
// starts over under a larger one, its script having seen no other in what it keeps; where
// something of it cannot be taken back it fails, and the next call is served.
func TestATokenThatIsBehindIsHealed(t *testing.T) {
	t.Parallel()
	for _, p := range pairsWith {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			for _, c := range []struct {
				name   string
				header string
				code   string
				healed bool
			}{
				{"at the first statement", "Lock: true", "var token = V8.FencingToken; V8.Cache.Set('staged', '1');" + countOne + "return { Code: 1, Data: token };", true},
				{"caught", "Lock: true", "try { " + countOne + " } catch (e) {} return { Code: 1, Data: V8.FencingToken };", true},
				{"in a child that joined", "Lock: true\nLockScope: s", "return V8.ApiEngine.Run('child', {});", true},
				{"in a child's own lock", "Category: x", countOne + "return V8.ApiEngine.Run('child', {});", true},
				{"in the second child", "Category: x", "V8.ApiEngine.Run('plain', {}); return V8.ApiEngine.Run('child', {});", true},
				{"after a write that acted at once", "Lock: true", "V8.Cache.Increment('acted');" + countOne + "return { Code: 1, Data: V8.FencingToken };", false},
				{"after a commit of its own", "Category: x", "V8.ApiEngine.Run('own', {}); return V8.ApiEngine.Run('child', {});", false},
				{"under immediate effects", "Lock: true\nEffects: immediate", "V8.Cache.Set('acted', 'x');" + countOne + "return { Code: 1, Data: V8.FencingToken };", false},
			} {
				t.Run(c.name, func(t *testing.T) {
					tenant := h.tenant(t)
					h.load(t, tenant, fstest.MapFS{
						"run.js":                  js(c.header, c.code),
						"child.js":                js("Lock: true\nLockScope: s", countOne+"return { Code: 1, Data: V8.FencingToken };"),
						"plain.js":                js("Category: x", "V8.Db.FromSql('SELECT 1').ToScalar(); return { Code: 1 };"),
						"own.js":                  js("Transaction: own", "V8.Db.FromSql(\"UPDATE counter SET n = n + 0 WHERE id = 'a'\").ExecuteNonQuery(); return { Code: 1 };"),
						"count.js":                js("Category: x", "return { Code: 1, Data: V8.Db.FromSql(\"SELECT n FROM counter WHERE id = 'a'\").ToScalar() };"),
						"schema/0001_counter.sql": {Data: []byte(counterTable)},
					})
					if a := h.do(tenant, "POST", "/apiengine/run", "{}"); a.JSON.Code != 1 {
						t.Fatalf("before: %d %s", a.Status, a.Body)
					}
					before := h.data(tenant, "count")
					stored := h.advance(t, tenant)
					a := h.do(tenant, "POST", "/apiengine/run", "{}")
					if !c.healed {
						if a.Status != 409 || a.kind() != "stale_fence" {
							t.Errorf("%d %s", a.Status, a.Body)
						}
						if got := h.data(tenant, "count"); got != before {
							t.Errorf("the refused run counted from %s to %s", before, got)
						}
						a = h.do(tenant, "POST", "/apiengine/run", "{}")
					}
					if token, ok := a.JSON.Data.(float64); a.JSON.Code != 1 || !ok || int64(token) <= stored {
						t.Errorf("%d %s, with %d stored", a.Status, a.Body, stored)
					}
				})
			}
		})
	}
}

// A locked child that asks for effects at once cannot have them inside a transaction whose
// effects wait; without a lock immediate is only the default, and it goes along.
func TestEffectsThatClashAreRefused(t *testing.T) {
	h := newHouse(t, pair{})
	tenant := h.tenant(t)
	const set = "V8.Cache.Set('k', V8.ApiEngineKey); return { Code: 1 };"
	h.load(t, tenant, fstest.MapFS{
		"staged.js":  js("Lock: true\nLockScope: a", "return V8.ApiEngine.Run(V8.Param.Child, {});"),
		"plain.js":   js("Category: x", "return V8.ApiEngine.Run(V8.Param.Child, {});"),
		"after.js":   js("Category: x", "V8.ApiEngine.Run('stages', {}); return V8.ApiEngine.Run(V8.Param.Child, {});"),
		"stages.js":  js("Lock: true\nLockScope: c", set),
		"asks.js":    js("Lock: true\nLockScope: b\nEffects: immediate", set),
		"default.js": js("Category: x", set),
		"own.js":     js("Lock: true\nLockScope: b\nEffects: immediate\nTransaction: own", set),
	})
	for _, c := range []struct {
		caller, child string
		refused       bool
	}{
		{"staged", "asks", true}, {"after", "asks", true}, {"plain", "asks", false},
		{"staged", "default", false}, {"staged", "own", false},
	} {
		a := h.do(tenant, "POST", "/apiengine/"+c.caller, fmt.Sprintf(`{"Child":%q}`, c.child))
		refused := a.JSON.Code != 1 && a.kind() == "script_error"
		if refused != c.refused || !refused && a.JSON.Code != 1 {
			t.Errorf("%s in %s: %d %s", c.child, c.caller, a.Status, a.Body)
		}
	}
}
