package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"apiengine/internal/app"
	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
	"apiengine/tasks"
)

// BenchmarkTasks is a thousand tasks of ten slices, each of which writes one row: slices a
// second from the first order to the last end, and on PostgreSQL the statements a slice
// costs, the handler's own included.
func BenchmarkTasks(b *testing.B) {
	const many, slices = 1000, 10
	for _, kind := range []string{"embedded", "Redis and PostgreSQL"} {
		b.Run(kind, func(b *testing.B) {
			var server *testserver.PostgresServer
			h := newHouse(b, pair{}, func(s *app.Settings) {
				s.Addr, s.LogLevel, s.SqliteSync = "127.0.0.1:0", "warn", "full"
				if kind != "embedded" {
					server = testserver.NewPostgres(b, "-c", "shared_preload_libraries=pg_stat_statements", "-c", "pg_stat_statements.track=all")
					s.DatabaseURL, s.RedisURL = server.URL("postgres"), testserver.Redis(b).URL()
				}
			})
			h.load(b, "default", fstest.MapFS{
				"schema/0001_done.sql": {Data: []byte("-- +goose Up\nCREATE TABLE done (task TEXT, n INTEGER);\n")},
				"ten.js": js(anonymous, `var n = V8.Param._BackgroundTaskCheckpoint || 0;
					V8.Db.FromSql('INSERT INTO done (task, n) VALUES (@t, @n)').AddInParameter('@t', V8.Param._BackgroundTaskId).AddInParameter('@n', n).ExecuteNonQuery();
					return { Code: 1, Data: { BackgroundTask: { HasMore: n < 9, Checkpoint: n + 1, Current: n + 1, Total: 10 } } };`),
			})
			ctx, stop := context.WithCancel(b.Context())
			var serving sync.WaitGroup
			defer serving.Wait()
			defer stop()
			serving.Go(func() {
				if err := h.app.Serve(ctx, b.Output()); err != nil {
					b.Error(err)
				}
			})
			for b.Loop() {
				statements := counted(b, server)
				began := time.Now()
				orderAll(b, h, many)
				for h.open(b) > 0 {
					time.Sleep(20 * time.Millisecond) // a look, whose cost the figure should not show
				}
				took := time.Since(began)
				b.ReportMetric(many*slices/took.Seconds(), "slices/s")
				if server != nil {
					b.ReportMetric(float64(counted(b, server)-statements)/(many*slices), "statements/slice")
				}
			}
		})
	}
}

// orderAll orders tasks from ten sides.
func orderAll(b *testing.B, h *house, many int) {
	var sides sync.WaitGroup
	for range 10 {
		sides.Go(func() {
			for range many / 10 {
				if _, err := h.app.Tasks().Submit(b.Context(), "default", anyone, tasks.Order{ApiEngineKey: "ten"}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	sides.Wait()
}

// open counts the tasks that are not over.
func (h *house) open(b *testing.B) (n int) {
	for _, status := range []string{"pending", "running", "retrying"} {
		list, err := h.app.Tasks().List(b.Context(), "default", tenantdb.TaskFilter{State: status, Max: 1})
		if err != nil {
			b.Fatal(err)
		}
		n += len(list)
	}
	return n
}

// counted is how many statements the server has run.
func counted(b *testing.B, s *testserver.PostgresServer) (n int64) {
	if s == nil {
		return 0
	}
	c, err := pgx.Connect(b.Context(), s.URL("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(b.Context(), "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
		b.Fatal(err)
	}
	err = c.QueryRow(b.Context(), "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE toplevel").Scan(&n)
	if err != nil {
		b.Fatal(fmt.Errorf("pg_stat_statements: %w", err))
	}
	return n
}
