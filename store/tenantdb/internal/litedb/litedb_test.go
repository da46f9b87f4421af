package litedb_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"apiengine/store/tenantdb/internal/litedb"
)

func open(t *testing.T, cfg litedb.Config) *litedb.Conn {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "odd ?#% name.db")
	}
	c, err := litedb.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func must(t *testing.T, c *litedb.Conn, sql string, args ...any) int64 {
	t.Helper()
	n, err := c.Run(context.Background(), litedb.Call{SQL: sql, Args: args})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func TestTextComesBackAsItWasStored(t *testing.T) {
	c := open(t, litedb.Config{})
	must(t, c, "CREATE TABLE t (at DATETIME)")
	const stored = "2026-01-02T03:04:05.120Z"
	must(t, c, "INSERT INTO t VALUES (?1)", stored)
	var got string
	_, err := c.Run(context.Background(), litedb.Call{SQL: "SELECT at FROM t", Row: func(s *litedb.Stmt) error {
		got = string(s.Bytes(0))
		return nil
	}})
	if err != nil || got != stored {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestDeadlineStopsASecondRow(t *testing.T) {
	c := open(t, litedb.Config{})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	must(t, c, "BEGIN IMMEDIATE")
	rows := 0
	_, err := c.Run(ctx, litedb.Call{
		SQL: "SELECT 1 UNION ALL SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n)",
		Row: func(*litedb.Stmt) error { rows++; return nil },
	})
	if !errors.Is(err, context.DeadlineExceeded) || rows != 1 {
		t.Errorf("got %d rows, %v", rows, err)
	}
	if !c.InTx() {
		t.Error("a read that was stopped ended the transaction")
	}
}

func TestInterruptedWriteSaysThatTheTransactionIsGone(t *testing.T) {
	c := open(t, litedb.Config{})
	must(t, c, "CREATE TABLE t (n)")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	must(t, c, "BEGIN IMMEDIATE")
	_, err := c.Run(ctx, litedb.Call{SQL: "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if c.InTx() {
		t.Error("SQLite ends the transaction of an interrupted write; InTx says otherwise")
	}
}

func TestChangedRows(t *testing.T) {
	c := open(t, litedb.Config{})
	must(t, c, "CREATE TABLE t (n)")
	if n := must(t, c, "INSERT INTO t VALUES (1),(2),(3)"); n != 3 {
		t.Errorf("insert changed %d", n)
	}
	for _, sql := range []string{"SELECT * FROM t", "UPDATE t SET n = 0 WHERE n = 9", "CREATE TABLE u (n)"} {
		if n := must(t, c, sql); n != 0 {
			t.Errorf("%s changed %d", sql, n)
		}
	}
}

func TestAllowIsAskedForScriptsOnly(t *testing.T) {
	c := open(t, litedb.Config{Allow: func(_ int, a, b string) string {
		if strings.HasPrefix(a, "secret") || strings.HasPrefix(b, "secret") {
			return "secret tables"
		}
		return ""
	}})
	must(t, c, "CREATE TABLE secret (n)")
	must(t, c, "CREATE VIEW v AS SELECT n FROM secret")
	for range 2 { // the second time from the statement cache
		must(t, c, "SELECT * FROM v")
		_, err := c.Run(context.Background(), litedb.Call{SQL: "SELECT * FROM v", Script: true})
		if e := new(litedb.Error); !errors.As(err, &e) || e.Denied != "secret tables" {
			t.Errorf("got %v", err)
		}
	}
}

func TestStatementsAreReusedAcrossSchemaChanges(t *testing.T) {
	c := open(t, litedb.Config{MaxStmts: 3})
	must(t, c, "CREATE TABLE t (a)")
	must(t, c, "INSERT INTO t VALUES (1)")
	names := func() (out []string) {
		_, err := c.Run(context.Background(), litedb.Call{SQL: "SELECT * FROM t", Columns: func(s *litedb.Stmt) error {
			for _, col := range s.Columns() {
				out = append(out, col.Name)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	names()
	must(t, c, "ALTER TABLE t ADD COLUMN b")
	if got := names(); len(got) != 2 {
		t.Errorf("columns after ALTER: %v", got)
	}
	for _, sql := range []string{"SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4", "SELECT 1"} {
		must(t, c, sql)
	}
}

func TestRefusals(t *testing.T) {
	c := open(t, litedb.Config{MaxLength: 1 << 20})
	for name, sql := range map[string]string{
		"double quotes are no strings": `SELECT "x"`,
		"a bomb":                       "SELECT zeroblob(2000000)",
		"the schema table":             "DELETE FROM sqlite_master",
		"extensions":                   "SELECT load_extension('x')",
	} {
		if _, err := c.Run(context.Background(), litedb.Call{SQL: sql}); err == nil {
			t.Errorf("%s: %s was run", name, sql)
		}
	}
	if _, err := c.Run(context.Background(), litedb.Call{SQL: "-- nothing"}); !errors.Is(err, litedb.ErrNoStatement) {
		t.Errorf("an empty statement: %v", err)
	}
	if _, err := litedb.Open(litedb.Config{Path: "/nonexistent/dir/x.db"}); err == nil {
		t.Error("a missing folder was opened")
	}
}
