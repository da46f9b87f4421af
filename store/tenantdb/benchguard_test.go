package tenantdb_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

const (
	guardRounds = 41
	guardRound  = 250 * time.Millisecond
)

// BenchmarkGuard is the throughput of transactions of one UPDATE with the guard against
// those without, every commit on the disk; each client has its own row and lock. Rounds of
// both follow each other in turn, so that the ratio counts and the figures do not.
func BenchmarkGuard(b *testing.B) {
	for name, open := range map[string]func() *tenantdb.DB{
		"sqlite": func() *tenantdb.DB {
			db, err := tenantdb.OpenSQLite(context.Background(), tenantdb.SQLiteConfig{Path: filepath.Join(b.TempDir(), "t.db"), Sync: "full"})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { db.Close() })
			return db
		},
		"postgres": func() *tenantdb.DB {
			return openPostgres(b, newPool(b, testserver.NewPostgres(b).URL("postgres")+"&pool_max_conns=8"))
		},
	} {
		db := open()
		setup(b, db, "CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0)")
		for _, clients := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/clients=%d", name, clients), func(b *testing.B) {
				for b.Loop() { // with -benchtime 1x
					guardRate(b, db, clients, true)
					var ratios, on []float64
					for round := range guardRounds {
						first := round%2 == 0
						a := guardRate(b, db, clients, first)
						c := guardRate(b, db, clients, !first)
						if !first {
							a, c = c, a
						}
						ratios, on = append(ratios, a/c), append(on, a)
					}
					slices.Sort(ratios)
					slices.Sort(on)
					b.ReportMetric(ratios[guardRounds/2], "on/off")
					b.ReportMetric(ratios[0], "least")
					b.ReportMetric(ratios[guardRounds-1], "most")
					b.ReportMetric(on[guardRounds/2], "tx/s")
				}
			})
		}
	}
}

// guardRate is the number of transactions a second.
func guardRate(b *testing.B, db *tenantdb.DB, clients int, guard bool) float64 {
	var wg sync.WaitGroup
	counts := make([]int, clients)
	began := time.Now()
	for i := range clients {
		wg.Go(func() {
			for time.Since(began) < guardRound {
				g := tenantdb.Guard{Until: time.Now().Add(time.Minute)}
				if guard {
					g.Key, g.Token, g.Owner = fmt.Sprintf("tenant:api:%d", i), time.Now().UnixMicro(), "1795983406541592:node-1:0123456789abcdef0123456789abcdef"
				}
				tx, err := db.Begin(context.Background(), g)
				if err != nil {
					b.Error(err)
					return
				}
				if _, err := tx.Exec(context.Background(), "UPDATE t SET n = n + 1 WHERE id = @id", map[string]any{"id": int64(i)}); err != nil {
					b.Error(err)
				}
				if err := tx.Commit(context.Background()); err != nil {
					b.Error(err)
				}
				counts[i]++
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / time.Since(began).Seconds()
}
