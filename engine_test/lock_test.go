package engine_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"apiengine/internal/testserver"
)

// addOne reads a number, and writes it back one larger, in two statements: without a lock,
// calls that run side by side lose updates.
const addOne = `/*---
ApiEngineKey: add_one
Lock: true
LockKey: Id
Timeout: 20
AllowAnonymous: true
---*/
var n = V8.Db.FromSql('SELECT n FROM counter WHERE id = @p0').AddInParameter('@p0', V8.Param.Id).ToScalar();
V8.Db.FromSql('UPDATE counter SET n = @p0 WHERE id = @p1').AddInParameter('@p0', n + 1).AddInParameter('@p1', V8.Param.Id).ExecuteNonQuery();
return { Code: 1, Data: { N: n + 1, Token: V8.FencingToken } };`

const counterTable = `-- +goose Up
CREATE TABLE counter (id TEXT PRIMARY KEY, n BIGINT NOT NULL);
INSERT INTO counter (id, n) VALUES ('a', 0), ('b', 0);
-- +goose Down
DROP TABLE counter;`

func counterFiles() fstest.MapFS {
	return fstest.MapFS{
		"add_one.js":              {Data: []byte(addOne)},
		"schema/0001_counter.sql": {Data: []byte(counterTable)},
	}
}

// Twenty calls side by side lose nothing, and tokens follow the order of the commits.
func TestParallelReadModifyWriteLosesNothing(t *testing.T) {
	const calls = 20
	for _, p := range backendPairs {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			h.load(t, tenant, counterFiles())
			answers := make([]answer, calls)
			var wg sync.WaitGroup
			for i := range calls {
				wg.Go(func() { answers[i] = h.do(tenant, "POST", "/apiengine/add_one", `{"Id":"a"}`) })
			}
			wg.Wait()
			byN := map[float64]float64{}
			for _, a := range answers {
				if a.Status != 200 || a.JSON.Code != 1 {
					t.Fatalf("%d %s", a.Status, a.Body)
				}
				d := a.JSON.Data.(map[string]any)
				byN[d["N"].(float64)] = d["Token"].(float64)
			}
			last := 0.0
			for n := 1.0; n <= calls; n++ {
				token, ok := byN[n]
				if !ok {
					t.Fatalf("no call made %v: an update was lost: %v", n, byN)
				}
				if token <= last {
					t.Errorf("call %v has token %.0f, not larger than %.0f before it", n, token, last)
				}
				last = token
			}
		})
	}
}

// do sends one request to a house with the admin token.
func (h *house) do(tenant, method, path, body string) answer {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("OsClient", tenant)
	req.Header.Set("Authorization", "Bearer "+adminToken)
	rec := httptest.NewRecorder()
	h.handler.ServeHTTP(rec, req)
	return answerOf(rec.Result())
}

// Two processes on Redis and PostgreSQL take turns too, and what is pushed to one is live
// on the other.
func TestTwoNodesTakeTurns(t *testing.T) {
	a, b := twoNodes(t)
	takeTurns(t, a, b)
}

