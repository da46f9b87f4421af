package engine_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/app"
	"apiengine/internal/faultproxy"
)

// fence moves the guard's token of every lock in one database of a tenant.
func (h *house) fence(t *testing.T, tenant, database string, token int64) {
	t.Helper()
	driver, address, table := "sqlite", filepath.Join(h.app.Settings.DataDir, "tenants", tenant+".db"), "_apiengine_fence"
	schema := "_apiengine_tenant_" + tenant
	if database != "" {
		address = filepath.Join(h.app.Settings.DataDir, h.where(tenant, database))
		schema = h.where(tenant, database)
	}
	if url := h.app.Settings.DatabaseURL; url != "" {
		driver, address, table = "pgx", url, fmt.Sprintf(`"%s:own"._apiengine_fence`, schema)
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.ExecContext(t.Context(), "UPDATE "+table+" SET token = $1, owner = 'newer'", token)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d guard rows, %v", n, err)
	}
}

// where is the file or the schema of a named database.
func (h *house) where(tenant, database string) string {
	list, _ := h.do(tenant, "GET", "/admin/api/v1/tenants/"+tenant+"/databases", "").JSON.Data.([]any)
	for _, d := range list {
		if one, _ := d.(map[string]any); one["Name"] == database {
			return strings.TrimPrefix(fmt.Sprint(one["Where"]), "schema ")
		}
	}
	return ""
}

// Each database has its own guard: a holder with an old token is refused wherever a newer one
// has been, and nothing of its run is left in the others. Where only the lock's counter is
// behind, the run starts over.
func TestEachDatabaseRefusesAStaleHolder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		run := addIn(own) + addIn(aaa) + addIn(zzz) + "V8.Cache.Set('staged', '1');" + ok1
		for _, database := range []string{"", "aaa", "zzz"} {
			for _, c := range []struct {
				name, header, code string
			}{
				{"at its use", "Lock: true\nLockScope: s", run},
				{"caught", "Lock: true\nLockScope: s", "try { " + run + " } catch (e) {}" + ok1},
				{"in a child", "Category: x", addIn(zzz) + "V8.ApiEngine.Run('child', {});" + ok1},
			} {
				t.Run(c.name+" of "+database, func(t *testing.T) {
					tenant := h.dbsTenant(t, fstest.MapFS{"run.js": js(c.header, c.code), "child.js": js("Lock: true\nLockScope: s", run)})
					if a := h.do(tenant, "POST", "/apiengine/run", "{}"); a.JSON.Code != 1 {
						t.Fatalf("before: %d %s", a.Status, a.Body)
					}
					before := h.data(tenant, "sum")
					h.fence(t, tenant, database, time.Now().Add(time.Hour).UnixMicro())
					if a := h.do(tenant, "POST", "/apiengine/run", "{}"); a.JSON.Code != 1 {
						t.Errorf("behind: %d %s", a.Status, a.Body)
					}
					healed := h.data(tenant, "sum")
					if healed == before {
						t.Errorf("behind: the databases still have %s", before)
					}
					h.fence(t, tenant, database, 1<<53-1000) // no lock may come this far
					if a := h.do(tenant, "POST", "/apiengine/run", "{}"); a.Status != 409 || a.kind() != "stale_fence" {
						t.Errorf("%d %s", a.Status, a.Body)
					}
					if sum := h.data(tenant, "sum"); sum != healed {
						t.Errorf("the stale run left %s, it was %s", sum, healed)
					}
				})
			}
		}
	})
}

