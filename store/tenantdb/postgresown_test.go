package tenantdb_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

// neighbours opens two tenants of one database and returns the tables of the second one
// that the first must not reach, in ways of naming them that the check of statements cannot see.
func neighbours(t *testing.T) (pool *pgxpool.Pool, a *tenantdb.DB, secret string) {
	t.Helper()
	pool = newPool(t, testserver.Database(t))
	open := func(schema string) *tenantdb.DB {
		db, err := tenantdb.OpenPostgres(context.Background(), tenantdb.PostgresConfig{Pool: pool, Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	a, b := open("_apiengine_tenant_a"), open("_apiengine_tenant_b")
	setup(t, b, "CREATE TABLE secrets (n int)", "INSERT INTO secrets VALUES (42)", "CREATE SEQUENCE numbers")
	commit(t, begin(t, b, tenantdb.Guard{Key: "k", Token: 5, Owner: "b"}))
	commit(t, begin(t, a, tenantdb.Guard{Key: "k", Token: 5, Owner: "a"}))
	if _, err := pool.Exec(context.Background(), "CREATE SCHEMA _apiengine_platform; CREATE TABLE _apiengine_platform.tokens (hash text)"); err != nil {
		t.Fatal(err)
	}
	return pool, a, "_apiengine_tenant_b"
}

// What takes a name as text gets past any check of the statement; the tenant's role stops it.
func TestATenantsRoleReachesNothingElse(t *testing.T) {
	pool, db, other := neighbours(t)
	tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 6, Owner: "a"})
	for _, c := range []struct{ sql, p string }{
		{"SELECT nextval(@p)", other + ".numbers"},
		{"SELECT setval(@p, 7)", other + ".numbers"},
		{"SELECT currval(@p)", other + ".numbers"},
		{"SELECT nextval((@p || 'numbers')::regclass)", other + "."},
	} {
		_, _, err := tx.Query(context.Background(), c.sql, p("p", c.p))
		if err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s with %s: %v", c.sql, c.p, err)
		}
	}
	if got := query(t, tx, "SELECT current_user::text = session_user::text AS same, current_schema()::text AS s"); got != `[{"same":false,"s":"_apiengine_tenant_a"}]` {
		t.Errorf("a statement runs as %s", got)
	}
	// The check of statements apart, the role alone stops these.
	for _, sql := range []string{
		"SELECT * FROM " + other + ".secrets",
		"UPDATE " + other + ".secrets SET n = 0",
		"DROP TABLE " + other + ".secrets",
		`SELECT * FROM "_apiengine_tenant_a:own"._apiengine_fence`,
		`UPDATE "_apiengine_tenant_a:own"._apiengine_fence SET token = 1`,
		`DROP SCHEMA "_apiengine_tenant_a:own" CASCADE`,
		"DROP SCHEMA _apiengine_tenant_a CASCADE",
		"SELECT * FROM _apiengine_fence",
		"SELECT hash FROM _apiengine_platform.tokens",
		"COPY (SELECT 1) TO PROGRAM 'true'",
		"SELECT pg_read_file('/etc/passwd')",
		"SELECT rolpassword FROM pg_authid",
		"CREATE ROLE x",
		"ALTER SYSTEM SET work_mem = 1",
	} {
		tx := begin(t, db, tenantdb.Guard{})
		if err := tx.QueryBare(context.Background(), sql); err == nil {
			t.Errorf("%s was carried out", sql)
		}
		tx.Rollback(context.Background())
	}
	var n int
	if err := pool.QueryRow(context.Background(), "SELECT n FROM "+other+".secrets").Scan(&n); err != nil || n != 42 {
		t.Errorf("%d, %v", n, err)
	}
}

