package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"apiengine/internal/app"
	"apiengine/internal/testserver"
)

// untilWord waits for a row that another call writes: it needs no Redis, and no part of the
// run's own transaction, since the child that looks has its own.
const untilWord = "while (V8.ApiEngine.Run('peek', { Id: V8.Param.Go }).Data !== 1) { var pause = Date.now() + 30; while (Date.now() < pause) {} }\n"

// failoverAPIs are a run that waits inside its transaction, and one that waits before it.
func failoverAPIs() fstest.MapFS {
	const say = "V8.ApiEngine.Run('say', { Id: V8.Param.In });\n"
	return fstest.MapFS{
		"warm.js":                 js("Lock: true\nLockKey: Id", "return { Code: 1, Data: V8.FencingToken };"),
		"inside.js":               js("Lock: true\nLockScope: s\nLockKey: Id\nTimeout: 60", countById+say+untilWord+"return { Code: 1, Data: V8.FencingToken };"),
		"before.js":               js("Lock: true\nLockScope: s\nLockKey: Id\nTimeout: 60", say+untilWord+countById+"return { Code: 1, Data: V8.FencingToken };"),
		"next.js":                 js("Lock: true\nLockScope: s\nLockKey: Id\nTimeout: 60", say+countById+"return { Code: 1, Data: V8.FencingToken };"),
		"say.js":                  js("Transaction: own", "V8.Db.FromSql('INSERT INTO word VALUES (@p0)').AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery(); return { Code: 1 };"),
		"peek.js":                 js("Transaction: own", "return { Code: 1, Data: Number(V8.Db.FromSql('SELECT count(*) FROM word WHERE id = @p0').AddInParameter('@p0', V8.Param.Id).ToScalar()) };"),
		"n.js":                    js("Category: x", "return { Code: 1, Data: V8.Db.FromSql('SELECT n FROM counter WHERE id = @p0').AddInParameter('@p0', V8.Param.Id).ToScalar() };"),
		"schema/0001_counter.sql": {Data: []byte(counterTable)},
		"schema/0002_word.sql":    {Data: []byte("-- +goose Up\nCREATE TABLE word (id TEXT);\n-- +goose Down\nDROP TABLE word;")},
	}
}

const countById = "V8.Db.FromSql('UPDATE counter SET n = n + 1 WHERE id = @p0').AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery();\n"

// said waits until a run has said a word.
func (h *house) said(t *testing.T, tenant, word string) {
	t.Helper()
	await(t, word, func() bool {
		return h.do(tenant, "POST", "/apiengine/peek", fmt.Sprintf(`{"Id":%q}`, word)).JSON.Data == 1.0
	})
}

func (h *house) begins(tenant, path, body string) <-chan answer {
	out := make(chan answer, 1)
	go func() { out <- h.do(tenant, "POST", "/apiengine/"+path, body) }()
	return out
}

// Redis fails over to a replica that has never heard of a held lock, and gives it to a
// second node: two holders at once. One of them commits; the other ends with a definite
// refusal, whether it had written before the other came or not.
func TestFailoverWithTwoHolders(t *testing.T) {
	s := testserver.NewSentinel(t)
	database, prefix := testserver.Database(t), fmt.Sprintf("f%d", prefixes.Add(1))
	node := func(name string) *house {
		return newHouse(t, pair{}, func(c *app.Settings) {
			c.RedisURL, c.DatabaseURL, c.Prefix, c.Instance, c.SecretKey = s.URL(), database, prefix, name, strings.Repeat("ab", 32)
		})
	}
	one := node("one")
	tenant := one.tenant(t)
	one.load(t, tenant, failoverAPIs())
	two := node("two")
	for _, h := range []*house{one, two} {
		if a := h.do(tenant, "POST", "/apiengine/warm", `{"Id":"w"}`); a.JSON.Code != 1 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	s.StopReplication(t)
	runs := map[string]string{"a": "inside", "b": "before"}
	first, second := map[string]<-chan answer{}, map[string]<-chan answer{}
	for id, api := range runs {
		first[id] = one.begins(tenant, api, fmt.Sprintf(`{"Id":%q,"In":"first in %s","Go":"go %s"}`, id, id, id))
		one.said(t, tenant, "first in "+id)
	}
	s.Failover(t)
	for _, h := range []*house{one, two} {
		await(t, "the new primary to be found", func() bool { return h.do(tenant, "POST", "/apiengine/warm", `{"Id":"w"}`).JSON.Code == 1 })
	}
	for id := range runs {
		second[id] = two.begins(tenant, "next", fmt.Sprintf(`{"Id":%q,"In":"second in %s"}`, id, id))
		two.said(t, tenant, "second in "+id) // while the first still holds it, for all it knows
	}
	var kept answer
	for id, api := range runs {
		if api == "before" { // the second holder commits first
			kept = <-second[id]
		}
		one.do(tenant, "POST", "/apiengine/say", fmt.Sprintf(`{"Id":"go %s"}`, id))
		a := <-first[id]
		if api != "before" {
			kept = <-second[id]
		}
		if a.Status != 409 || a.kind() != "lease_lost" && a.kind() != "stale_fence" {
			t.Errorf("%s: the first holder: %d %s", api, a.Status, a.Body)
		}
		if kept.JSON.Code != 1 {
			t.Errorf("%s: the second holder: %d %s", api, kept.Status, kept.Body)
		}
		if n := fmt.Sprint(two.do(tenant, "POST", "/apiengine/n", fmt.Sprintf(`{"Id":%q}`, id)).JSON.Data); n != "1" {
			t.Errorf("%s: %s runs counted", api, n)
		}
		t.Logf("%s: the first holder heard %d %s", api, a.Status, a.kind())
	}
}
