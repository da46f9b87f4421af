package engine_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
)

// pausedFiles: slow stays in its transaction for half of its time and writes once more, so
// that the database keeps the session for as long after its lease's end. next is the
// holder after it.
func pausedFiles() fstest.MapFS {
	files := counterFiles()
	files["slow.js"] = js("Lock: true\nLockKey: Id\nTimeout: 4", `V8.Cache.Set('staged', 'slow');
V8.Cache.SetIfNotExists('started', '1', 60);
V8.Db.FromSql("UPDATE counter SET n = n + 50 WHERE id = 'a'").ExecuteNonQuery();
var until = Date.now() + 2000;
while (Date.now() < until) {}
V8.Db.FromSql("UPDATE counter SET n = n + 50 WHERE id = 'a'").ExecuteNonQuery();
return { Code: 1 };`)
	files["next.js"] = js("Lock: true\nLockKey: Id\nTimeout: 30", `var n = V8.Db.FromSql("SELECT n FROM counter WHERE id = 'a'").ToScalar();
V8.Db.FromSql("UPDATE counter SET n = @p0 WHERE id = 'a'").AddInParameter('@p0', n + 1).ExecuteNonQuery();
V8.Cache.Set('staged', 'next');
return { Code: 1, Data: n + 1 };`)
	files["staged.js"] = js("Category: x", "return { Code: 1, Data: V8.Cache.Get('staged') };")
	return files
}

// P3: a process is stopped when it has checked its lease for the last time and its COMMIT
// is on the way. The next holder comes meanwhile. Either the COMMIT gets through before the
// next one's guard, and counts, or it never does: no update is lost, and what the process
// says when it goes on is true.
func TestAProcessStoppedInItsCommit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		arrives bool // the COMMIT, while the next holder's guard waits for it
		data    float64
	}{
		{"the COMMIT arrives while the next one's guard waits", true, 101},
		{"the COMMIT arrives when the next one has committed", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			line, proxied, database := proxiedDatabase(t)
			shared := []string{"--redis-url", testserver.Redis(t).URL(), "--prefix", fmt.Sprintf("n%d", prefixes.Add(1)), "--secret-key", strings.Repeat("ab", 32)}
			a := startNode(t, append([]string{"--data-dir", t.TempDir(), "--database-url", proxied}, shared...)...)
			b := startNode(t, append([]string{"--data-dir", t.TempDir(), "--database-url", database}, shared...)...)
			a.pushFiles(t, pausedFiles())
			b.awaitAPI(t, "next")

			commit := line.Add(faultproxy.Rule{Match: commits, Fault: faultproxy.HoldCall})
			stale := inBackground(t, a, "/apiengine/slow", `{"Id":"a"}`)
			// The node's own jobs commit too: every open transaction must have sent its COMMIT.
			const open = "state = 'idle in transaction'"
			await(t, "the run's COMMIT to be held", func() bool {
				return sessions(t, database, open+" AND pid IN (SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'counter')") == 1 &&
					commit.Count() >= sessions(t, database, open)
			})
			signal(t, a, syscall.SIGSTOP)
			next := inBackground(t, b, "/apiengine/next", `{"Id":"a"}`)
			if c.arrives {
				await(t, "the next holder's guard to wait", func() bool { return sessions(t, database, "wait_event_type = 'Lock'") > 0 })
				commit.Release()
			}
			second := <-next
			if second.JSON.Code != 1 || second.JSON.Data != c.data {
				t.Errorf("the next holder: %d %s, want %v", second.Status, second.Body, c.data)
			}
			commit.Release()
			signal(t, a, syscall.SIGCONT)
			first := <-stale
			if committed := first.JSON.Code == 1; committed != c.arrives {
				t.Errorf("the stopped holder got %d %s", first.Status, first.Body)
			}
			if got := b.scalar(t, "SELECT n FROM counter WHERE id = 'a'"); got != fmt.Sprint(c.data) {
				t.Errorf("the counter is %s", got)
			}
			if got := b.call(t, "POST", "/apiengine/staged", nil).JSON.Data; got == "slow" {
				t.Error("a write that was staged under the lost lease is seen")
			}
		})
	}
}

// sessions counts the database's sessions of which a condition on pg_stat_activity is true.
func sessions(t *testing.T, database, where string) (n int) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "+where).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// inBackground makes a call whose answer is for later.
func inBackground(t *testing.T, n *node, path, body string) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		got, err := n.try(t.Context(), "POST", path, body)
		if err != nil {
			got.Body = err.Error()
		}
		out <- got
	}()
	return out
}

func signal(t *testing.T, n *node, sig syscall.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}
