package engine_test

import (
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"apiengine/internal/testserver"
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

// move renames a file of a folder.
func move(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderIsLive(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.js", answering("one"))
	write(t, dir, "broken.js", "/*---\nTimeout: 0.5\n---*/\nreturn 1;")
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "below/c.js", answering("never"))
	n := startNode(t, "--data-dir", t.TempDir(), "--apis-dir", dir)

	n.says(t, "a", "one") // a broken file keeps no other out
	n.logs(t, `"file":"below/c.js"`)
	n.logs(t, "broken.js:2:")
	write(t, dir, "a.js", answering("two"))
	n.says(t, "a", "two")
	write(t, dir, "a.js", "return { Code: ;")
	n.logs(t, "a.js:1:16")
	n.says(t, "a", "two") // the old one stays
	write(t, dir, "a.js", answering("three"))
	n.says(t, "a", "three")

	// Editors write another file and rename it, or move the old one out of the way first.
	write(t, dir, ".a.js.swp", "half")
	write(t, dir, "a.js~", answering("four"))
	move(t, dir, "a.js~", "a.js")
	n.says(t, "a", "four")
	move(t, dir, "a.js", "a.js.bak")
	write(t, dir, "a.js", answering("five"))
	n.says(t, "a", "five")

	// Tables, in a folder that is made later.
	write(t, dir, "b.js", "return V8.Db.FromSql('SELECT v FROM late').ToScalar();")
	write(t, dir, "schema/0001_late.sql", "-- +goose Up\nCREATE TABLE late (v TEXT);\nINSERT INTO late VALUES ('x');\n-- +goose Down\nDROP TABLE late;")
	await(t, "the table", func() bool { return n.call(t, "GET", "/apiengine/b", nil).Body == "x" })

	write(t, dir, "c.js", answering("stays"))
	n.says(t, "c", "stays")
	remove(t, dir, "a.js")
	n.isGone(t, "a")
	n.says(t, "c", "stays")
}

// A file's name and its key are two things.
func TestAFolderKnowsFilesAndKeysApart(t *testing.T) {
	dir := t.TempDir()
	file := func(key, data string) string { return "/*---\nApiEngineKey: " + key + "\n---*/\n" + answering(data) }
	write(t, dir, "named.js", file("k1", "k1"))
	n := startNode(t, "--data-dir", t.TempDir(), "--apis-dir", dir)
	n.says(t, "k1", "k1")

	move(t, dir, "named.js", "renamed.js")
	write(t, dir, "after.js", answering("after"))
	n.says(t, "after", "after")
	n.says(t, "k1", "k1") // a renamed file has its API still

	write(t, dir, "renamed.js", file("k2", "k2"))
	n.says(t, "k2", "k2")
	n.isGone(t, "k1")

	// A second file for one API is refused until the first is gone.
	write(t, dir, "second.js", file("K2", "second"))
	n.logs(t, "already defined by renamed.js")
	n.says(t, "k2", "k2")
	remove(t, dir, "renamed.js")
	n.says(t, "k2", "second")
}

// What changed while the database was down is loaded when it is back.
func TestAFolderOutlivesTheDatabase(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.js", answering("one"))
	address, err := url.Parse(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	between := newCable(t, address.Host)
	address.Host = between.addr
	n := startNode(t, "--data-dir", t.TempDir(), "--database-url", address.String(), "--apis-dir", dir)
	n.says(t, "a", "one")
	between.cut(true)
	write(t, dir, "a.js", answering("two"))
	n.logs(t, "not loaded")
	between.cut(false)
	n.says(t, "a", "two")
}

// cable forwards connections to a server until it is cut.
type cable struct {
	addr string
	mu   sync.Mutex
	down bool
	ends []net.Conn
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{addr: l.Addr().String()}
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); c.cut(true); wg.Wait() })
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			if out, err := net.Dial("tcp", to); err != nil || !c.carry(in, out) {
				in.Close()
			} else {
				wg.Go(func() { io.Copy(out, in); out.Close() })
				wg.Go(func() { io.Copy(in, out); in.Close() })
			}
		}
	})
	return c
}

func (c *cable) carry(ends ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, ends...)
	if c.down {
		ends[1].Close()
	}
	return !c.down
}

func (c *cable) cut(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down = down; down {
		for _, e := range c.ends {
			e.Close()
		}
		c.ends = nil
	}
}

// An API that is saved unchanged, as at every start, gets no new version.
func TestARestartMakesNoVersions(t *testing.T) {
	t.Parallel()
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

// A folder that is replaced as a whole, as a deployment does, is followed again.
func TestAFolderThatIsReplacedIsFollowed(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "apis")
	write(t, dir, "a.js", answering("one"))
	n := startNode(t, "--data-dir", t.TempDir(), "--apis-dir", dir)
	n.says(t, "a", "one")
	move(t, parent, "apis", "old")
	n.logs(t, "the folder is gone")
	n.says(t, "a", "one")
	write(t, filepath.Join(parent, "new"), "a.js", answering("two"))
	write(t, filepath.Join(parent, "new"), "b.js", answering("three"))
	move(t, parent, "new", "apis")
	n.says(t, "a", "two")
	n.says(t, "b", "three")
	write(t, dir, "a.js", answering("four"))
	n.says(t, "a", "four")
}