// A schema file may hold any statement, and make functions that scripts then call: neither
// gets out of the tenant's role.
func TestASchemaFileStaysInItsRole(t *testing.T) {
	_, db, other := neighbours(t)
	escape := func(inner string) string {
		return "-- +goose StatementBegin\n" + inner + ";\n-- +goose StatementEnd\n"
	}
	name := fmt.Sprintf("'%s' || '%s'", other[:5], other[5:]) // past the check of the files' text
	for i, file := range []string{
		"RESET ROLE;\n" + escape("DO $$ BEGIN EXECUTE 'SELECT * FROM ' || "+name+" || '.secrets'; END $$"),
		escape("DO $$ BEGIN EXECUTE 'SET ROLE postgres'; END $$"),
		escape("DO $$ BEGIN PERFORM set_config('role', 'none', false); EXECUTE 'DROP TABLE ' || " + name + " || '.secrets'; END $$"),
		"SET SESSION AUTHORIZATION postgres;",
	} {
		_, err := db.ApplySchema(context.Background(), []tenantdb.SchemaFile{file1(i+1, file)})
		if err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := db.ApplySchema(context.Background(), []tenantdb.SchemaFile{file1(9, "CREATE TABLE mine (n int);\n"+
		escape("CREATE FUNCTION reset_role() RETURNS text LANGUAGE plpgsql AS 'BEGIN EXECUTE ''RESET ROLE''; RETURN current_user; END'")+
		escape("CREATE FUNCTION unset_role() RETURNS text LANGUAGE sql AS 'SELECT set_config(''role'', ''none'', true)'")+
		escape("CREATE FUNCTION on_insert() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN EXECUTE ''SET LOCAL ROLE NONE''; RETURN NEW; END'")+
		"CREATE TRIGGER t BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION on_insert();\n")}); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := db.Statement(context.Background(), "CREATE FUNCTION later() RETURNS text LANGUAGE sql AS 'SELECT set_config(''role'', ''none'', true)'"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"SELECT reset_role()", "SELECT unset_role()", "SELECT later()", "INSERT INTO mine VALUES (1)"} {
		tx := begin(t, db, tenantdb.Guard{})
		_, _, err := tx.Query(context.Background(), sql, nil)
		if err == nil || !strings.Contains(err.Error(), `cannot set parameter "role"`) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func file1(version int, sql string) tenantdb.SchemaFile {
	return file(fmt.Sprintf("%d_x.sql", version), up+sql)
}

// A database that an earlier version made, with everything in one schema and one role's, is
// taken over as it is.
func TestAnOldDatabaseIsMovedInPlace(t *testing.T) {
	pool := newPool(t, testserver.Database(t))
	ctx := context.Background()
	if _, err := pool.Exec(ctx, `CREATE SCHEMA old; SET search_path = old;
		CREATE TABLE _apiengine_fence (lock_key text PRIMARY KEY, token bigint NOT NULL, owner text NOT NULL, sealed_at timestamptz NOT NULL);
		INSERT INTO _apiengine_fence VALUES ('k', 100, 'me', now());
		CREATE TABLE _apiengine_schema (id int);
		CREATE TABLE orders (id serial PRIMARY KEY, n int GENERATED BY DEFAULT AS IDENTITY); INSERT INTO orders DEFAULT VALUES;
		CREATE VIEW seen AS SELECT id FROM orders; CREATE SEQUENCE alone; CREATE TYPE mood AS ENUM ('ok'); CREATE DOMAIN d AS int;
		CREATE FUNCTION two() RETURNS int LANGUAGE sql AS 'SELECT 2'; CREATE INDEX i ON orders (n); RESET search_path`); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		db, err := tenantdb.OpenPostgres(ctx, tenantdb.PostgresConfig{Pool: pool, Schema: "old"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Begin(ctx, tenantdb.Guard{Key: "k", Token: 99, Owner: "late"})
		wantKind(t, "a stale token", err, fault.StaleFence)
		tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 101, Owner: "me"})
		exec(t, tx, "INSERT INTO orders DEFAULT VALUES")
		exec(t, tx, "ALTER TABLE orders ADD COLUMN x mood")
		exec(t, tx, "CREATE OR REPLACE VIEW seen AS SELECT id FROM orders")
		query(t, tx, "SELECT nextval('alone'), two(), count(*) FROM seen")
		tx.Rollback(ctx)
	}
	var owners string
	if err := pool.QueryRow(ctx, `SELECT string_agg(DISTINCT relowner::regrole::text, ' ') FROM pg_class
		WHERE relnamespace = 'old'::regnamespace`).Scan(&owners); err != nil || !strings.HasPrefix(owners, `"old@`) || strings.Contains(owners, " ") {
		t.Errorf("owners: %s, %v", owners, err)
	}
}

// The platform's login need not be a superuser: CREATEROLE is enough, or a role that was
// made for the tenant by hand; without either the error says what to do.
func TestRolesWithoutASuperuser(t *testing.T) {
	address := testserver.Database(t)
	admin := newPool(t, address)
	ctx := context.Background()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	login := func(user, attributes string) *pgxpool.Pool {
		if _, err := admin.Exec(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN %s; GRANT CREATE ON DATABASE %s TO %[1]s", user, attributes, name)); err != nil {
			t.Fatal(err)
		}
		u.User = url.User(user)
		return newPool(t, u.String())
	}
	maker := login("maker_"+name, "CREATEROLE")
	db, err := tenantdb.OpenPostgres(ctx, tenantdb.PostgresConfig{Pool: maker, Schema: "made"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ApplySchema(ctx, []tenantdb.SchemaFile{file1(1, "CREATE TABLE t (n int);")}); err != nil {
		t.Fatal(err)
	}
	tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
	exec(t, tx, "INSERT INTO t VALUES (1)")
	commit(t, tx)

	plain := login("plain_"+name, "")
	_, err = tenantdb.OpenPostgres(ctx, tenantdb.PostgresConfig{Pool: plain, Schema: "unmade"})
	if fault.Of(err) != fault.StoreUnavailable || !strings.Contains(fault.Public(err), "CREATE ROLE") || !strings.Contains(fault.Public(err), "--tenant-roles=off") {
		t.Errorf("without the right: %v", err)
	}
	shared, err := tenantdb.OpenPostgres(ctx, tenantdb.PostgresConfig{Pool: plain, Schema: "unmade", Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	setup(t, shared, "CREATE TABLE t (n int)", "INSERT INTO t VALUES (1)")
	commit(t, begin(t, shared, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"}))
}
