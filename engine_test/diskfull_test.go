package engine_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"apiengine/internal/testserver"
)

// onSmallDisk starts a node whose data folder is a file system of its own with 20 MB, 11 of
// which a file takes: more than a log that could not be checkpointed has grown by. It
// returns that file's path, as seen from here.
func onSmallDisk(t *testing.T) (n *node, ballast string) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir, addr := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", port)
	script := `mount -t tmpfs -o size=20m none "$0" && head -c 11000000 /dev/zero >"$0/ballast" && exec "$@"`
	cmd := exec.Command("unshare", "--map-root-user", "--mount", "sh", "-c", script, dir,
		path, "serve", "--addr", addr, "--data-dir", dir, "--admin-token", adminToken)
	n = run(t, "http://"+addr, cmd)
	n.awaitReady(t)
	return n, filepath.Join("/proc", fmt.Sprint(cmd.Process.Pid), "root", dir, "ballast")
}

// E7: the disk is full under SQLite. The caller hears so, nothing is half-written, what
// only reads goes on, and when there is room again calls with the same keys do their work.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("this system lets nobody mount a small disk: %v %s", err, out)
	}
	n, ballast := onSmallDisk(t)
	n.pushFiles(t, fstest.MapFS{
		"schema/0001_ledger.sql": {Data: []byte("-- +goose Up\nCREATE TABLE ledger (id TEXT, run INT);\nCREATE TABLE blobs (id TEXT, data TEXT);\n-- +goose Down\nDROP TABLE ledger;\n")},
		"book.js": js("Lock: true\nTimeout: 10", `V8.Db.FromSql('INSERT INTO ledger VALUES (@p0, 1)').AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery();
V8.Db.FromSql('INSERT INTO blobs VALUES (@p0, @p1)').AddInParameter('@p0', V8.Param.Id).AddInParameter('@p1', 'x'.repeat(200000)).ExecuteNonQuery();
return { Code: 1, Data: V8.Param.Id };`),
	})
	whole := func(booked int) {
		t.Helper()
		for _, table := range []string{"ledger", "blobs"} {
			if got := n.scalar(t, "SELECT count(*) FROM "+table); got != fmt.Sprint(booked) {
				t.Errorf("%s has %s rows, %d were booked", table, got, booked)
			}
		}
	}
	booked, refused := 0, 0
	for i := 0; refused < 3; i++ {
		if i > 200 {
			t.Fatal("the disk does not get full")
		}
		a, err := n.book(t.Context(), fmt.Sprint("b", i))
		switch {
		case err != nil:
			t.Fatal(err)
		case a.Status == 200:
			booked++
		default:
			refused++
			if a.Status != 503 || a.kind() != "store_unavailable" || !strings.Contains(a.JSON.Msg, "full") {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			whole(booked)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for i := range booked + refused {
		a, err := n.book(t.Context(), fmt.Sprint("b", i))
		if err != nil || a.Status != 200 || a.JSON.Data != fmt.Sprint("b", i) {
			t.Errorf("with room again: %v %d %s", err, a.Status, a.Body)
		}
	}
	whole(booked + refused)
	healthy(t, filepath.Join(filepath.Dir(ballast), "tenants"))
	t.Logf("%d booked before the disk was full", booked)
}

// healthy checks a copy of the database of a node that rests.
func healthy(t *testing.T, dir string) {
	t.Helper()
	copied := t.TempDir()
	for _, name := range []string{"default.db", "default.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(copied, "default.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var health string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&health); err != nil || health != "ok" {
		t.Errorf("the database: %v %s", err, health)
	}
}
