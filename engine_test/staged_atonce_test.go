package engine_test

import (
	"testing"
	"testing/fstest"
)

// What a run has staged stays its own when an operation that acts at once meets it: a run
// that fails, or a child that is refused, leaves nothing of either.
func TestAFailedRunLeavesNothingInTheCache(t *testing.T) {
	for _, p := range []pair{backendPairs[0], backendPairs[3]} {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			locked := anonymous + "\nLock: true"
			h.load(t, tenant, fstest.MapFS{
				"reset.js": js(anonymous, "V8.Cache.Remove('h'); V8.Cache.Set('k', '10'); V8.Cache.HashSet('h', 'n', '1'); return { Code: 1 };"),
				"look.js":  js(anonymous, "return { Code: 1, Data: V8.Cache.Get('k') + ' ' + JSON.stringify(V8.Cache.HashGetAll('h')) };"),
				"swap.js":  js(locked, "V8.Cache.Set('k', '99'); var did = V8.Cache.CompareAndSet('k', '10', 'x'); throw new Error('did ' + did);"),
				"nx.js":    js(locked, "V8.Cache.Set('k', '77'); V8.Cache.SetIfNotExists('k', 'x'); return { Code: 0 };"),
				"count.js": js(locked, "V8.Cache.Set('k', '100'); return { Code: 0, Msg: String(V8.Cache.Increment('k')) };"),
				"hash.js":  js(locked, "V8.Cache.HashSet('h', 'b', 'secret'); V8.Cache.HashSet('h', 'n', '5'); V8.Cache.HashIncrement('h', 'n'); return { Code: 0 };"),
				"take.js":  js(locked, "V8.Cache.Set('k', '1'); V8.Cache.GetAndRemove('k'); return { Code: 0 };"),
				"child.js": js(anonymous+"\nStopHttp: true", "V8.Cache.Set('k', 'child'); V8.Cache.CompareAndSet('k', 'nomatch', 'z'); return { Code: 0 };"),
				"root.js":  js(locked, "V8.ApiEngine.Run('child', {}); return { Code: 1, Data: V8.Cache.Get('k') };"),
				"good.js":  js(locked, "V8.Cache.Set('k', '41'); return { Code: 1, Data: V8.Cache.Increment('k') };"),
			})
			look := func() any { return h.do(tenant, "POST", "/apiengine/look", "{}").JSON.Data }
			for _, key := range []string{"swap", "nx", "count", "hash", "take", "root"} {
				h.do(tenant, "POST", "/apiengine/reset", "{}")
				a := h.do(tenant, "POST", "/apiengine/"+key, "{}")
				if key == "root" && a.JSON.Data != "10" || key == "count" && a.JSON.Msg != "101" {
					t.Errorf("%s: %s", key, a.Body)
				}
				if got := look(); got != `10 {"n":"1"}` {
					t.Errorf("%s left %v; it answered %s", key, got, a.Body)
				}
			}
			if a := h.do(tenant, "POST", "/apiengine/good", "{}"); a.JSON.Data != 42.0 || look() != `42 {"n":"1"}` {
				t.Errorf("%s, left %v", a.Body, look())
			}
		})
	}
}
