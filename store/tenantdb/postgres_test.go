package tenantdb_test

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

func TestPostgresConfig(t *testing.T) {
	pool := newPool(t, testserver.Postgres(t).URL("postgres"))
	for name, cfg := range map[string]tenantdb.PostgresConfig{
		"no pool": {Schema: "x"}, "no schema": {Pool: pool}, "a system schema": {Pool: pool, Schema: "pg_x"}, "too long": {Pool: pool, Schema: strings.Repeat("x", 64)},
	} {
		if _, err := tenantdb.OpenPostgres(context.Background(), cfg); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	away := newPool(t, "postgres://postgres@127.0.0.1:1/postgres?connect_timeout=1")
	_, err := tenantdb.OpenPostgres(context.Background(), tenantdb.PostgresConfig{Pool: away, Schema: "x"})
	wantKind(t, "no server", err, fault.StoreUnavailable)
	if strings.Contains(fault.Public(err), "127.0.0.1") {
		t.Errorf("the public text holds the address: %s", fault.Public(err))
	}
}

// Tenants share connections; each sees its own schema, whatever ran on the connection before.
func TestPostgresTenantsShareAPool(t *testing.T) {
	cfg, err := pgxpool.ParseConfig(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	a, b := openPostgres(t, pool), openPostgres(t, pool)
	setup(t, a, "CREATE TABLE t (n int)", "INSERT INTO t VALUES (1)")
	setup(t, b, "CREATE TABLE t (n text, m int)", "INSERT INTO t VALUES ('two', 2)")
	for range 3 {
		tx := begin(t, a, tenantdb.Guard{})
		if got := query(t, tx, "SELECT * FROM t"); got != `[{"n":1}]` {
			t.Errorf("a: %s", got)
		}
		commit(t, tx)
		tx = begin(t, b, tenantdb.Guard{})
		if got := query(t, tx, "SELECT * FROM t"); got != `[{"n":"two","m":2}]` {
			t.Errorf("b: %s", got)
		}
		tx.Rollback(context.Background())
	}
	holder := begin(t, a, tenantdb.Guard{})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_, err = b.Begin(ctx, tenantdb.Guard{})
	wantKind(t, "a pool that is used up", err, fault.Timeout)
	commit(t, holder)
}

// The server itself ends what outlives the run, even when this process is stopped.
func TestPostgresTimeLimits(t *testing.T) {
	db := openPostgres(t, nil)
	setup(t, db, "CREATE TABLE t (n int)", "INSERT INTO t VALUES (1)")
	until := func() time.Time { return time.Now().Add(300 * time.Millisecond) }
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT (i+1) % 1000 FROM n) SELECT count(*) FROM n"

	tx := begin(t, db, tenantdb.Guard{Until: until()})
	_, _, err := tx.Query(context.Background(), endless, nil)
	wantKind(t, "statement_timeout", err, fault.Timeout)

	holder := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "a"})
	exec(t, holder, "UPDATE t SET n = 2")
	_, err = db.Begin(context.Background(), tenantdb.Guard{Key: "k", Token: 2, Owner: "b", Until: until()})
	wantKind(t, "lock_timeout at the guard", err, fault.Timeout)
	tx = begin(t, db, tenantdb.Guard{Until: until()})
	_, err = tx.Exec(context.Background(), "UPDATE t SET n = 3", nil)
	wantKind(t, "lock_timeout at a row", err, fault.Timeout)
	holder.Rollback(context.Background())

	stalled := begin(t, db, tenantdb.Guard{Key: "k", Token: 3, Owner: "stalled", Until: until()})
	exec(t, stalled, "UPDATE t SET n = 4")
	// It stalls: the next holder gets in as soon as the server has ended it.
	next, err := db.Begin(context.Background(), tenantdb.Guard{Key: "k", Token: 4, Owner: "next", Until: time.Now().Add(10 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	if got := query(t, next, "SELECT n FROM t"); got != `[{"n":1}]` {
		t.Errorf("got %s", got)
	}
	_, err = stalled.Exec(context.Background(), "UPDATE t SET n = 5", nil)
	if k := fault.Of(err); k != fault.Timeout && k != fault.StoreUnavailable {
		t.Errorf("the stalled run goes on: %v", err)
	}
	if err := stalled.Commit(context.Background()); err == nil {
		t.Error("the stalled run committed")
	}
	commit(t, next)
	// NOWAIT is the script's own wish, an ordinary error.
	holder = begin(t, db, tenantdb.Guard{})
	exec(t, holder, "UPDATE t SET n = 6")
	tx = begin(t, db, tenantdb.Guard{Until: time.Now().Add(time.Minute)})
	_, _, err = tx.Query(context.Background(), "SELECT * FROM t FOR UPDATE NOWAIT", nil)
	wantKind(t, "NOWAIT", err, fault.ScriptError)
	commit(t, tx)
}

func TestPostgresConnectionTerminated(t *testing.T) {
	pool := newPool(t, testserver.Database(t))
	db := openPostgres(t, pool)
	setup(t, db, "CREATE TABLE t (n int)")
	for _, g := range []tenantdb.Guard{{}, {Key: "k", Token: 1, Owner: "me"}} {
		tx := begin(t, db, g)
		exec(t, tx, "INSERT INTO t VALUES (1)")
		terminate(t, pool)
		_, err := tx.Exec(context.Background(), "INSERT INTO t VALUES (2)", nil)
		wantKind(t, "a statement", err, fault.StoreUnavailable)
		_, err = tx.Exec(context.Background(), "INSERT INTO t VALUES (2)", nil)
		wantKind(t, "the next statement", err, fault.StoreUnavailable)
		wantKind(t, "the commit", tx.Commit(context.Background()), fault.StoreUnavailable)
	}
	if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT * FROM t"); got != "[]" {
		t.Errorf("got %s", got)
	}
}

// terminate ends every session of the pool's database.
func terminate(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	c, err := pgx.ConnectConfig(context.Background(), pool.Config().ConnConfig.Copy())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(context.Background(), `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
}

// A pool full of connections that the server has ended still begins a transaction.
func TestPostgresBeginAfterARestart(t *testing.T) {
	pool := newPool(t, testserver.Database(t))
	db := openPostgres(t, pool)
	a, b := begin(t, db, tenantdb.Guard{}), begin(t, db, tenantdb.Guard{})
	commit(t, a)
	commit(t, b)
	terminate(t, pool)
	tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
	commit(t, tx)
}

// Behind a transaction pooler the session may lack what was prepared, or hold it already.
func TestPostgresPreparedStatementsThatAreLost(t *testing.T) {
	for _, sql := range []string{"DEALLOCATE ALL", "PREPARE apiengine_guard AS SELECT 1"} {
		cfg, err := pgxpool.ParseConfig(testserver.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		cfg.MaxConns = 1
		pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		db := openPostgres(t, pool)
		if strings.HasPrefix(sql, "DEALLOCATE") {
			commit(t, begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"}))
		}
		if _, err := pool.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
		for token := range int64(3) {
			commit(t, begin(t, db, tenantdb.Guard{Key: "k", Token: token + 2, Owner: "me"}))
		}
	}
}

func TestPostgresRefusesOddSettings(t *testing.T) {
	for setting, value := range map[string]string{"standard_conforming_strings": "off", "DateStyle": "German"} {
		u, err := url.Parse(testserver.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set(setting, value)
		u.RawQuery = q.Encode()
		_, err = openPostgres(t, newPool(t, u.String())).Begin(context.Background(), tenantdb.Guard{})
		if fault.Of(err) != fault.StoreUnavailable || !strings.Contains(err.Error(), setting) {
			t.Errorf("%s = %s: %v", setting, value, err)
		}
	}
}

func TestPostgresNULAndManyParameters(t *testing.T) {
	tx := begin(t, openPostgres(t, nil), tenantdb.Guard{})
	_, err := tx.Scalar(context.Background(), "SELECT @p", p("p", "a\x00b"))
	wantKind(t, "NUL", err, fault.ScriptError)
	params := map[string]any{}
	var sql strings.Builder
	for i := range 30001 {
		params["p"+strconv.Itoa(i)] = "x"
		fmt.Fprintf(&sql, ", @p%d", i)
	}
	_, err = tx.Scalar(context.Background(), "SELECT 1"+sql.String(), params)
	wantKind(t, "too many parameters", err, fault.ScriptError)
	commit(t, tx)
}
