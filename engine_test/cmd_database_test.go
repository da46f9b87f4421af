package engine_test

import (
	"strings"
	"testing"
)

// An administrator gives a tenant a database, its tables come from the folder schema/<name>
// of a watched or pushed folder, and it is taken away again, by commands alone.
func TestDatabaseCommands(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	write(t, dir, "a.js", "return { Code: 1 };")
	n := startNode(t, "--data-dir", t.TempDir(), "--apis-dir", dir)
	n.cli("tenant", "database", "list", "default", "--json").want(t, 0, "[]")
	n.cli("tenant", "database", "add", "default", "erp").want(t, 0, "erp")
	n.cli("tenant", "database", "add", "default", "erp").want(t, 1, "exists already")
	n.cli("tenant", "database", "add", "default", "../erp").want(t, 1, "a letter")
	n.cli("tenant", "database", "add", "nobody", "erp").want(t, 1, "nobody")
	n.cli("tenant", "database", "list", "default").want(t, 0, "tenants/default/erp.db")

	table := func(name string) string {
		return "-- +goose Up\nCREATE TABLE " + name + " (n INTEGER);\n-- +goose Down\nDROP TABLE " + name + ";"
	}
	has := func(name string) {
		t.Helper()
		await(t, "the table "+name, func() bool {
			a := n.call(t, "POST", "/admin/api/v1/sql", map[string]any{"Sql": "SELECT count(*) FROM " + name, "Database": "erp"})
			return strings.Contains(a.Body, `"Rows":[[0]]`)
		})
	}
	write(t, dir, "schema/erp/0001_first.sql", table("first"))
	has("first")
	write(t, dir, "schema/erp/0002_second.sql", table("second"))
	has("second")
	write(t, dir, "schema/erq/0001_none.sql", table("none"))
	n.logs(t, "V8.Dbs.erq: the tenant has no such database; did you mean erp?")

	write(t, other, "schema/erp/0003_third.sql", table("third"))
	n.cli("push", other).want(t, 0, "applied    schema/erp/0003_third.sql")
	n.cli("sql", "--database", "erp", "SELECT count(*) AS found FROM third").want(t, 0, "found")
	n.cli("sql", "SELECT count(*) FROM third").want(t, 1, "third") // the tenant's own has none
	n.cli("sql", "--database", "err", "SELECT 1").want(t, 1, "did you mean erp?")

	n.cli("tenant", "database", "remove", "default", "erp").want(t, 0, "removed erp")
	n.cli("tenant", "database", "remove", "default", "erp").want(t, 1, "erp")
	n.cli("sql", "--database", "erp", "SELECT 1").want(t, 1, "no such database")
}
