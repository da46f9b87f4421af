package tenantdb_test

import (
	"context"
	"path/filepath"
	"testing"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

func TestSQLiteConfig(t *testing.T) {
	for name, cfg := range map[string]tenantdb.SQLiteConfig{
		"no path":        {},
		"an odd Sync":    {Path: filepath.Join(t.TempDir(), "x.db"), Sync: "off"},
		"odd Readers":    {Path: filepath.Join(t.TempDir(), "x.db"), Readers: -1},
		"missing folder": {Path: "/nonexistent/x.db"},
	} {
		if db, err := tenantdb.OpenSQLite(context.Background(), cfg); err == nil {
			db.Close()
			t.Errorf("%s was accepted", name)
		}
	}
}

// SQLite ends the transaction by itself on some errors; nothing may be committed after that.
func TestSQLiteRollsBackByItself(t *testing.T) {
	db := openSQLite(t)
	setup(t, db, "CREATE TABLE t (n INTEGER PRIMARY KEY ON CONFLICT ROLLBACK)", "INSERT INTO t VALUES (1)")
	tx := begin(t, db, tenantdb.Guard{})
	exec(t, tx, "INSERT INTO t VALUES (2)")
	_, err := tx.Exec(context.Background(), "INSERT INTO t VALUES (1)", nil)
	wantKind(t, "the conflict", err, fault.ScriptError)
	_, err = tx.Exec(context.Background(), "INSERT INTO t VALUES (3)", nil)
	wantKind(t, "a statement after it", err, fault.ScriptError)
	wantKind(t, "the commit", tx.Commit(context.Background()), fault.ScriptError)
	if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT n FROM t"); got != `[{"n":1}]` {
		t.Errorf("got %s", got)
	}
}

func TestSQLiteDiskFull(t *testing.T) {
	db := openSQLite(t)
	setup(t, db, "CREATE TABLE t (s TEXT)")
	if err := tenantdb.LimitPages(db, 20); err != nil {
		t.Fatal(err)
	}
	tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
	var err error
	for range 1000 {
		if _, err = tx.Exec(context.Background(), "INSERT INTO t VALUES (hex(randomblob(2000)))", nil); err != nil {
			break
		}
	}
	wantKind(t, "a full disk", err, fault.StoreUnavailable)
	wantKind(t, "the commit", tx.Commit(context.Background()), fault.StoreUnavailable)
	if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT * FROM t"); got != "[]" {
		t.Errorf("half of it was written: %s", got)
	}
}

func TestSQLiteViewsDoNotHideThePlatform(t *testing.T) {
	db := openSQLite(t)
	if _, err := db.ApplySchema(context.Background(), []tenantdb.SchemaFile{{Name: "1_t.sql",
		SQL: []byte("-- +goose Up\nCREATE TABLE t (n int);\nCREATE VIEW v AS SELECT * FROM sqlite_master;\n")}}); err != nil {
		t.Fatal(err)
	}
	tx := begin(t, db, tenantdb.Guard{})
	for _, sql := range []string{"SELECT * FROM '_apiengine_fence'", "SELECT * FROM pragma_table_info('t')",
		"INSERT INTO sqlite_master VALUES (1,1,1,1,1)", "UPDATE v SET name = 'x'"} {
		_, _, err := tx.Query(context.Background(), sql, nil)
		wantKind(t, sql, err, fault.ScriptError)
	}
}

func TestSQLiteClosed(t *testing.T) {
	db := openSQLite(t)
	if err := db.Ping(context.Background()); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	wantKind(t, "Ping", db.Ping(context.Background()), fault.StoreUnavailable)
	_, err := db.Begin(context.Background(), tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
	wantKind(t, "Begin", err, fault.StoreUnavailable)
}

// What one process has committed another opening of the file sees, and its guard too.
func TestSQLiteSurvivesReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := tenantdb.OpenSQLite(context.Background(), tenantdb.SQLiteConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 7, Owner: "me"})
	exec(t, tx, "CREATE TABLE t (n)")
	commit(t, tx)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = tenantdb.OpenSQLite(context.Background(), tenantdb.SQLiteConfig{Path: path}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Begin(context.Background(), tenantdb.Guard{Key: "k", Token: 6, Owner: "late"})
	wantKind(t, "a stale holder after the restart", err, fault.StaleFence)
}
