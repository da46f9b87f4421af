package engine_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"apiengine/internal/faultproxy"
)

// E2: the node is killed when the commit is done and nobody has heard of it, exactly: the
// answer is held back on its way from the database, or from the node. The repeat gets what
// was kept; there is one effect.
func TestANodeKilledBetweenCommitAndAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, database, held string }{
		{"PostgreSQL, the answer to COMMIT held", "PostgreSQL", "COMMIT"},
		{"PostgreSQL, the answer to the caller held", "PostgreSQL", "HTTP"},
		{"SQLite, the answer to the caller held", "SQLite", "HTTP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"--data-dir", t.TempDir(), "--claim-lease", "1s"}
			var line *faultproxy.Proxy
			var database string
			if c.database == "PostgreSQL" {
				p, through, direct := proxiedDatabase(t)
				args, line, database = append(args, "--database-url", through), p, direct
			}
			n := startNode(t, args...)
			n.pushFiles(t, ledgerAPIs())
			caller, match := n, commits
			if c.held == "HTTP" {
				line, caller = n.proxied(t)
				match = faultproxy.Contains("/apiengine/book")
			}
			// All of them, as the node's own jobs commit too.
			trap := line.Add(faultproxy.Rule{Match: match, Fault: faultproxy.HoldReply})
			broken := make(chan error, 1)
			go func() {
				_, err := caller.book(t.Context(), "once")
				broken <- err
			}()
			caught(t, trap)
			if c.held != "HTTP" {
				await(t, "the booking to be committed", func() bool { return booked(t, database) == 1 })
			}
			n.stop(syscall.SIGKILL)
			trap.Remove()
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

// booked counts the bookings in the database itself, past the node and its line.
func booked(t *testing.T, database string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM "_apiengine_tenant_default".ledger`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
