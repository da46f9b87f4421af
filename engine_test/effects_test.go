package engine_test

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/redis/go-redis/v9"

	"apiengine/internal/app"
	"apiengine/internal/testserver"
)

// What happens to a run whose lock is taken away in Redis, for real, while its script
// runs: the script first says that it has begun, then waits until it is let go.

const (
	sayStarted  = "V8.Cache.SetIfNotExists('started', '1');\n"
	untilLetGo  = "while (V8.Cache.Get('let go') === null) { var pause = Date.now() + 3; while (Date.now() < pause) {} }\n" // host calls are counted
	writeBoth   = "V8.Db.FromSql(\"UPDATE counter SET n = n + 100 WHERE id = 'a'\").ExecuteNonQuery(); V8.Cache.Set('staged', '1');\n"
	stagedWrite = "V8.Cache.Set('staged', '1');\n"
)

// signals are the APIs by which a test speaks with a script that is running.
func signals() fstest.MapFS {
	return fstest.MapFS{
		"started.js":              js("Category: x", "return { Code: 1, Data: V8.Cache.Get('started') };"),
		"letgo.js":                js("Category: x", "V8.Cache.Set('let go', '1'); return { Code: 1 };"),
		"staged.js":               js("Category: x", "return { Code: 1, Data: V8.Cache.Get('staged') };"),
		"count.js":                js("Category: x", "return { Code: 1, Data: V8.Db.FromSql(\"SELECT n FROM counter WHERE id = 'a'\").ToScalar() };"),
		"schema/0001_counter.sql": {Data: []byte(counterTable)},
	}
}

// begin starts a call and returns when its script has said that it runs.
func (h *house) begin(t *testing.T, tenant, key, body string) <-chan answer {
	t.Helper()
	out := make(chan answer, 1)
	go func() { out <- h.do(tenant, "POST", "/apiengine/"+key, body) }()
	await(t, key+" to be in its script", func() bool { return h.data(tenant, "started") == "1" })
	return out
}

// data is Data of the answer of an API without parameters, as text.
func (h *house) data(tenant, key string) string {
	return fmt.Sprint(h.do(tenant, "POST", "/apiengine/"+key, "{}").JSON.Data)
}

func TestALockTakenAwayCommitsNothing(t *testing.T) {
	server := testserver.Redis(t)
	opt, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opt)
	defer client.Close()
	h := newHouse(t, pair{redis: true})

	apis := map[string]struct {
		header, code string
	}{
		"a transaction and staged writes": {"Lock: true", writeBoth + sayStarted + untilLetGo + "return { Code: 1 };"},
		"a string as result":              {"Lock: true", writeBoth + sayStarted + untilLetGo + "return 'done';"},
		"staged writes alone":             {"Lock: true", stagedWrite + sayStarted + untilLetGo + "return { Code: 1 };"},
		"nothing to commit":               {"Lock: true", sayStarted + untilLetGo + "return { Code: 1 };"},
		"the script asks":                 {"Lock: true", writeBoth + sayStarted + untilLetGo + "try { V8.Lock.EnsureHeld(); } catch (e) {} return { Code: 1 };"},
		"a child that joined the lock": {"Lock: true\nLockScope: s",
			"V8.ApiEngine.Run('joins', {});" + sayStarted + untilLetGo + "return { Code: 1 };"},
		"a child's own lock": {"Category: x", "V8.ApiEngine.Run('locks', {});" + sayStarted + untilLetGo + "return { Code: 1 };"},
		"lost while a child runs": {"Lock: true",
			writeBoth + "var r = V8.ApiEngine.Run('waits', {}); return { Code: 1, Data: r };"},
	}
	ways := map[string]func(key string) error{
		"deleted":     func(key string) error { return client.Del(t.Context(), key).Err() },
		"overwritten": func(key string) error { return client.Set(t.Context(), key, "9007199254740000:other:0", 0).Err() },
	}
	for name, a := range apis {
		for way, take := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				tenant := h.tenant(t)
				files := signals()
				maps.Copy(files, fstest.MapFS{
					"run.js":   js(a.header, a.code),
					"joins.js": js("Lock: true\nLockScope: s", writeBoth+"return { Code: 1 };"),
					"locks.js": js("Lock: true\nLockScope: own", writeBoth+"return { Code: 1 };"),
					"waits.js": js("Lock: true\nLockScope: waits", sayStarted+untilLetGo+"V8.Lock.EnsureHeld(); return { Code: 1 };"),
				})
				h.load(t, tenant, files)
				run := h.begin(t, tenant, "run", "{}")
				keys, err := client.Keys(t.Context(), fmt.Sprintf("%s:{%s:*:l", h.app.Settings.Prefix, tenant)).Result()
				if err != nil || len(keys) == 0 {
					t.Fatalf("no lock is held: %v %v", keys, err)
				}
				for _, key := range keys {
					if err := take(key); err != nil {
						t.Fatal(err)
					}
				}
				h.do(tenant, "POST", "/apiengine/letgo", "{}")
				got := <-run
				if got.Status != 409 || got.kind() != "lease_lost" || got.JSON.DataAppend.Error["Cause"] != "token_mismatch" || !strings.Contains(got.JSON.Msg, "分布式锁租约已丢失") {
					t.Errorf("got %d %s", got.Status, got.Body)
				}
				if n, staged := h.data(tenant, "count"), h.data(tenant, "staged"); n != "0" || staged != "<nil>" {
					t.Errorf("after it the counter is %s and the staged key %s", n, staged)
				}
			})
		}
	}
}

// Nobody can say whether the lock is still held when Redis is gone: nothing is committed.
func TestALockThatCannotBeConfirmedCommitsNothing(t *testing.T) {
	server := testserver.NewRedis(t)
	h := newHouse(t, pair{}, func(s *app.Settings) { s.RedisURL = server.URL() })
	tenant := h.tenant(t)
	files := signals()
	files["run.js"] = js("Lock: true\nTimeout: 5", writeBoth+sayStarted+
		"while (true) { try { V8.Cache.Get('x'); } catch (e) { break; } }\nreturn { Code: 1 };")
	h.load(t, tenant, files)
	run := h.begin(t, tenant, "run", "{}")
	if err := server.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	got := <-run
	if got.Status != 409 || got.kind() != "lease_lost" || got.JSON.DataAppend.Error["Cause"] != "confirm_failed" {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
	server.Restart(t)
	if n, staged := h.data(tenant, "count"), h.data(tenant, "staged"); n != "0" || staged != "<nil>" {
		t.Errorf("after it the counter is %s and the staged key %s", n, staged)
	}
}
