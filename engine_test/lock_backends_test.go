package engine_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"apiengine/internal/testserver"
)

// Two processes without Redis take turns by locks in PostgreSQL, which is what a database
// alone means, and in etcd.
func TestTwoNodesTakeTurnsWithoutRedis(t *testing.T) {
	for name, args := range map[string][]string{
		"PostgreSQL": nil,
		"etcd":       {"--lock-backend", "etcd", "--etcd-endpoints", testserver.Etcd(t).URL()},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--database-url", testserver.Database(t), "--prefix", fmt.Sprintf("n%d", prefixes.Add(1)),
				"--secret-key", strings.Repeat("ab", 32)}, args...)
			a := startNode(t, append([]string{"--data-dir", t.TempDir()}, args...)...)
			b := startNode(t, append([]string{"--data-dir", t.TempDir()}, args...)...)
			takeTurns(t, a, b)
			if got := a.call(t, "GET", "/readyz", nil); got.Status != 200 {
				t.Errorf("readyz: %d %s", got.Status, got.Body)
			}
		})
	}
}

// Without its etcd a node is not ready and runs nothing; it is well again by itself.
func TestANodeWithoutItsEtcd(t *testing.T) {
	t.Parallel()
	s := testserver.NewEtcd(t)
	n := startNode(t, "--data-dir", t.TempDir(), "--lock-backend", "etcd", "--etcd-endpoints", s.URL())
	n.pushFiles(t, counterFiles())
	first := n.call(t, "POST", "/apiengine/add_one", `{"Id":"a"}`)
	s.Stop(syscall.SIGTERM)
	if got := n.call(t, "POST", "/apiengine/add_one", `{"Id":"a"}`); got.kind() != "lock_unavailable" || got.Status != 503 {
		t.Errorf("a locked call: %d %s", got.Status, got.Body)
	}
	if got := n.call(t, "GET", "/readyz", nil); got.Status != 503 || !strings.Contains(got.Body, "lock") {
		t.Errorf("readyz: %d %s", got.Status, got.Body)
	}
	s.Restart(t)
	await(t, "the lock to be back", func() bool {
		got, err := n.try(context.Background(), "POST", "/apiengine/add_one", `{"Id":"a"}`)
		if err != nil || got.JSON.Code != 1 {
			return false
		}
		before, after := first.JSON.Data.(map[string]any), got.JSON.Data.(map[string]any)
		if after["N"] != before["N"].(float64)+1 || after["Token"].(float64) <= before["Token"].(float64) {
			t.Errorf("%v after %v: the call without a lock left something, or the token fell", after, before)
		}
		return true
	})
}
