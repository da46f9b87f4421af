package tenantdb_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

func TestMain(m *testing.M) { testserver.Main(m) }

var schemas atomic.Int64

// openSQLite and openPostgres open an empty database; a nil pool is one of the test's own.
func openSQLite(t testing.TB) *tenantdb.DB {
	t.Helper()
	db, err := tenantdb.OpenSQLite(context.Background(), tenantdb.SQLiteConfig{
		Path: filepath.Join(t.TempDir(), "tenant.db"), Sync: "normal", MaxRows: 1000, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func newPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func openPostgres(t testing.TB, pool *pgxpool.Pool) *tenantdb.DB {
	t.Helper()
	if pool == nil {
		pool = newPool(t, testserver.Postgres(t).URL("postgres"))
	}
	db, err := tenantdb.OpenPostgres(context.Background(), tenantdb.PostgresConfig{
		Pool: pool, Schema: fmt.Sprintf("Odd \"Tenant\" %d", schemas.Add(1)), MaxRows: 1000, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// each runs the test on both dialects: this suite is the contract of both.
func each(t *testing.T, test func(t *testing.T, db *tenantdb.DB)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, openSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, openPostgres(t, nil)) })
}

// byDialect picks what differs.
func byDialect(db *tenantdb.DB, sqlite, postgres string) string {
	if db.Dialect() == "sqlite" {
		return sqlite
	}
	return postgres
}

func begin(t testing.TB, db *tenantdb.DB, g tenantdb.Guard) *tenantdb.Tx {
	t.Helper()
	tx, err := db.Begin(context.Background(), g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	return tx
}

func commit(t testing.TB, tx *tenantdb.Tx) {
	t.Helper()
	if err := tx.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// p makes parameters of name, value, name, value ...
func p(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func exec(t testing.TB, tx *tenantdb.Tx, sql string, params ...any) int64 {
	t.Helper()
	n, err := tx.Exec(context.Background(), sql, p(params...))
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func query(t testing.TB, tx *tenantdb.Tx, sql string, params ...any) string {
	t.Helper()
	rows, _, err := tx.Query(context.Background(), sql, p(params...))
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return string(rows)
}

// setup runs statements in a transaction of their own.
func setup(t testing.TB, db *tenantdb.DB, statements ...string) {
	t.Helper()
	tx := begin(t, db, tenantdb.Guard{})
	for _, s := range statements {
		exec(t, tx, s)
	}
	commit(t, tx)
}

func wantKind(t testing.TB, what string, err error, want fault.Kind) {
	t.Helper()
	if fault.Of(err) != want {
		t.Errorf("%s: got %q (%v), want %q", what, fault.Of(err), err, want)
	}
}

func TestStatements(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{})
		exec(t, tx, `CREATE TABLE orders ("Id" text PRIMARY KEY, n int, amount double precision)`)
		if n := exec(t, tx, `INSERT INTO orders VALUES (@id, @n, @a), ('2', 7, 1.5)`, "@id", "1", "n", 5.0, "@a", 2.25); n != 2 {
			t.Errorf("inserted %d", n)
		}
		if got := query(t, tx, `SELECT "Id", n, amount FROM orders ORDER BY "Id"`); got != `[{"Id":"1","n":5,"amount":2.25},{"Id":"2","n":7,"amount":1.5}]` {
			t.Errorf("got %s", got)
		}
		for value, want := range map[any]string{1.0: "1", "1": "1", int64(2): "1", "none": "0"} {
			got, err := tx.Scalar(context.Background(), `SELECT count(*) FROM orders WHERE "Id" = @id`, p("id", value))
			if err != nil || string(got) != want {
				t.Errorf("Id = %v: got %s, %v", value, got, err)
			}
		}
		if got, err := tx.Scalar(context.Background(), "SELECT n FROM orders WHERE n = @n", p("n", "7")); err != nil || string(got) != "7" {
			t.Errorf("a number given as text: got %s, %v", got, err)
		}
		if got, err := tx.Scalar(context.Background(), "SELECT n FROM orders WHERE n > 100", nil); err != nil || string(got) != "null" {
			t.Errorf("no row: got %s, %v", got, err)
		}
		if n := exec(t, tx, "UPDATE orders SET n = n + @d WHERE n > @m", "d", 1.0, "m", 5.5); n != 1 {
			t.Errorf("updated %d", n)
		}
		if n := exec(t, tx, "SELECT * FROM orders"); n != 0 {
			t.Errorf("a SELECT changed %d rows", n)
		}
		if got := query(t, tx, "DELETE FROM orders WHERE n = 5 RETURNING n"); got != `[{"n":5}]` {
			t.Errorf("RETURNING gave %s", got)
		}
		if got := query(t, tx, `SELECT 1 AS a, 2 AS b, 3 AS a`); got != `[{"b":2,"a":3}]` {
			t.Errorf("two columns of one name: %s", got)
		}
		commit(t, tx)
	})
}

func TestAFailedStatementLeavesTheTransactionUsable(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		setup(t, db, "CREATE TABLE t (id int PRIMARY KEY)")
		tx := begin(t, db, tenantdb.Guard{})
		exec(t, tx, "INSERT INTO t VALUES (1)")
		for _, sql := range []string{"INSERT INTO t VALUES (1)", "SELECT * FROM nowhere", "SELECT wrong syntax here", "INSERT INTO t VALUES (2), (2)"} {
			_, _, err := tx.Query(context.Background(), sql, nil)
			if e := new(tenantdb.SQLError); !errors.As(err, &e) || e.Public() == "" {
				t.Errorf("%s: got %v", sql, err)
			}
		}
		exec(t, tx, "INSERT INTO t VALUES (3)")
		commit(t, tx)
		tx = begin(t, db, tenantdb.Guard{})
		if got := query(t, tx, "SELECT id FROM t ORDER BY id"); got != `[{"id":1},{"id":3}]` {
			t.Errorf("got %s", got)
		}
	})
}

func TestTheScriptCannotReachThePlatform(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
		for _, sql := range []string{"COMMIT", "SELECT * FROM _apiengine_fence", "SELECT 1; SELECT 2", "DROP TABLE _APIENGINE_FENCE",
			byDialect(db, "DELETE FROM sqlite_master", "DELETE FROM pg_class"),
			byDialect(db, "SELECT * FROM pragma_database_list", "SELECT pg_sleep(100)")} {
			_, _, err := tx.Query(context.Background(), sql, nil)
			if e := new(tenantdb.SQLError); !errors.As(err, &e) {
				t.Errorf("%s: got %v", sql, err)
			}
		}
		commit(t, tx)
	})
}

