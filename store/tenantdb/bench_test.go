package tenantdb_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

// BenchmarkSavepoint: what it costs on PostgreSQL that a script may catch a failed
// statement and go on: the same read with and without SAVEPOINT and RELEASE around it.
func BenchmarkSavepoint(b *testing.B) {
	db := openPostgres(b, newPool(b, testserver.NewPostgres(b).URL("postgres")))
	setup(b, db, "CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i")
	ctx := context.Background()
	b.Run("with", func(b *testing.B) {
		tx := begin(b, db, tenantdb.Guard{})
		for b.Loop() {
			if _, _, err := tx.Query(ctx, "SELECT n FROM t WHERE id = @id", map[string]any{"id": int64(7)}); err != nil {
				b.Fatal(err)
			}
		}
		tx.Rollback(ctx)
	})
	b.Run("without", func(b *testing.B) {
		tx := begin(b, db, tenantdb.Guard{})
		for b.Loop() {
			if err := tx.QueryBare(ctx, "SELECT n FROM t WHERE id = $1", int64(7)); err != nil {
				b.Fatal(err)
			}
		}
		tx.Rollback(ctx)
	})
}

// BenchmarkRun is a whole run of one UPDATE, with and without the guard.
func BenchmarkRun(b *testing.B) {
	open := map[string]func() *tenantdb.DB{
		"sqlite":   func() *tenantdb.DB { return openSQLite(b) },
		"postgres": func() *tenantdb.DB { return openPostgres(b, newPool(b, testserver.NewPostgres(b).URL("postgres"))) },
	}
	for _, dialect := range []string{"sqlite", "postgres"} {
		db := open[dialect]()
		setup(b, db, "CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 0)")
		for _, guard := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/guard=%v", dialect, guard), func(b *testing.B) {
				token := int64(0)
				for b.Loop() {
					g := tenantdb.Guard{}
					if token++; guard {
						g = tenantdb.Guard{Key: fmt.Sprint(b.Name(), time.Now().Unix()/3), Token: token, Owner: "me"}
					}
					tx := begin0(b, db, g)
					exec(b, tx, "UPDATE t SET n = n + 1 WHERE id = @id", "id", int64(1))
					commit(b, tx)
				}
			})
		}
	}
}

// BenchmarkRows is a page of 100 rows to JSON.
func BenchmarkRows(b *testing.B) {
	db := openSQLite(b)
	setup(b, db, `CREATE TABLE t ("Id" TEXT PRIMARY KEY, "Name" TEXT, n INTEGER, "CreateTime" DATETIME)`,
		`INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 100) SELECT i, 'name ' || i, i, '2026-01-02 03:04:05' FROM c`)
	for b.Loop() {
		tx := begin0(b, db, tenantdb.Guard{})
		query(b, tx, "SELECT * FROM t")
		commit(b, tx)
	}
}

func begin0(b *testing.B, db *tenantdb.DB, g tenantdb.Guard) *tenantdb.Tx {
	tx, err := db.Begin(context.Background(), g)
	if err != nil {
		b.Fatal(err)
	}
	return tx
}
