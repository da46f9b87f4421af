package tenantdb_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

// Tasks of a database that was made before they had Best go on, and Best never goes back.
func TestTasksOfAnEarlierVersion(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "tenant.db")
	pool := newPool(t, testserver.Postgres(t).URL("postgres"))
	schema := fmt.Sprintf("earlier %d", schemas.Add(1))
	for _, c := range []struct {
		name string
		open func() (*tenantdb.DB, error)
		age  func() error
	}{
		{"sqlite", func() (*tenantdb.DB, error) {
			return tenantdb.OpenSQLite(ctx, tenantdb.SQLiteConfig{Path: path, Sync: "normal"})
		}, func() error {
			conns, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			defer conns.Close()
			_, err = conns.ExecContext(ctx, "ALTER TABLE _apiengine_tasks DROP COLUMN best")
			return err
		}},
		{"postgres", func() (*tenantdb.DB, error) {
			return tenantdb.OpenPostgres(ctx, tenantdb.PostgresConfig{Pool: pool, Schema: schema})
		}, func() error {
			_, err := pool.Exec(ctx, fmt.Sprintf(`ALTER TABLE "%s:own"._apiengine_tasks DROP COLUMN best`, schema))
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reopen := func(db *tenantdb.DB) *tenantdb.DB {
				t.Helper()
				if db != nil {
					if err := db.Close(); err != nil {
						t.Fatal(err)
					}
				}
				db, err := c.open()
				if err != nil {
					t.Fatal(err)
				}
				return db
			}
			db := reopen(nil)
			add(t, db, wish("t1"))
			if err := c.age(); err != nil {
				t.Fatal(err)
			}
			db = reopen(db)
			for i, c := range []struct{ told, want int }{{500, 500}, {300, 500}, {999, 999}} {
				got, ok := start(t, db, "t1", int64(i+1))
				if !ok {
					t.Fatal("the task does not go on")
				}
				if ours, err := db.EndSlice(ctx, ending(got, func(e *tenantdb.SliceEnd) { e.Best = c.told })); err != nil || !ours {
					t.Fatal(ours, err)
				}
				db = reopen(db)
				if got := task(t, db, "t1"); got.Best != c.want {
					t.Errorf("after %d: %d, want %d", c.told, got.Best, c.want)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
