package engine_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/app"
	"apiengine/internal/testserver"
)

// gates are where scripts wait in a request, which needs neither Redis nor a database: each
// path is one, that says when somebody has come and lets go when it is told to.
type gates map[string]gate

type gate struct{ come, open chan struct{} }

func newGates(t *testing.T, names ...string) (g gates, url string) {
	t.Helper()
	g = gates{}
	for _, name := range names {
		g[name] = gate{make(chan struct{}), make(chan struct{})}
	}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		one := g[strings.TrimPrefix(r.URL.Path, "/")]
		for _, step := range []<-chan struct{}{one.come, one.open} {
			select {
			case <-step:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return g, s.URL
}

func (g gate) await(t *testing.T) {
	t.Helper()
	select {
	case g.come <- struct{}{}:
	case <-time.After(20 * time.Second):
		t.Fatal("no run came to its gate in 20 s")
	}
}

const (
	countById = "V8.Db.FromSql('UPDATE counter SET n = n + 1 WHERE id = @p0').AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery();\n"
	toGate    = "V8.Http.Get(V8.Param.Gate);\n"
)

// Redis fails over to a replica that has never heard of a held lock, and gives it to a
// second node: two holders at once. One of them commits; the other ends with a definite
// refusal, whether it had written before the other came or not.
func TestFailoverWithTwoHolders(t *testing.T) {
	s := testserver.NewSentinel(t)
	database, prefix := testserver.Database(t), fmt.Sprintf("f%d", prefixes.Add(1))
	g, url := newGates(t, "inside1", "inside2", "before1", "before2")
	node := func(name string) *house {
		return newHouse(t, pair{}, func(c *app.Settings) {
			c.RedisURL, c.DatabaseURL, c.Prefix, c.Instance, c.SecretKey = s.URL(), database, prefix, name, strings.Repeat("ab", 32)
			c.HTTPAllow = []string{"127.0.0.0/8"}
		})
	}
	one := node("one")
	tenant := one.tenant(t)
	one.load(t, tenant, fstest.MapFS{
		"warm.js":                 js("Lock: true", "return { Code: 1 };"),
		"inside.js":               js("Lock: true\nLockScope: s\nLockKey: Id\nTimeout: 60", countById+toGate+"return { Code: 1, Data: V8.FencingToken };"),
		"before.js":               js("Lock: true\nLockScope: s\nLockKey: Id\nTimeout: 60", toGate+countById+"return { Code: 1, Data: V8.FencingToken };"),
		"n.js":                    js("Category: x", "return { Code: 1, Data: V8.Db.FromSql('SELECT n FROM counter WHERE id = @p0').AddInParameter('@p0', V8.Param.Id).ToScalar() };"),
		"schema/0001_counter.sql": {Data: []byte(counterTable)},
	})
	two := node("two")
	begin := func(h *house, api, id, at string) <-chan answer {
		out := make(chan answer, 1)
		go func() {
			out <- h.do(tenant, "POST", "/apiengine/"+api, fmt.Sprintf(`{"Id":%q,"Gate":"%s/%s"}`, id, url, at))
		}()
		g[at].await(t)
		return out
	}
	warm := func(h *house) bool { return h.do(tenant, "POST", "/apiengine/warm", "{}").JSON.Code == 1 }
	if !warm(one) || !warm(two) {
		t.Fatal("the nodes do not work")
	}
	s.StopReplication(t)
	inside, before := begin(one, "inside", "a", "inside1"), begin(one, "before", "b", "before1")
	s.Failover(t)
	for _, h := range []*house{one, two} {
		await(t, "the new primary to be found", func() bool { return warm(h) })
	}
	// Each lock has two holders now, for all that they know: the second came to its gate.
	nextInside, nextBefore := begin(two, "before", "a", "inside2"), begin(two, "before", "b", "before2")
	for _, c := range []struct {
		id            string
		first, second <-chan answer
		order         []string // in which the gates open
	}{
		{"a", inside, nextInside, []string{"inside2", "inside1"}}, // the second waits for the first one's transaction
		{"b", before, nextBefore, []string{"before2", "before1"}}, // the second has committed
	} {
		close(g[c.order[0]].open)
		var kept answer
		if c.id == "b" {
			kept = <-c.second
		}
		close(g[c.order[1]].open)
		lost := <-c.first
		if c.id == "a" {
			kept = <-c.second
		}
		if lost.Status != 409 || lost.kind() != "lease_lost" && lost.kind() != "stale_fence" {
			t.Errorf("%s: the first holder: %d %s", c.id, lost.Status, lost.Body)
		}
		if kept.JSON.Code != 1 {
			t.Errorf("%s: the second holder: %d %s", c.id, kept.Status, kept.Body)
		}
		if n := fmt.Sprint(two.do(tenant, "POST", "/apiengine/n", fmt.Sprintf(`{"Id":%q}`, c.id)).JSON.Data); n != "1" {
			t.Errorf("%s: %s runs counted", c.id, n)
		}
		t.Logf("%s: the first holder heard %d %s", c.id, lost.Status, lost.kind())
	}
}