// When one of several commits fails, those before it stay and are named, those after it are
// rolled back with what hangs on the tenant's own: messages and the answer for a key. Keys
// that were to be written to the cache are removed once anything has landed.
func TestALaterCommitFails(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		all := addIn(zzz) + addIn(own) + addIn(aaa)
		for _, c := range []struct {
			name, late        string
			failed, committed string // of the details
			sum, staged       string
			outcome           string
		}{
			{"the first", lateIn(aaa), "V8.Dbs.aaa", "[]", "0,0,0", "old", "rolled_back"},
			{"the second", lateIn(zzz), "V8.Dbs.zzz", "[V8.Dbs.aaa]", "0,1,0", "<nil>", "partly_committed"},
			{"the own", lateIn(own), "V8.Db", "[V8.Dbs.aaa V8.Dbs.zzz]", "0,1,1", "<nil>", "partly_committed"},
		} {
			for _, header := range []string{"Lock: true", "Effects: staged"} {
				t.Run(c.name+", "+header, func(t *testing.T) {
					tenant := h.dbsTenant(t, fstest.MapFS{
						"old.js":  js("Category: x", "V8.Cache.Set('staged', 'old');"+ok1),
						"run.js":  js(header, all+c.late+"V8.Cache.Set('staged', 'new'); V8.Outbox.Send({EventId: 'e', Type: 't', Target: 'old'});"+ok1),
						"sent.js": js("Category: x", "return { Code: 1, Data: V8.Outbox.Send({EventId: 'e', Type: 't', Target: 'old'}).Stored };"),
					})
					h.do(tenant, "POST", "/apiengine/old", "{}")
					a := h.keyed(tenant, "/apiengine/run", "key", "{}")
					e := a.JSON.DataAppend.Error
					if a.kind() != "script_error" || fmt.Sprint(e["Database"]) != c.failed || fmt.Sprint(e["CommittedDatabases"]) != c.committed {
						t.Errorf("%d %s", a.Status, a.Body)
					}
					if sum := h.data(tenant, "sum"); sum != c.sum {
						t.Errorf("the databases have %s, want %s", sum, c.sum)
					}
					if staged := h.data(tenant, "staged"); staged != c.staged {
						t.Errorf("the cache has %s, want %s", staged, c.staged)
					}
					if told := h.outcome(tenant, fmt.Sprint(e["ExecutionId"])); !strings.Contains(told.Body, `"Outcome":"`+c.outcome+`"`) {
						t.Errorf("its outcome: %s", told.Body)
					}
					if list := h.do(tenant, "GET", "/admin/api/v1/outbox", "").Body; strings.Contains(list, `"EventId":"e"`) {
						t.Errorf("its message is there: %s", list)
					}
					if again := h.keyed(tenant, "/apiengine/run", "key", "{}"); again.Header.Get("Idempotency-Replayed") != "" || again.kind() != "script_error" {
						t.Errorf("the key again: %d %s", again.Status, again.Body)
					}
				})
			}
		}
	})
}

// A locked call with an Idempotency-Key over three databases has one effect in each, whoever
// repeats it; calls for one lock lose no update in any of them.
func TestLockAndKeyOverSeveralDatabases(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		add := func(db string) string { // in two statements, which only the lock makes one
			return "n = " + db + ".FromSql(\"SELECT n FROM counter WHERE id = 'a'\").ToScalar();" +
				db + ".FromSql(\"UPDATE counter SET n = @n WHERE id = 'a'\").AddInParameter('@n', n + 1).ExecuteNonQuery();"
		}
		tenant := h.dbsTenant(t, fstest.MapFS{
			"pay.js": js("Lock: true\nTimeout: 60", "var n;"+add(zzz)+add(own)+add(aaa)+"return { Code: 1, Data: NewGuid() };"),
		})
		first := h.keyed(tenant, "/apiengine/pay", "once", "{}")
		if again := h.keyed(tenant, "/apiengine/pay", "once", "{}"); first.JSON.Code != 1 || again.Body != first.Body || again.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s\n%s", first.Body, again.Body)
		}
		var calls sync.WaitGroup
		for i := range 20 {
			calls.Go(func() {
				if a := h.keyed(tenant, "/apiengine/pay", fmt.Sprint("key", i), "{}"); a.JSON.Code != 1 {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			})
		}
		calls.Wait()
		if sum := h.data(tenant, "sum"); sum != "21,21,21" {
			t.Errorf("the databases have %s", sum)
		}
	})
}

