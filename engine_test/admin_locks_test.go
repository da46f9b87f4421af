package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/client"
)

// waitsInside holds its lock with an uncommitted write until it is told to go on.
const waitsInside = `/*---
ApiEngineKey: waits_inside
Lock: true
LockKey: Id
Timeout: 30
---*/
V8.Db.FromSql("UPDATE counter SET n = n + 100 WHERE id = @p0").AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery();
while (V8.Cache.Get('go') !== '1') {}
return { Code: 1 };`

// An administrator sees on any node who holds a lock and who waits, and takes the lock
// away: the holder's run ends as lease_lost and leaves nothing behind, the waiter's goes on.
func TestForcedRelease(t *testing.T) {
	a, b := twoNodes(t)
	files := counterFiles()
	files["waits_inside.js"] = &fstest.MapFile{Data: []byte(waitsInside)}
	files["go.js"] = &fstest.MapFile{Data: []byte("V8.Cache.Set('go', '1', 60); return { Code: 1 };")}
	a.pushFiles(t, files)
	for _, key := range []string{"waits_inside", "add_one", "go"} {
		b.awaitAPI(t, key)
	}
	held := inBackground(t, a, "/apiengine/waits_inside", `{"Id":"a"}`)
	var one client.Lock
	list := func() (found client.Locks) {
		if err := json.Unmarshal([]byte(b.command(t, "locks", "--json")), &found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	await(t, "the lock to be held", func() bool {
		found := list()
		if len(found) == 1 {
			one = found[0]
		}
		return len(found) == 1
	})
	waits := inBackground(t, b, "/apiengine/add_one", `{"Id":"a"}`)
	await(t, "the waiter to show", func() bool {
		found := list()
		return len(found) == 1 && len(found[0].Waiting) == 1 && found[0].Waiting[0].Count == 1
	})
	// The holder's node knows which node waits, not how many there.
	seen := a.call(t, "GET", "/admin/api/v1/locks?prefix=default:Id:a", nil)
	if !strings.Contains(seen.Body, `"Waiting":[{"Node":`) || strings.Contains(seen.Body, `"Count"`) {
		t.Errorf("the holder's node tells %s", seen.Body)
	}
	if one.Lock != "default:Id:a" || one.Api != "waits_inside" || one.Token <= 0 || one.LeftMs <= 0 || one.LeftMs > 30_000 ||
		time.Since(one.Since) > time.Minute || one.Node == "" {
		t.Errorf("the lock shows as %+v", one)
	}
	if text := b.command(t, "locks", "--prefix", "default:Id:a"); !strings.Contains(text, "waits_inside") || !strings.Contains(text, one.Execution) {
		t.Errorf("for people:\n%s", text)
	}

	release := func(token int64) answer {
		return b.call(t, "POST", "/admin/api/v1/locks/release", map[string]any{"Lock": one.Lock, "Token": token, "Reason": "stuck"})
	}
	if got := release(one.Token - 1); got.Status != 409 || got.kind() != "version_conflict" {
		t.Errorf("another holder's token: %d %s", got.Status, got.Body)
	}
	b.command(t, "locks", "release", one.Lock, fmt.Sprint(one.Token), "--reason", "stuck")
	if got := release(one.Token); got.Status == 200 {
		t.Errorf("the same again: %d %s", got.Status, got.Body)
	}
	if got := b.call(t, "POST", "/apiengine/go", nil); got.JSON.Code != 1 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	lost := <-held
	if lost.Status != 409 || lost.kind() != "lease_lost" {
		t.Errorf("the holder got %d %s", lost.Status, lost.Body)
	}
	if id := lost.Header.Get("X-Execution-Id"); id == "" || id != one.Execution {
		t.Errorf("the list showed execution %q, it was %q", one.Execution, id)
	}
	if next := <-waits; next.JSON.Code != 1 {
		t.Errorf("the waiter got %d %s", next.Status, next.Body)
	}
	if n := b.scalar(t, "SELECT n FROM counter WHERE id = 'a'"); n != "1" {
		t.Errorf("the counter is %s", n)
	}
	trail(t, a, one)
}

// trail fails unless the one release that happened stands in the audit trail.
func trail(t *testing.T, n *node, lock client.Lock) {
	t.Helper()
	got := n.call(t, "GET", "/admin/api/v1/audit", nil)
	var in struct {
		Data struct {
			Items []struct {
				Actor, Action, Subject, Tenant string
				Detail                         struct {
					Token                  int64
					Api, Execution, Reason string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(got.Body), &in); err != nil || len(in.Data.Items) != 1 {
		t.Fatalf("%v: %s", err, got.Body)
	}
	e := in.Data.Items[0]
	if e.Action != "lock.release" || e.Subject != lock.Lock || e.Tenant != "default" || e.Actor == "" ||
		e.Detail.Token != lock.Token || e.Detail.Execution != lock.Execution || e.Detail.Reason != "stuck" {
		t.Errorf("%+v", e)
	}
}

// A tenant's administrator neither sees nor releases another tenant's locks.
func TestLocksOfOneTenant(t *testing.T) {
	for _, p := range backendPairs[:2] {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			one, two := h.tenant(t), h.tenant(t)
			files := counterFiles()
			files["waits_inside.js"] = &fstest.MapFile{Data: []byte(waitsInside)}
			h.load(t, one, files)
			done := make(chan answer, 1)
			go func() { done <- h.do(one, "POST", "/apiengine/waits_inside", `{"Id":"a"}`) }()
			var token float64
			await(t, "the lock to be held", func() bool {
				items := h.do(one, "GET", "/admin/api/v1/locks", "").JSON.Data.(map[string]any)["Items"].([]any)
				if len(items) == 1 {
					token = items[0].(map[string]any)["Token"].(float64)
				}
				return len(items) == 1
			})
			if got := h.do(two, "GET", "/admin/api/v1/locks", ""); !strings.Contains(got.Body, `"Items":[]`) {
				t.Errorf("another tenant sees %s", got.Body)
			}
			body := fmt.Sprintf(`{"Lock":"%s:Id:a","Token":%.0f}`, one, token)
			if got := h.do(two, "POST", "/admin/api/v1/locks/release", body); got.Status != 404 {
				t.Errorf("another tenant's release: %d %s", got.Status, got.Body)
			}
			if got := h.do(two, "GET", "/admin/api/v1/audit", ""); !strings.Contains(got.Body, `"Items":[]`) {
				t.Errorf("another tenant's trail: %s", got.Body)
			}
			if got := h.do(one, "POST", "/admin/api/v1/locks/release", body); got.Status != 200 {
				t.Errorf("the release: %d %s", got.Status, got.Body)
			}
			// On the holder's own node the run ends at once, whatever its script waits for.
			if got := <-done; got.Status != 409 || got.kind() != "lease_lost" {
				t.Errorf("the holder got %d %s", got.Status, got.Body)
			}
		})
	}
}
