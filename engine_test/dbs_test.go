package engine_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"apiengine/internal/app"
)

// named gives a tenant a database beside its own.
func (h *house) named(t testing.TB, tenant, name string) {
	t.Helper()
	a := h.do(tenant, "POST", "/admin/api/v1/tenants/"+tenant+"/databases", fmt.Sprintf(`{"Name":%q}`, name))
	if a.Status != 201 {
		t.Fatalf("database %s: %d %s", name, a.Status, a.Body)
	}
}

// dbsTables has, in late, what is checked at the commit.
const dbsTables = `-- +goose Up
CREATE TABLE counter (id TEXT PRIMARY KEY, n BIGINT NOT NULL);
INSERT INTO counter (id, n) VALUES ('a', 0);
CREATE TABLE need (id TEXT PRIMARY KEY);
CREATE TABLE late (id TEXT REFERENCES need (id) DEFERRABLE INITIALLY DEFERRED);
-- +goose Down
DROP TABLE counter;`

// addIn counts one up in a database; lateIn writes what only its commit refuses.
func addIn(db string) string {
	return db + ".FromSql(\"UPDATE counter SET n = n + 1 WHERE id = 'a'\").ExecuteNonQuery();"
}

func lateIn(db string) string {
	return db + ".FromSql(\"INSERT INTO late VALUES ('nobody')\").ExecuteNonQuery();"
}

const (
	own = "V8.Db"
	aaa = "V8.Dbs.aaa"
	zzz = "V8.Dbs.zzz"
	ok1 = "return { Code: 1 };"
)

// dbsFiles are tables in the tenant's own database and in its two named ones, and sum,
// which tells what the three hold.
func dbsFiles(more fstest.MapFS) fstest.MapFS {
	files := signals()
	for _, dir := range []string{"schema/", "schema/aaa/", "schema/zzz/"} {
		files[dir+"0001_counter.sql"] = &fstest.MapFile{Data: []byte(dbsTables)}
	}
	one := func(db string) string { return db + ".FromSql(\"SELECT n FROM counter WHERE id = 'a'\").ToScalar()" }
	files["sum.js"] = js("Category: x", "return { Code: 1, Data: ["+one(own)+", "+one(aaa)+", "+one(zzz)+"].join() };")
	maps.Copy(files, more)
	return files
}

// dbsTenant is a tenant with two named databases and these APIs.
func (h *house) dbsTenant(t testing.TB, more fstest.MapFS) string {
	t.Helper()
	tenant := h.tenant(t)
	h.named(t, tenant, "zzz")
	h.named(t, tenant, "AAA")
	h.load(t, tenant, dbsFiles(more))
	return tenant
}

// onBoth runs a test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, h *house)) {
	for _, p := range []pair{backendPairs[0], backendPairs[3]} {
		t.Run(p.name, func(t *testing.T) { test(t, newHouse(t, p)) })
	}
}

