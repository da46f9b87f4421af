package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// Tenants share a PostgreSQL database, and neither scripts nor administrators' statements
// can name another tenant's schema or the platform's, however it is written.
func TestTenantsOnPostgresCannotNameEachOther(t *testing.T) {
	h := newHouse(t, pair{postgres: true})
	owner, other := h.tenant(t), h.tenant(t)
	h.load(t, owner, counterFiles())
	h.load(t, other, fstest.MapFS{"ask.js": js("Category: x", "return { Code: 1, Data: V8.Db.FromSql(V8.Param.Sql).ToArray() };")})
	schema := "_apiengine_tenant_" + owner
	for _, sql := range []string{
		"SELECT n FROM " + schema + ".counter",
		`SELECT n FROM "` + schema + `".counter`,
		"SELECT n FROM " + strings.ToUpper(schema) + ".counter",
		"SELECT n FROM " + schema + "/* */ . /* */counter",
		`SELECT n FROM U&"\005f` + schema[1:] + `".counter`,
		"WITH x AS (UPDATE " + schema + ".counter SET n = 9 RETURNING n) SELECT n FROM x",
		"SELECT hash FROM _apiengine_platform.tokens",
	} {
		a := h.do(other, "POST", "/apiengine/ask", asJSON(map[string]any{"Sql": sql}))
		if a.Status != 500 || a.kind() != "script_error" {
			t.Errorf("%s: %d %s", sql, a.Status, a.Body)
		}
		if a := h.do(other, "POST", "/admin/api/v1/sql", asJSON(map[string]any{"Sql": sql})); a.Status == 200 {
			t.Errorf("as an administrator of the tenant: %s: %s", sql, a.Body)
		}
	}
	if a := h.do(owner, "POST", "/apiengine/add_one", `{"Id":"a"}`); a.JSON.Code != 1 || !strings.Contains(a.Body, `"N":1`) {
		t.Error(fmt.Sprint("the owner's own: ", a.Body))
	}
}
