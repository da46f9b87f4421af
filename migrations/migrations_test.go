package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"apiengine/internal/testserver"
	"apiengine/migrations"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func targets(t *testing.T) map[string]migrations.Target {
	t.Helper()
	open := func(driver, dsn string) *sql.DB {
		db, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	path := filepath.Join(t.TempDir(), "p.db")
	lite := open("sqlite", path)
	lite.SetMaxOpenConns(1)
	pg := open("pgx", testserver.Database(t))
	pg.SetMaxOpenConns(2)
	return map[string]migrations.Target{
		"sqlite":   {DB: lite, LockPath: path + ".migrate"},
		"postgres": {DB: pg, Postgres: true},
	}
}

func TestUpAppliesOnce(t *testing.T) {
	for name, target := range targets(t) {
		first, err := migrations.Up(t.Context(), target)
		if err != nil || len(first) == 0 {
			t.Fatalf("%s: applied %v, %v", name, first, err)
		}
		again, err := migrations.Up(t.Context(), target)
		if err != nil || len(again) != 0 {
			t.Errorf("%s, again: applied %v, %v", name, again, err)
		}
		applied, pending, err := migrations.Status(t.Context(), target)
		if err != nil || len(applied) != len(first) || len(pending) != 0 {
			t.Errorf("%s: status %v, %v, %v", name, applied, pending, err)
		}
	}
}

func TestUpWaitsForAnotherProcess(t *testing.T) {
	for name, target := range targets(t) {
		var held *sql.Tx
		var err error
		if target.Postgres {
			if held, err = target.DB.Begin(); err == nil {
				_, err = held.Exec("SELECT pg_advisory_xact_lock(7021227703435487598)") // "apiengin"
			}
		} else {
			db, openErr := sql.Open("sqlite", target.LockPath+"?_txlock=exclusive")
			if openErr != nil {
				t.Fatal(openErr)
			}
			defer db.Close()
			held, err = db.Begin()
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := migrations.Up(ctx, target); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v while another process migrates, want the context's end", name, err)
		}
		if err := held.Rollback(); err != nil {
			t.Fatal(err)
		}
		if applied, err := migrations.Up(t.Context(), target); err != nil || len(applied) == 0 {
			t.Errorf("%s, afterwards: %v, %v", name, applied, err)
		}
	}
}
