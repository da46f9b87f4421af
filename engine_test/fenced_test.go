package engine_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/app"
	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
)

// nodesOf starts the processes of a backend pair: two where the lock is shared, else one.
func nodesOf(t *testing.T, p pair) []*node {
	t.Helper()
	args := []string{"--data-dir", t.TempDir(), "--sqlite-sync", "normal"}
	if p.postgres {
		args = append(args, "--database-url", testserver.Database(t))
	}
	if !p.redis && strings.HasPrefix(p.name, "embedded") {
		args = append(args, "--lock-backend", "embedded")
	}
	if p.redis {
		args = append(args, "--redis-url", testserver.Redis(t).URL(), "--prefix", fmt.Sprintf("t%d", prefixes.Add(1)))
	}
	if !p.redis || !p.postgres { // one process has the data folder
		return []*node{startNode(t, args...)}
	}
	return []*node{startNode(t, args...), startNode(t, append(args, "--data-dir", t.TempDir())...)}
}

// Processes are stopped past their leases at whatever instant, between commit and flush too,
// while calls go on: the cache is empty or holds what the database holds, never older.
func TestStoppedHoldersNeverMakeTheCacheStale(t *testing.T) {
	for _, p := range append(slices.Clone(backendPairs), pair{"PostgreSQL lock, embedded cache", false, true}) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			nodes := nodesOf(t, p)
			nodes[0].pushFiles(t, fstest.MapFS{
				"count.js": js("Lock: true\nTimeout: 1\nLockWait: 20\nLockScope: c", countOne+
					"var n = V8.Db.FromSql(\"SELECT n FROM counter WHERE id = 'a'\").ToScalar();"+
					"V8.Cache.Set('n', String(n)); V8.Cache.SetFenced('fenced', String(n)); V8.Cache.HashSet('h', 'n', String(n)); return { Code: 1, Data: n };"),
				"look.js": js("Lock: true\nLockScope: c\nLockWait: 20", "return { Code: 1, Data: [V8.Db.FromSql(\"SELECT n FROM counter WHERE id = 'a'\").ToScalar(),"+
					"V8.Cache.Get('n'), V8.Cache.Get('fenced'), V8.Cache.HashGet('h', 'n')] };"),
				"schema/0001_counter.sql": {Data: []byte(counterTable)},
			})
			for _, n := range nodes {
				n.awaitAPI(t, "look")
			}
			stop := make(chan struct{})
			var clients sync.WaitGroup
			for i := range 4 {
				clients.Go(func() {
					for {
						select {
						case <-stop:
							return
						default: // whatever comes back: only what stays counts
							_, _ = nodes[i%len(nodes)].try(t.Context(), "POST", "/apiengine/count", "{}")
						}
					}
				})
			}
			for round := range 4 {
				n := nodes[round%len(nodes)]
				if err := n.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				time.Sleep(1200 * time.Millisecond) // the fault itself: longer than the lease
				if err := n.cmd.Process.Signal(syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				for _, m := range nodes {
					a := m.call(t, "POST", "/apiengine/look", "{}")
					got, _ := a.JSON.Data.([]any)
					if a.Status != 200 || len(got) != 4 {
						t.Fatalf("%d %s", a.Status, a.Body)
					}
					for i, v := range got[1:] {
						if v != nil && fmt.Sprint(v) != fmt.Sprint(got[0]) {
							t.Errorf("round %d: entry %d of the cache holds %v, the database %v", round, i, v, got[0])
						}
					}
				}
			}
			close(stop)
			clients.Wait()
			if n := nodes[0].scalar(t, "SELECT n FROM counter WHERE id = 'a'"); n == "0" {
				t.Error("no call went through")
			}
		})
	}
}

