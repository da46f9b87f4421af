package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// says waits until the API answers with Data.
func (n *node) says(t *testing.T, key, data string) {
	t.Helper()
	await(t, key+" to answer "+data, func() bool { return n.call(t, "GET", "/apiengine/"+key, nil).JSON.Data == data })
}

func (n *node) isGone(t *testing.T, key string) {
	t.Helper()
	await(t, key+" to be gone", func() bool { return n.call(t, "GET", "/apiengine/"+key, nil).Status == 404 })
}

func (n *node) logs(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		await(t, "the log to say "+text, func() bool { return strings.Contains(n.log.String(), text) })
	}
}

func answering(data string) string { return "return { Code: 1, Data: '" + data + "' };" }

func TestAFolderIsLive(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.js", answering("one"))
	write(t, dir, "broken.js", "/*---\nTimeout: 0.5\n---*/\nreturn 1;")
	n := startNode(t, "--data-dir", t.TempDir(), "--apis-dir", dir)
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}

	n.says(t, "a", "one") // a broken file keeps no other out
	n.logs(t, "broken.js:2:")

	write(t, dir, "a.js", answering("two"))
	n.says(t, "a", "two")

	write(t, dir, "a.js", "return { Code: ;")
	n.logs(t, "a.js:1:16")
	n.says(t, "a", "two") // the old one stays
	write(t, dir, "a.js", answering("three"))
	n.says(t, "a", "three")

	// Editors write another file and rename it.
	write(t, dir, ".a.js.swp", "half")
	write(t, dir, "a.js~", answering("four"))
	move("a.js~", "a.js")
	n.says(t, "a", "four")
	move("a.js", "a.js.bak") // the old one out of the way, then the new one
	write(t, dir, "a.js", answering("five"))
	n.says(t, "a", "five")

	// The tables come before the files that need them, in a folder that is made later.
	write(t, dir, "b.js", "return V8.Db.FromSql('SELECT v FROM late').ToScalar();")
	write(t, dir, "schema/0001_late.sql", "-- +goose Up\nCREATE TABLE late (v TEXT);\nINSERT INTO late VALUES ('x');\n-- +goose Down\nDROP TABLE late;")
	await(t, "the table", func() bool { return n.call(t, "GET", "/apiengine/b", nil).Body == "x" })

	// A file's new name, and a key's.
	write(t, dir, "named.js", "/*---\nApiEngineKey: k1\n---*/\n"+answering("k1"))
	n.says(t, "k1", "k1")
	move("named.js", "renamed.js")
	write(t, dir, "after.js", answering("after"))
	n.says(t, "after", "after")
	n.says(t, "k1", "k1") // it has its API still
	write(t, dir, "renamed.js", "/*---\nApiEngineKey: k2\n---*/\n"+answering("k2"))
	n.says(t, "k2", "k2")
	n.isGone(t, "k1")

	// A second file for one API is refused until the first is gone.
	write(t, dir, "second.js", "/*---\nApiEngineKey: K2\n---*/\n"+answering("second"))
	n.logs(t, "already defined by renamed.js")
	n.says(t, "k2", "k2")
	if err := os.Remove(filepath.Join(dir, "renamed.js")); err != nil {
		t.Fatal(err)
	}
	n.says(t, "k2", "second")

	if err := os.Remove(filepath.Join(dir, "a.js")); err != nil {
		t.Fatal(err)
	}
	n.isGone(t, "a")
	n.says(t, "after", "after")
}

// An API that is saved unchanged, as at every start, gets no new version.
func TestARestartMakesNoVersions(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	write(t, dir, "a.js", answering("one"))
	for range 2 {
		n := startNode(t, "--data-dir", data, "--apis-dir", dir)
		a := n.call(t, "GET", "/admin/api/v1/definitions/a/versions", nil)
		if list, _ := a.JSON.Data.([]any); len(list) != 1 {
			t.Errorf("%d versions: %s", len(list), a.Body)
		}
		n.stop(syscall.SIGTERM)
	}
}