// A named database has all that the tenant's own has, and both take part in the run: what
// the script returns decides for all of them.
func TestNamedDatabases(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		tenant := h.dbsTenant(t, nil)
		for _, c := range []struct{ name, header, code, want, sum string }{
			{"reads and writes", "", addIn(aaa) + "return { Code: 1, Data: V8.Dbs.aaa.FromSql('SELECT n FROM counter').First().n };", "1", "0,1,0"},
			{"in any case", "", addIn("V8.Dbs.AAA") + addIn(aaa) + ok1, "<nil>", "0,3,0"},
			{"all three", "", addIn(zzz) + addIn(own) + addIn(aaa) + ok1, "<nil>", "1,4,1"},
			{"all three under a lock", "Lock: true", addIn(own) + addIn(aaa) + addIn(zzz) + ok1, "<nil>", "2,5,2"},
			{"a business answer", "Lock: true", addIn(own) + addIn(aaa) + addIn(zzz) + "return { Code: 0 };", "<nil>", "2,5,2"},
			{"an error", "", addIn(own) + addIn(aaa) + addIn(zzz) + "throw new Error('no');", "<nil>", "2,5,2"},
			{"one statement each", "Transaction: none", addIn(aaa) + addIn(own) + "throw new Error('no');", "<nil>", "3,6,2"},
			{"by FormEngine", "", "var r = V8.FormEngine.UptFormDataByWhere('counter', {n: 9, _Where: [['id', '=', 'a']]}, V8.Dbs.zzz); return { Code: r.Code, Data: r.DataCount };", "1", "3,6,9"},
			{"by FormEngine in one object", "", "return { Code: 1, Data: V8.FormEngine.GetTableData({FormEngineKey: 'counter'}, V8.Dbs.aaa).Data[0].n };", "6", "3,6,9"},
			{"a batch by FormEngine", "", "return V8.FormEngine.AddTableData('need', [{Id: 'x'}, {Id: 'y'}], V8.Dbs.aaa).DataCount === 2 ? { Code: 1, Data: V8.Dbs.aaa.FromSql('SELECT count(*) FROM need').ToScalar() } : { Code: 0 };", "2", "3,6,9"},
			{"an error that is caught", "", "try { V8.Dbs.aaa.FromSql('SELECT nothing FROM nowhere').First(); } catch (e) {}" + addIn(aaa) + ok1, "<nil>", "3,7,9"},
			{"not the tenant's own", "", "try { return { Code: 1, Data: V8.Dbs.zzz.FromSql('SELECT count(*) FROM staged').ToScalar() }; } catch (e) { return { Code: 1, Data: 'no table' }; }", "no table", "3,7,9"},
			{"no transaction control", "", "try { V8.Dbs.zzz.FromSql('COMMIT').ExecuteNonQuery(); } catch (e) { return { Code: 1, Data: e.message.includes('not available') }; }", "true", "3,7,9"},
		} {
			h.load(t, tenant, fstest.MapFS{"run.js": js("Category: x\n"+c.header, c.code)})
			a := h.do(tenant, "POST", "/apiengine/run", "{}")
			if got := fmt.Sprint(a.JSON.Data); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, a.Body, c.want)
			}
			if sum := h.data(tenant, "sum"); sum != c.sum {
				t.Errorf("%s: the databases have %s, want %s: %s", c.name, sum, c.sum, a.Body)
			}
		}
	})
}

// A name that is not there is told with the nearest, one that is removed is gone and comes
// back with what it held, and a name that is no name never becomes a file or a schema.
func TestTheNamesOfDatabases(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		tenant := h.dbsTenant(t, fstest.MapFS{
			"typo.js": js("Category: x", "return { Code: 1, Data: V8.Dbs.zzx.FromSql('SELECT 1').ToScalar() };"),
			"add.js":  js("Category: x", addIn(aaa)+ok1),
			"any.js":  js("Category: x", "try { return { Code: 1, Data: V8.Dbs[V8.Param.Name].FromSql('SELECT 1').ToScalar() }; } catch (e) { return { Code: 0, Msg: e.message }; }"),
		})
		if a := h.do(tenant, "POST", "/apiengine/typo", "{}"); a.kind() != "script_error" || !strings.Contains(a.Body, "did you mean zzz?") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		for _, name := range []string{"", "../" + tenant, "..", "a/b", `a\\b`, "a.db", "own", "sqlite_master", "aaa\\u0000", "\\u212aaa", "aaa'", "toString"} {
			if a := h.do(tenant, "POST", "/apiengine/any", `{"Name":"`+name+`"}`); a.JSON.Code == 1 {
				t.Errorf("a script reaches %q: %s", name, a.Body)
			}
		}
		databases := "/admin/api/v1/tenants/" + tenant + "/databases"
		for _, name := range []string{"", "..", "../x", "a/b", `a\\b`, "a b", "a-b", "a.db", "9a", "_a", "_apiengine_x", "a\\u0000", "库", "\\u212aaa", "then", "Length", "tostring", strings.Repeat("a", 41)} {
			if a := h.do(tenant, "POST", databases, `{"Name":"`+name+`"}`); a.Status != 400 {
				t.Errorf("a database %q: %d %s", name, a.Status, a.Body)
			}
		}
		if a := h.do(tenant, "POST", databases, `{"Name":"Aaa"}`); a.Status != 409 {
			t.Errorf("the same again: %d %s", a.Status, a.Body)
		}
		h.do(tenant, "POST", "/apiengine/add", "{}")
		if a := h.do(tenant, "DELETE", databases+"/aaa", ""); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		if a := h.do(tenant, "POST", "/apiengine/add", "{}"); a.kind() != "script_error" || !strings.Contains(a.Body, "V8.Dbs.aaa") {
			t.Errorf("removed: %d %s", a.Status, a.Body)
		}
		if a := h.do(tenant, "POST", "/admin/api/v1/sql", `{"Sql":"SELECT 1","Database":"aaa"}`); a.Status != 404 {
			t.Errorf("an administrator, removed: %d %s", a.Status, a.Body)
		}
		if err := h.app.LoadFolder(t.Context(), tenant, fstest.MapFS{"schema/zzs/0001_x.sql": {Data: []byte(dbsTables)}}); err == nil || !strings.Contains(err.Error(), "schema/zzs") || !strings.Contains(err.Error(), "did you mean zzz?") {
			t.Errorf("a schema for nothing: %v", err)
		}
		h.named(t, tenant, "aaa")
		if sum := h.data(tenant, "sum"); sum != "0,1,0" {
			t.Errorf("added again it has %s", sum)
		}
		list := h.do(tenant, "GET", databases, "")
		if !strings.Contains(list.Body, `"Name":"aaa"`) || !strings.Contains(list.Body, `"Name":"zzz"`) {
			t.Errorf("the list: %s", list.Body)
		}
		trail := h.do(tenant, "GET", "/admin/api/v1/audit", "").Body
		if strings.Count(trail, "tenant.database.add") != 3 || strings.Count(trail, "tenant.database.remove") != 1 {
			t.Errorf("the trail: %s", trail)
		}
	})
}