// A release that takes writes along hangs on the line until the lease is over and the next
// holder has committed and cached: when it arrives it empties, and writes nothing.
func TestALateReleaseLeavesNothingOld(t *testing.T) {
	server := testserver.Redis(t)
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := faultproxy.New(t, faultproxy.Config{Target: at.Host})
	slow := newHouse(t, pair{redis: true}, func(s *app.Settings) { s.RedisURL = "redis://" + proxy.Addr() })
	files := fstest.MapFS{"set.js": js("Lock: true\nTimeout: 2\nLockWait: 20", "V8.Cache.Set('k', V8.Param.V); return { Code: 1 };"),
		"get.js": js("Category: x", "return { Code: 1, Data: V8.Cache.Get('k') };")}
	tenant := slow.tenant(t)
	slow.load(t, tenant, files)
	other := newHouse(t, pair{redis: true}, func(s *app.Settings) { s.Prefix = slow.app.Settings.Prefix })
	if _, err := other.app.Store.CreateTenant(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	other.load(t, tenant, files)

	trap := proxy.Add(faultproxy.Rule{Match: faultproxy.Script("late value"), Fault: faultproxy.HoldCall})
	late := make(chan answer, 1)
	go func() { late <- slow.do(tenant, "POST", "/apiengine/set", `{"V":"late value"}`) }()
	<-trap.Seen()
	if got := other.do(tenant, "POST", "/apiengine/set", `{"V":"new value"}`); got.Status != 200 {
		t.Fatalf("the next holder: %d %s", got.Status, got.Body)
	}
	if got := (<-late).Status; got != 200 {
		t.Errorf("the first, whose check after had passed, got %d", got)
	}
	trap.Release() // whether it still arrives is up to the line; while it may, nothing old shows
	for range 50 {
		if got := other.data(tenant, "get"); got != "new value" && got != "<nil>" {
			t.Fatalf("the cache holds %s", got)
		}
	}
	if !strings.Contains(slow.log.String(), "cache_emptied") {
		t.Error("the record does not say that the cache was emptied")
	}
}

// SetFenced under immediate effects: a holder whose lease is over is refused by the next
// one's token, wherever lock, cache and database are.
func TestSetFencedRefusesTheOlderHolder(t *testing.T) {
	for _, p := range backendPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, p)
			tenant := h.tenant(t)
			h.load(t, tenant, fstest.MapFS{
				"older.js": js("Lock: true\nLockScope: older\nEffects: immediate",
					"V8.Cache.SetIfNotExists('started', '1');\nwhile (V8.Cache.Get('let go') === null) {}\n"+
						"return { Code: 1, Data: [V8.Cache.SetFenced('k', 'older'), V8.Cache.SetFenced('removed', 'older'), V8.Cache.SetFenced('own', 'older', 60)] };"),
				// Another lock stands for the next holder of the same one: what is compared is the token.
				"newer.js": js("Lock: true\nLockScope: newer\nEffects: immediate",
					"V8.Cache.SetFenced('removed', 'x'); V8.Cache.Remove('removed'); return { Code: 1, Data: V8.Cache.SetFenced('k', 'newer') };"),
				"staged.js":  js("Lock: true\nLockScope: newer", "var first = V8.Cache.SetFenced('s', V8.Param.V); if (V8.Param.Fail) { throw 1; } return { Code: 1, Data: [first, V8.Cache.Get('s')] };"),
				"get.js":     js("Category: x", "return { Code: 1, Data: [V8.Cache.Get('k'), V8.Cache.Get('removed'), V8.Cache.Get('own'), V8.Cache.Get('s')] };"),
				"started.js": js("Category: x", "return { Code: 1, Data: V8.Cache.Get('started') };"),
				"letgo.js":   js("Category: x", "V8.Cache.Set('let go', '1'); return { Code: 1 };"),
				"free.js":    js("Category: x", "V8.Cache.SetFenced('k', 'v'); return { Code: 1 };"),
			})
			run := h.begin(t, tenant, "older", "{}")
			if got := h.data(tenant, "newer"); got != "true" {
				t.Errorf("the newer one: %s", got)
			}
			h.do(tenant, "POST", "/apiengine/letgo", "{}")
			if got := fmt.Sprint((<-run).JSON.Data); got != "[false false true]" {
				t.Errorf("the older one: %s", got)
			}
			for _, s := range []struct{ body, want string }{
				{`{"V":"1"}`, "[true 1]"}, {`{"V":"2","Fail":true}`, "<nil>"},
			} {
				if got := fmt.Sprint(h.do(tenant, "POST", "/apiengine/staged", s.body).JSON.Data); got != s.want {
					t.Errorf("staged %s: %s, want %s", s.body, got, s.want)
				}
			}
			if got := h.data(tenant, "get"); got != "[newer <nil> older 1]" {
				t.Errorf("in the end the cache holds %s", got)
			}
			if got := h.do(tenant, "POST", "/apiengine/free", "{}"); got.kind() != "script_error" || !strings.Contains(got.JSON.Msg, "V8.Cache.SetFenced works in an API with Lock: true") {
				t.Errorf("without a lock: %d %s", got.Status, got.Body)
			}
		})
	}
}
