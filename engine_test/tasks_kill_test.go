package engine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/testserver"
)

// E3 and E4: a task of many slices while nodes are killed. It copies the rows of one table
// to another, some a slice, and sends a message with each.
func copier(rows int) fstest.MapFS {
	return fstest.MapFS{
		"schema/0001_copy.sql": {Data: fmt.Appendf(nil, "-- +goose Up\nCREATE TABLE source (n INTEGER PRIMARY KEY, v INTEGER);\nCREATE TABLE target (n INTEGER, v INTEGER, slice TEXT);\nCREATE TABLE told (slice TEXT);\n"+
			"INSERT INTO source WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < %d) SELECT n, n * 7 FROM c;\n", rows-1)},
		"copy.js": js("StopHttp: true\nLock: true\nTimeout: 3", `
			var P = V8.Param, at = P._BackgroundTaskCheckpoint ? P._BackgroundTaskCheckpoint.At : -1, key = P._BackgroundTaskIdempotencyKey;
			var list = V8.Db.FromSql('SELECT n, v FROM source WHERE n > @p0 ORDER BY n LIMIT @p1').AddInParameter('@p0', at).AddInParameter('@p1', P.Size).ToArray();
			for (var i = 0; i < list.length; i++)
				V8.Db.FromSql('INSERT INTO target (n, v, slice) VALUES (@p0, @p1, @p2)').AddInParameter('@p0', list[i].n).AddInParameter('@p1', list[i].v).AddInParameter('@p2', key).ExecuteNonQuery();
			var last = list.length ? list[list.length - 1].n : at;
			V8.Outbox.Send({ EventId: key, Type: 'copied', Data: { Slice: key }, Target: 'hear' });
			return { Code: 1, Data: { BackgroundTask: { HasMore: last < P.Rows - 1, Checkpoint: { At: last }, Current: last + 1, Total: P.Rows } } };`),
		"hear.js": js("StopHttp: true", `if (V8.Inbox.Once(V8.Param.EventId))
			V8.Db.FromSql('INSERT INTO told (slice) VALUES (@p0)').AddInParameter('@p0', V8.Param.Data.Slice).ExecuteNonQuery();
			return { Code: 1 };`),
		"begin.js": js("Timeout: 10", "return { Code: 1, Data: V8.Task.Submit({ ApiEngineKey: 'copy', Param: V8.Param }).Id };"),
	}
}

func TestATaskUnderKills(t *testing.T) {
	t.Parallel()
	slices := 30
	if os.Getenv("APIENGINE_FAULTS") == "long" {
		slices = 200
	}
	const size = 100
	for _, kind := range []struct {
		name  string
		nodes int
		args  func(*testing.T) []string
	}{
		{"SQLite", 1, func(t *testing.T) []string { return []string{"--data-dir", t.TempDir()} }},
		{"Redis and PostgreSQL", 3, func(t *testing.T) []string {
			return []string{"--database-url", testserver.Database(t), "--redis-url", testserver.Redis(t).URL(), "--prefix", fmt.Sprint("kill", prefixes.Add(1)),
				"--secret-key", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 3))
			args := append(kind.args(t), "--log-level", "error", "--outbox-lease", "2s", "--claim-lease", "2s")
			start := func() *node {
				if kind.nodes > 1 {
					return startNode(t, append(args, "--data-dir", t.TempDir())...)
				}
				return startNode(t, args...)
			}
			nodes := make([]*node, kind.nodes)
			for i := range nodes {
				nodes[i] = start()
			}
			rows := slices * size
			nodes[0].pushFiles(t, copier(rows))
			a := nodes[0].call(t, "POST", "/apiengine/begin", map[string]any{"Rows": rows, "Size": size})
			if a.JSON.Code != 1 {
				t.Fatal(a.Body)
			}
			count := func(what string) string { return nodes[0].scalar(t, "SELECT count("+what+") FROM target") }
			began, kills := time.Now(), 0
			for done, pause := "", time.Second; done != fmt.Sprint(rows); {
				if time.Since(began) > time.Duration(slices)*5*time.Second {
					t.Fatalf("%s of %d rows after %d kills in %v: %s", done, rows, kills, time.Since(began), nodes[0].call(t, "GET", "/api/v1/tasks/"+a.JSON.Data.(string), nil).Body)
				}
				i := random.IntN(len(nodes))
				time.Sleep(pause + time.Duration(random.IntN(200))*time.Millisecond) // the rhythm of the kills, at a random instant
				nodes[i].stop(syscall.SIGKILL)
				kills++
				nodes[i] = start()
				if now := count("*"); now != done {
					done, pause = now, time.Second
				} else {
					pause *= 2 // on a machine that is too slow for a slice a second
				}
			}
			t.Logf("%d slices under %d kills in %v", slices, kills, time.Since(began).Round(time.Second))
			n := nodes[0]
			awaitLong(t, 60*time.Second, "every slice's message", func() bool {
				return n.scalar(t, "SELECT count(DISTINCT slice) FROM told") == fmt.Sprint(slices)
			})
			for what, want := range map[string]int{
				"SELECT count(*) FROM target":                                                                    rows,
				"SELECT count(DISTINCT n) FROM target":                                                           rows,
				"SELECT count(DISTINCT slice) FROM target":                                                       slices,
				"SELECT count(*) FROM target t JOIN source s ON s.n = t.n AND s.v = t.v":                         rows,
				"SELECT count(*) FROM (SELECT slice FROM target GROUP BY slice HAVING count(*) <> 100) AS other": 0,
				"SELECT count(*) FROM told":                                                                      slices,
			} {
				if got := n.scalar(t, what); got != fmt.Sprint(want) {
					t.Errorf("%s: %s, want %d", what, got, want)
				}
			}
		})
	}
}
