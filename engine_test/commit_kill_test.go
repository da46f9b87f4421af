package engine_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
)

// E2: the node is killed when the commit is done and nobody has heard of it, exactly: the
// answer is held back on its way from the database, or from the node. The repeat gets what
// was kept; there is one effect.
func TestANodeKilledBetweenCommitAndAnswer(t *testing.T) {
	for _, c := range []struct{ name, database, held string }{
		{"PostgreSQL, the answer to COMMIT held", "PostgreSQL", "COMMIT"},
		{"PostgreSQL, the answer to the caller held", "PostgreSQL", "HTTP"},
		{"SQLite, the answer to the caller held", "SQLite", "HTTP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"--data-dir", t.TempDir(), "--claim-lease", "1s"}
			var line *faultproxy.Proxy
			if c.database == "PostgreSQL" {
				p, through, _ := proxiedDatabase(t)
				args, line = append(args, "--database-url", through), p
			}
			n := startNode(t, args...)
			n.pushFiles(t, ledgerAPIs())
			caller, match := n, commits
			if c.held == "HTTP" {
				line, caller = n.proxied(t)
				match = faultproxy.Contains("/apiengine/book")
			}
			trap := line.Add(faultproxy.Rule{Match: match, Times: 1, Fault: faultproxy.HoldReply})
			broken := make(chan error, 1)
			go func() {
				_, err := caller.book(t.Context(), "once")
				broken <- err
			}()
			caught(t, trap)
			n.stop(syscall.SIGKILL)
			line.Cut() // what is held is lost
			if err := <-broken; err == nil {
				t.Fatal("the caller has an answer")
			}
			n = startNode(t, args...)
			if got := n.scalar(t, "SELECT count(*) FROM ledger"); got != "1" {
				t.Fatalf("%s bookings after the kill", got)
			}
			a, err := n.book(t.Context(), "once")
			if err != nil || a.Status != 200 || a.Header.Get("Idempotency-Replayed") != "true" || !strings.HasPrefix(fmt.Sprint(a.JSON.Data), "once ") {
				t.Errorf("the repeat: %v %d %s", err, a.Status, a.Body)
			}
			if got := n.scalar(t, "SELECT count(*) FROM ledger"); got != "1" {
				t.Errorf("%s bookings after the repeat", got)
			}
		})
	}
}

// P3: a node is stopped between the check after and COMMIT, for longer than its lease. The
// next holder commits; what the first one had done is gone, and it says so.
func TestANodeStoppedBeforeItsCommit(t *testing.T) {
	p, through, direct := proxiedDatabase(t)
	shared := []string{"--redis-url", testserver.Redis(t).URL(), "--prefix", fmt.Sprintf("p3n%d", prefixes.Add(1)), "--secret-key", strings.Repeat("ab", 32)}
	first := startNode(t, append([]string{"--data-dir", t.TempDir(), "--database-url", through}, shared...)...)
	next := startNode(t, append([]string{"--data-dir", t.TempDir(), "--database-url", direct}, shared...)...)
	files := counterFiles()
	files["add_many.js"] = js("Lock: true\nLockKey: Id\nLockScope: api:add_one\nTimeout: 2",
		"V8.Db.FromSql('UPDATE counter SET n = n + 100 WHERE id = @p0').AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery(); return { Code: 1 };")
	first.pushFiles(t, files)
	next.awaitAPI(t, "add_one")
	trap := p.Add(faultproxy.Rule{Match: commits, Times: 1, Fault: faultproxy.HoldCall})
	stale := first.later(t, "/apiengine/add_many", map[string]any{"Id": "a"})
	caught(t, trap)
	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if a := next.call(t, "POST", "/apiengine/add_one", `{"Id":"a"}`); a.JSON.Code != 1 {
		t.Errorf("the next holder: %d %s", a.Status, a.Body)
	}
	trap.Release() // the late COMMIT goes to the database
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	switch o := <-stale; {
	case o.err != nil:
		t.Error(o.err)
	case o.kind() != "lease_lost" && o.kind() != "stale_fence" && o.kind() != "store_unavailable":
		t.Errorf("the stopped holder: %d %s", o.Status, o.Body)
	default:
		t.Logf("the stopped holder heard %d %s", o.Status, o.Body)
	}
	if got := next.scalar(t, "SELECT n FROM counter WHERE id = 'a'"); got != "1" {
		t.Errorf("the counter is %s", got)
	}
}
