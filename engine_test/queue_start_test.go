package engine_test

import (
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/faultproxy"
)

// A node whose database fails in the moment in which the queue of tasks starts goes on, and
// works off its tasks when the database answers.
func TestTheQueueStartsLate(t *testing.T) {
	t.Parallel()
	p, through, _ := proxiedDatabase(t)
	args := []string{"--data-dir", t.TempDir(), "--database-url", through, "--lock-backend", "embedded"}
	n := startNode(t, args...)
	n.pushFiles(t, fstest.MapFS{
		"schema/0001_ledger.sql": {Data: []byte("-- +goose Up\nCREATE TABLE ledger (id TEXT);\n")},
		"work.js":                js("StopHttp: true", "V8.Db.FromSql(\"INSERT INTO ledger VALUES ('x')\").ExecuteNonQuery(); return { Code: 1 };"),
		"submit.js":              js("Category: x", "return { Code: 1, Data: V8.Task.Submit({ApiEngineKey: 'work', IdempotencyKey: 'once'}) };"),
	})
	n.stop(syscall.SIGTERM)
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains("river_queue"), Times: 2, Fault: faultproxy.LoseCall})
	n = startNode(t, args...)
	awaitLong(t, time.Minute, "the queue to fail twice", func() bool { return trap.Left() == 0 })
	if a := n.call(t, "POST", "/apiengine/submit", map[string]any{}); a.JSON.Code != 1 {
		t.Fatal(a.Body)
	}
	awaitLong(t, time.Minute, "the task to be done", func() bool { return n.scalar(t, "SELECT count(*) FROM ledger") == "1" })
}
