package engine_test

import (
	"syscall"
	"testing"
	"time"

	"apiengine/internal/faultproxy"
)

// A node that is killed while it holds a bell, before it has started the slice, leaves the
// bell in the queue as if it were being worked on. The next node goes on all the same.
func TestABellTakenByADeadNode(t *testing.T) {
	t.Parallel()
	p, through, _ := proxiedDatabase(t)
	g := newGate(t)
	s := []string{"--data-dir", t.TempDir(), "--database-url", through, "--lock-backend", "embedded", "--http-allow", g.host()}
	n := startNode(t, s...)
	n.pushFiles(t, g.files())
	id, _ := n.call(t, "POST", "/api/v1/tasks", map[string]any{"ApiEngineKey": "wait"}).JSON.Data.(map[string]any)["Id"].(string)
	g.reached(t, id)
	n.stop(syscall.SIGKILL) // in the slice
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains("SET state = 'running'"), Times: 1, Fault: faultproxy.HoldCall})
	n = startNode(t, s...)
	caught(t, trap)
	n.stop(syscall.SIGKILL) // before the slice, of which the database never hears
	n = startNode(t, s...)
	g.reached(t, id)
	g.open()
	awaitLong(t, time.Minute, "the task to be done", func() bool { return n.scalar(t, "SELECT count(*) FROM seen") == "1" })
}