// Of two tenants with a database of the same name each has its own, and cannot name the
// other's, however it is written.
func TestTenantsDoNotShareNamedDatabases(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		files := fstest.MapFS{
			"add.js": js("Category: x", addIn(aaa)+ok1),
			"ask.js": js("Category: x", "return { Code: 1, Data: V8.Dbs.aaa.FromSql(V8.Param.Sql).ToArray() };"),
		}
		a, b := h.dbsTenant(t, files), h.dbsTenant(t, files)
		none := h.tenant(t)
		h.load(t, none, fstest.MapFS{"add.js": files["add.js"]})
		h.do(a, "POST", "/apiengine/add", "{}")
		if sums := h.data(a, "sum") + " " + h.data(b, "sum"); sums != "0,1,0 0,0,0" {
			t.Errorf("the two have %s", sums)
		}
		if got := h.do(none, "POST", "/apiengine/add", "{}"); got.kind() != "script_error" {
			t.Errorf("a tenant without: %d %s", got.Status, got.Body)
		}
		where := func(tenant string) (list []string) {
			for _, d := range h.do(tenant, "GET", "/admin/api/v1/tenants/"+tenant+"/databases", "").JSON.Data.([]any) {
				list = append(list, strings.TrimPrefix(d.(map[string]any)["Where"].(string), "schema "))
			}
			return list
		}
		places := append(where(a), "_apiengine_tenant_"+a, "_apiengine_tenant_"+b)
		for _, place := range places {
			for _, sql := range []string{`SELECT n FROM "` + place + `".counter`, "SELECT n FROM " + place + ".counter", `ATTACH '` + place + `' AS x`} {
				got := h.do(b, "POST", "/apiengine/ask", asJSON(map[string]any{"Sql": sql}))
				if got.JSON.Code == 1 {
					t.Errorf("%s: %s", sql, got.Body)
				}
				got = h.do(b, "POST", "/admin/api/v1/sql", asJSON(map[string]any{"Sql": sql, "Database": "aaa"}))
				if got.Status == 200 {
					t.Errorf("as an administrator: %s: %s", sql, got.Body)
				}
			}
		}
	})
}

// Runs that hold a connection each and want another do not stand still until they are out of
// time: whoever cannot have it within seconds is told so, and what it did is undone.
func TestAFurtherConnectionIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pair{postgres: true}, func(s *app.Settings) { s.DatabaseURL += "&pool_max_conns=2" })
	tenant := h.dbsTenant(t, fstest.MapFS{
		"hold.js": js("Timeout: 300", addIn(own)+sayStarted+untilLetGo+ok1),
		"both.js": js("Timeout: 300", addIn(zzz)+addIn(aaa)+ok1),
	})
	if a := h.do(tenant, "POST", "/apiengine/both", "{}"); a.JSON.Code != 1 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	hold := h.begin(t, tenant, "hold", "{}")
	if a := h.do(tenant, "POST", "/apiengine/both", "{}"); a.Status != 503 || a.kind() != "overloaded" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	h.do(tenant, "POST", "/apiengine/letgo", "{}")
	if a := <-hold; a.JSON.Code != 1 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	for _, database := range []string{"", "aaa", "zzz"} { // one connection at a time
		a := h.do(tenant, "POST", "/admin/api/v1/sql", asJSON(map[string]any{"Sql": "SELECT n FROM counter", "Database": database}))
		if !strings.Contains(a.Body, `"Rows":[[1]]`) {
			t.Errorf("%s has %s", database, a.Body)
		}
	}
}