// A nested call is part of its caller's transaction in every database: what it did is kept
// with the caller, or undone alone.
func TestNestedCallsInNamedDatabases(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		for _, c := range []struct {
			name, root, childHeader, child, sum string
		}{
			{"both write", addIn(aaa) + "V8.ApiEngine.Run('child', {});" + ok1, "Category: x", addIn(aaa) + addIn(zzz) + ok1, "0,2,1"},
			{"the child sees its caller's", addIn(aaa) + "return V8.ApiEngine.Run('child', {});", "Category: x",
				"return { Code: V8.Dbs.aaa.FromSql('SELECT n FROM counter').ToScalar() };", "0,1,0"},
			{"the child throws", addIn(aaa) + "V8.ApiEngine.Run('child', {});" + ok1, "Category: x", addIn(aaa) + addIn(zzz) + "throw new Error('no');", "0,1,0"},
			{"the child says no", addIn(aaa) + "V8.ApiEngine.Run('child', {});" + addIn(zzz) + ok1, "Category: x", addIn(zzz) + addIn(aaa) + "return { Code: 0 };", "0,1,1"},
			{"the caller says no", addIn(aaa) + "V8.ApiEngine.Run('child', {}); return { Code: 0 };", "Category: x", addIn(zzz) + ok1, "0,0,0"},
			{"the child opens it, then its caller", "V8.ApiEngine.Run('child', {});" + addIn(aaa) + ok1, "Lock: true", addIn(aaa) + ok1, "0,2,0"},
			{"a child of its own, elsewhere", addIn(aaa) + "V8.ApiEngine.Run('child', {}); return { Code: 0 };", "Transaction: own", addIn(zzz) + ok1, "0,0,1"},
		} {
			t.Run(c.name, func(t *testing.T) {
				tenant := h.dbsTenant(t, fstest.MapFS{"root.js": js("Lock: true\nLockScope: r", c.root), "child.js": js(c.childHeader, c.child)})
				a := h.do(tenant, "POST", "/apiengine/root", "{}")
				if sum := h.data(tenant, "sum"); sum != c.sum {
					t.Errorf("the databases have %s, want %s: %s", sum, c.sum, a.Body)
				}
			})
		}
		tenant := h.dbsTenant(t, fstest.MapFS{
			"root.js":  js("Lock: true\nLockScope: r", addIn(aaa)+"return V8.ApiEngine.Run('child', {});"),
			"child.js": js("Transaction: own", addIn(aaa)+ok1),
		})
		if a := h.do(tenant, "POST", "/apiengine/root", "{}"); a.JSON.Code == 1 || !strings.Contains(a.Body, "wait for it for ever") {
			t.Errorf("a child that would wait for its caller: %d %s", a.Status, a.Body)
		}
	})
}

// The answer to the commit of a named database is lost: its guard row tells that it landed,
// and the run goes on to the next; that it did not, and the run fails with nothing written.
func TestALostCommitOfANamedDatabase(t *testing.T) {
	t.Parallel()
	p, through, _ := proxiedDatabase(t)
	h := newHouse(t, pair{}, func(s *app.Settings) { s.DatabaseURL, s.LockBackend = through, "embedded" })
	for _, c := range []struct {
		name        string
		skip        int // commits that pass: of aaa, of zzz
		fault       faultproxy.Fault
		status      int
		sum, detail string
	}{
		{"aaa landed", 0, faultproxy.LoseReply, 200, "1,1,1", ""},
		{"zzz landed", 1, faultproxy.LoseReply, 200, "1,1,1", ""},
		{"aaa was lost", 0, faultproxy.LoseCall, 503, "0,0,0", `"CommittedDatabases":[]`},
		{"zzz was lost", 1, faultproxy.LoseCall, 503, "0,1,0", `"CommittedDatabases":["V8.Dbs.aaa"]`},
		{"the own was lost", 2, faultproxy.LoseCall, 503, "0,1,1", `"CommittedDatabases":["V8.Dbs.aaa","V8.Dbs.zzz"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tenant := h.dbsTenant(t, fstest.MapFS{"run.js": js("Lock: true\nTimeout: 60", addIn(own)+addIn(zzz)+addIn(aaa)+ok1)})
			if a := h.do(tenant, "POST", "/apiengine/sum", "{}"); a.JSON.Code != 1 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			trap := p.Add(faultproxy.Rule{Match: commits, Skip: c.skip, Times: 1, Fault: c.fault})
			a := h.do(tenant, "POST", "/apiengine/run", "{}")
			caught(t, trap)
			if a.Status != c.status || !strings.Contains(a.Body, c.detail) {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			if sum := h.data(tenant, "sum"); sum != c.sum {
				t.Errorf("the databases have %s, want %s", sum, c.sum)
			}
		})
	}
}
