package engine_test

import (
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/testserver"
)

// What people have seen of a task never goes back, though its node is killed in a slice that
// had told more than was ever committed, and the next try tells less of a larger Total.
func TestProgressNeverGoesBack(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			args := []string{"--data-dir", t.TempDir(), "--lock-backend", "embedded", "--http-allow", g.host()}
			if kind == "postgres" {
				args = append(args, "--database-url", testserver.Database(t))
			}
			n := startNode(t, args...)
			n.pushFiles(t, fstest.MapFS{"told.js": js("Timeout: 60", `var at = V8.Param._BackgroundTaskCheckpoint || 0, again = V8.Param._BackgroundTaskAttempt > 1;
				if (at === 1) {
					V8.Method.UpdateBackgroundTask(again ? { Current: 3, Total: 20, Msg: 'again' } : { Current: 7, Total: 10, Msg: 'far' });
					V8.Http.Get({ Url: '`+g.url+`', Timeout: 60 });
				}
				return { Code: 1, Data: { BackgroundTask: { HasMore: at < 3, Checkpoint: at + 1, Current: at + 2, Total: at ? 20 : 10 } } };`)})
			id, _ := n.call(t, "POST", "/api/v1/tasks", map[string]any{"ApiEngineKey": "told"}).JSON.Data.(map[string]any)["Id"].(string)
			var current, progress float64
			look := func() map[string]any {
				got := n.call(t, "GET", "/api/v1/tasks/"+id, nil).JSON.Data.(map[string]any)
				c, _ := got["Current"].(float64)
				p, _ := got["Progress"].(float64)
				if c < current || p < progress || p == 100 && got["Status"] != "Succeeded" {
					t.Errorf("after %v units and %v %%: %v", current, progress, got)
				}
				current, progress = c, p
				return got
			}
			await(t, "what the slice tells", func() bool { return look()["Msg"] == "far" })
			if current != 7 || progress != 70 {
				t.Errorf("told 7 of 10, shown %v and %v %%", current, progress)
			}
			g.reached(t, "")
			n.stop(syscall.SIGKILL)
			n = startNode(t, args...)
			look()
			g.reached(t, "")
			await(t, "what the next try tells", func() bool { return look()["Msg"] == "again" })
			if current != 7 || progress != 70 {
				t.Errorf("told 3 of 20 after 7 of 10, shown %v and %v %%", current, progress)
			}
			g.open()
			awaitLong(t, time.Minute, "its end", func() bool { return look()["Status"] == "Succeeded" })
			if progress != 100 {
				t.Errorf("shown at the end: %v %%", progress)
			}
		})
	}
}