// takeTurns sends calls of one lock to both nodes, half each, and looks for lost updates.
func takeTurns(t *testing.T, a, b *node) {
	t.Helper()
	const calls = 40
	a.pushFiles(t, counterFiles())
	b.awaitAPI(t, "add_one")
	var wg sync.WaitGroup
	errs := make(chan error, calls)
	for i := range calls {
		n := a
		if i%2 == 1 {
			n = b
		}
		wg.Go(func() {
			got, err := n.try(t.Context(), "POST", "/apiengine/add_one", `{"Id":"a"}`)
			if err == nil && got.JSON.Code != 1 {
				err = fmt.Errorf("%d %s", got.Status, got.Body)
			}
			if err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if got := a.scalar(t, "SELECT n FROM counter WHERE id = 'a'"); got != "40" {
		t.Errorf("the counter is %s after %d calls", got, calls)
	}
}

// twoNodes starts two processes on one Redis and one PostgreSQL database.
func twoNodes(t *testing.T, args ...string) (a, b *node) {
	t.Helper()
	shared := append([]string{"--redis-url", testserver.Redis(t).URL(), "--database-url", testserver.Database(t),
		"--prefix", fmt.Sprintf("n%d", prefixes.Add(1)), "--secret-key", strings.Repeat("ab", 32)}, args...)
	a = startNode(t, append([]string{"--data-dir", t.TempDir()}, shared...)...)
	b = startNode(t, append([]string{"--data-dir", t.TempDir()}, shared...)...)
	return a, b
}

// Tokens rise across restarts of the server (embedded) and of Redis with its data lost.
func TestTokensRiseAcrossRestarts(t *testing.T) {
	t.Parallel()
	token := func(t *testing.T, n *node) float64 {
		t.Helper()
		a := n.call(t, "POST", "/apiengine/token", nil)
		got, ok := a.JSON.Data.(float64)
		if !ok || got <= 0 {
			t.Fatalf("no token: %d %s", a.Status, a.Body)
		}
		return got
	}
	def := map[string]any{"ApiEngineKey": "token", "Lock": true, "ApiV8Code": "return { Code: 1, Data: V8.FencingToken };"}

	t.Run("embedded, the server killed", func(t *testing.T) {
		dir := t.TempDir()
		n := startNode(t, "--data-dir", dir)
		n.push(t, def)
		before := token(t, n)
		n.stop(syscall.SIGKILL)
		if after := token(t, startNode(t, "--data-dir", dir)); after <= before {
			t.Errorf("token %.0f after a restart, %.0f before", after, before)
		}
	})
	t.Run("Redis restarted empty", func(t *testing.T) {
		s := testserver.NewRedis(t)
		n := startNode(t, "--data-dir", t.TempDir(), "--redis-url", s.URL())
		n.push(t, def)
		before := token(t, n)
		s.Restart(t)
		n.awaitReady(t)
		if after := token(t, n); after <= before {
			t.Errorf("token %.0f after Redis lost its data, %.0f before", after, before)
		}
	})
}

// The promise: a process stopped past its lease in the middle of its transaction cannot
// write when it wakes. Another holder commits meanwhile; one effect remains.
func TestGuardRefusesAStoppedHolder(t *testing.T) {
	a, b := twoNodes(t)
	files := counterFiles()
	// The stale holder is stopped in the middle of its transaction, with its guard row and its
	// write uncommitted, and wakes when the next holder has committed.
	files["slow.js"] = &fstest.MapFile{Data: []byte(`/*---
ApiEngineKey: slow
Lock: true
LockKey: Id
Timeout: 2
---*/
V8.Db.FromSql("UPDATE counter SET n = n + 100 WHERE id = @p0").AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery();
V8.Cache.Set('staged', 'stale');
V8.Cache.SetIfNotExists('slow:started', '1', 60);
var until = Date.now() + 1500;
while (Date.now() < until) {}
return { Code: 1 };`)}
	files["staged.js"] = &fstest.MapFile{Data: []byte("return { Code: 1, Data: V8.Cache.Get('staged') };")}
	files["started.js"] = &fstest.MapFile{Data: []byte("return { Code: 1, Data: V8.Cache.Get('slow:started') };")}
	a.pushFiles(t, files)
	b.awaitAPI(t, "slow")

	result := make(chan answer, 1)
	go func() {
		got, err := a.try(t.Context(), "POST", "/apiengine/slow", `{"Id":"a"}`)
		if err != nil {
			got.Body = err.Error()
		}
		result <- got
	}()
	await(t, "the stale holder to be in its script", func() bool {
		return b.call(t, "POST", "/apiengine/started", nil).JSON.Data == "1"
	})
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Waits until the lease of 2 s is over, then holds the lock itself.
	next := b.call(t, "POST", "/apiengine/add_one", `{"Id":"a"}`)
	if next.JSON.Code != 1 {
		t.Fatalf("the next holder: %d %s", next.Status, next.Body)
	}
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	stale := <-result
	switch stale.kind() {
	case "lease_lost", "stale_fence":
	default:
		t.Errorf("the stale holder got %d %s", stale.Status, stale.Body)
	}
	if got := b.scalar(t, "SELECT n FROM counter WHERE id = 'a'"); got != "1" {
		t.Errorf("the counter is %s: the stale holder's write counted", got)
	}
	if got := b.call(t, "POST", "/apiengine/staged", nil).JSON.Data; got != nil {
		t.Errorf("the cache has what the stale holder had staged: %v", got)
	}
}