func TestLimits(t *testing.T) {
	numbers := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < @max) SELECT i FROM n"
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{})
		if _, n, err := tx.Query(context.Background(), numbers, p("max", 1000)); err != nil || n != 1000 {
			t.Errorf("at the limit: %d rows, %v", n, err)
		}
		_, _, err := tx.Query(context.Background(), numbers, p("max", 2e9))
		wantKind(t, "too many rows", err, fault.LimitOutput)
		tx = begin(t, db, tenantdb.Guard{})
		_, _, err = tx.Query(context.Background(), "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1000) SELECT @x AS x FROM n", p("x", strings.Repeat("x", 2000)))
		wantKind(t, "too many bytes", err, fault.LimitOutput)
		tx = begin(t, db, tenantdb.Guard{})
		_, _, err = tx.Query(context.Background(), byDialect(db, "SELECT hex(zeroblob(8000000)) AS x", "SELECT repeat('x', 16000000) AS x"), nil)
		wantKind(t, "one row too large", err, fault.LimitOutput)
		tx = begin(t, db, tenantdb.Guard{})
		_, _, err = tx.Query(context.Background(), "SELECT @x", p("x", strings.Repeat("x", 2<<20)))
		wantKind(t, "a parameter too large", err, fault.ScriptError)
	})
}
