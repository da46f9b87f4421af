package engine_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

// pairsWith are the backend pairs that a test of transactions must see: both databases.
var pairsWith = []pair{backendPairs[0], backendPairs[3]}

const busy = "var until = Date.now() + 1300; while (Date.now() < until) {}\n"

// A child has its own Timeout from when it starts: neither the age of a lock that it joins
// nor the deadline of a transaction that it began shortens anybody's time.
func TestNestedCallsHaveTheirOwnTime(t *testing.T) {
	for _, p := range pairsWith {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			h.load(t, tenant, fstest.MapFS{
				"late.js":  js("Lock: true\nLockScope: s\nTimeout: 10", busy+"return V8.ApiEngine.Run('child', {});"),
				"early.js": js("Timeout: 10", "V8.ApiEngine.Run('plain', {});"+busy+"return V8.ApiEngine.Run('plain', {});"),
				"child.js": js("Lock: true\nLockScope: s\nTimeout: 1", "return { Code: 1, Data: V8.Limits.RemainingMs > 500 };"),
				"plain.js": js("Timeout: 1", `V8.Db.FromSql("UPDATE counter SET n = n + 1 WHERE id = 'a'").ExecuteNonQuery();
return { Code: 1, Data: V8.Db.FromSql("SELECT n FROM counter WHERE id = 'a'").ToScalar() };`),
				"schema/0001_counter.sql": {Data: []byte(counterTable)},
			})
			if a := h.do(tenant, "POST", "/apiengine/late", "{}"); a.JSON.Code != 1 || a.JSON.Data != true {
				t.Errorf("a child that joins an old lock: %d %s", a.Status, a.Body)
			}
			if a := h.do(tenant, "POST", "/apiengine/early", "{}"); a.JSON.Code != 1 || a.JSON.Data != 2.0 {
				t.Errorf("a transaction that a child began: %d %s", a.Status, a.Body)
			}
		})
	}
}

// Two calls that want each other's locks end as lock_busy, each whole: what the one did
// that gave up is undone as its script decides, and nobody runs into its deadline.
func TestOppositeLockOrdersEndAsBusy(t *testing.T) {
	for _, p := range pairsWith {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			const code = `V8.Cache.SetIfNotExists('has ' + V8.Param.Mine, '1');
while (V8.Cache.Get('has ' + V8.Param.Other) === null) { var pause = Date.now() + 3; while (Date.now() < pause) {} }
var r = V8.ApiEngine.Run('take', { Id: V8.Param.Other });
if (r.Code !== 1) { return { Code: 0, Msg: r.Msg, Data: r.DataAppend.Error.Kind }; }
V8.Db.FromSql('UPDATE counter SET n = n + 1 WHERE id = @p0').AddInParameter('@p0', V8.Param.Mine).ExecuteNonQuery();
return { Code: 1 };`
			h.load(t, tenant, fstest.MapFS{
				"both.js": js("Lock: true\nLockKey: Mine\nLockScope: s\nTimeout: 6", code),
				"take.js": js("Lock: true\nLockKey: Id\nLockScope: s",
					"V8.Db.FromSql('UPDATE counter SET n = n + 1 WHERE id = @p0').AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery(); return { Code: 1 };"),
				"count.js":                js("Category: x", "return { Code: 1, Data: V8.Db.FromSql('SELECT SUM(n) FROM counter').ToScalar() };"),
				"schema/0001_counter.sql": {Data: []byte(counterTable)},
			})
			answers := make(chan answer, 2)
			for _, body := range []string{`{"Mine":"a","Other":"b"}`, `{"Mine":"b","Other":"a"}`} {
				go func() { answers <- h.do(tenant, "POST", "/apiengine/both", body) }()
			}
			done, gaveUp := 0, 0
			for range 2 {
				switch a := <-answers; {
				case a.JSON.Code == 1:
					done++
				case a.Status == 200 && a.JSON.Data == "lock_busy":
					gaveUp++
				default:
					t.Errorf("%d %s", a.Status, a.Body)
				}
			}
			if gaveUp == 0 {
				t.Error("nobody was told that the lock is busy")
			}
			if got := fmt.Sprint(h.do(tenant, "POST", "/apiengine/count", "{}").JSON.Data); got != fmt.Sprint(2*done) {
				t.Errorf("%d calls answered Code 1, yet %s rows were changed", done, got)
			}
		})
	}
}

// A lock that a child took stays until its caller's transaction has ended, whatever the
// child answered; that of a child with a transaction of its own goes with it.
func TestAChildsLockIsKeptToTheEnd(t *testing.T) {
	for _, p := range backendPairs {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			for _, c := range []struct {
				name, header, end string
				kept              bool
			}{
				{"committing", "", "return { Code: 1 };", true},
				{"rolling back", "", "return { Code: 0 };", true},
				{"throwing", "", "throw new Error('no');", true},
				{"on its own", "\nTransaction: own", "return { Code: 1 };", false},
			} {
				t.Run(c.name, func(t *testing.T) {
					tenant := h.tenant(t)
					files := signals()
					maps.Copy(files, fstest.MapFS{
						"run.js":   js("Category: x", "V8.ApiEngine.Run('child', {});"+sayStarted+untilLetGo+"return { Code: 1 };"),
						"child.js": js("Lock: true\nLockScope: s"+c.header, "V8.Db.FromSql(\"UPDATE counter SET n = n + 1 WHERE id = 'a'\").ExecuteNonQuery();"+c.end),
						"try.js":   js("Lock: true\nLockScope: s\nLockWait: 0", "return { Code: 1 };"),
					})
					h.load(t, tenant, files)
					run := h.begin(t, tenant, "run", "{}")
					a := h.do(tenant, "POST", "/apiengine/try", "{}")
					if kept := a.kind() == "lock_busy"; kept != c.kept || !kept && a.JSON.Code != 1 {
						t.Errorf("meanwhile: %d %s", a.Status, a.Body)
					}
					h.do(tenant, "POST", "/apiengine/letgo", "{}")
					if a := <-run; a.JSON.Code != 1 {
						t.Errorf("%d %s", a.Status, a.Body)
					}
					if a := h.do(tenant, "POST", "/apiengine/try", "{}"); a.JSON.Code != 1 {
						t.Errorf("after the end: %d %s", a.Status, a.Body)
					}
				})
			}
		})
	}
}

// The lines that a run and its nested calls leave on the console come in order of time.
func TestNestedConsoleIsInOrder(t *testing.T) {
	h := newHouse(t, pair{})
	tenant := h.tenant(t)
	h.load(t, tenant, fstest.MapFS{
		"outer.js": js("Category: x", "console.log('one'); V8.ApiEngine.Run('inner', {}); console.log('three'); return { Code: 1 };"),
		"inner.js": js("Category: x", "console.log('two'); return { Code: 1 };"),
	})
	h.do(tenant, "POST", "/apiengine/outer", "{}")
	text := h.log.String()
	one, two, three := strings.Index(text, `"one"`), strings.Index(text, `"two"`), strings.Index(text, `"three"`)
	if one < 0 || one > two || two > three {
		t.Errorf("one at %d, two at %d, three at %d", one, two, three)
	}
}
