package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"apiengine/internal/testserver"
)

// TestMain also serves as the main function of the hand-written servers that the
// benchmarks compare with (bench_peer_test.go).
func TestMain(m *testing.M) {
	if peer := os.Getenv("APIENGINE_TEST_PEER"); peer != "" {
		runPeer(peer)
		return
	}
	testserver.Main(m)
}

// adminToken is given to every node that a test starts.
const adminToken = "aek_test-token-of-the-end-to-end-suite-0123456789"

// binary builds cmd/apiengine once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "apiengine-binary-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "apiengine")
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "apiengine/cmd/apiengine")...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return path, err
})

// node is one running apiengine process.
type node struct {
	URL  string
	cmd  *exec.Cmd
	log  *syncBuffer
	done chan struct{}
}

// startNode runs `apiengine serve` with args and waits until it is ready. It is stopped
// when the test ends.
func startNode(t testing.TB, args ...string) *node {
	t.Helper()
	n := launch(t, args...)
	n.awaitReady(t)
	return n
}

func launch(t testing.TB, args ...string) *node {
	t.Helper()
	return serve(t, append([]string{"--admin-token", adminToken}, args...)...)
}

// serve runs `apiengine serve` as a newcomer does, with nothing but these flags.
func serve(t testing.TB, args ...string) *node {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	return run(t, "http://"+addr, exec.Command(path, append([]string{"serve", "--addr", addr}, args...)...))
}

// run starts the process of a node that will be at url.
func run(t testing.TB, url string, cmd *exec.Cmd) *node {
	t.Helper()
	n := &node{URL: url, cmd: cmd, log: &syncBuffer{}, done: make(chan struct{})}
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { n.cmd.Wait(); close(n.done) }()
	t.Cleanup(func() {
		n.stop(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("log of %s:\n%s", n.URL, n.log.tail(8000))
		}
	})
	return n
}

// stop sends sig and waits; a node that does not end in 20 s is killed.
func (n *node) stop(sig syscall.Signal) {
	_ = n.cmd.Process.Signal(syscall.SIGCONT) // a stopped process hears nothing else; it may have ended
	_ = n.cmd.Process.Signal(sig)
	select {
	case <-n.done:
	case <-time.After(20 * time.Second):
		_ = n.cmd.Process.Kill()
		<-n.done
	}
}

func (n *node) awaitReady(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, _ := http.NewRequestWithContext(ctx, "GET", n.URL+"/readyz", nil)
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-n.done:
			t.Fatalf("the node ended:\n%s", n.log.tail(4000))
		case <-ctx.Done():
			t.Fatalf("the node is not ready:\n%s", n.log.tail(4000))
		case <-tick.C:
		}
	}
}

// answer is what came back for a request.
type answer struct {
	Status int
	Header http.Header
	Body   string
	JSON   struct {
		Code       float64
		Data       any
		DataCount  float64
		Msg        string
		DataAppend struct{ Error map[string]any }
	}
}

func (a answer) kind() string { return fmt.Sprint(a.JSON.DataAppend.Error["Kind"]) }

// call sends a request with the admin token. body nil sends none, a string goes as it is,
// anything else as JSON.
func (n *node) call(t testing.TB, method, path string, body any) answer {
	t.Helper()
	a, err := n.try(t.Context(), method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (n *node) try(ctx context.Context, method, path string, body any) (answer, error) {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return answer{}, err
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, n.URL+path, r)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	return answerOf(res), nil
}

// push saves a definition over the admin API.
func (n *node) push(t testing.TB, def map[string]any) {
	t.Helper()
	a := n.call(t, "PUT", "/admin/api/v1/definitions/"+def["ApiEngineKey"].(string), def)
	if a.Status != 200 && a.Status != 201 {
		t.Fatalf("saving %v: %d %s", def["ApiEngineKey"], a.Status, a.Body)
	}
}

// syncBuffer is a bytes.Buffer that a process writes and a test reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *syncBuffer) tail(n int) string {
	s := b.String()
	return s[max(0, len(s)-n):]
}

// answerOf reads a response to its end.
func answerOf(res *http.Response) answer {
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body) // a cut answer shows in Body
	a := answer{Status: res.StatusCode, Header: res.Header, Body: string(text)}
	_ = json.Unmarshal(text, &a.JSON) // an answer that is no envelope shows in Body
	return a
}

// await calls until every few milliseconds until it is true, at most 20 s.
func await(t testing.TB, what string, until func() bool) {
	t.Helper()
	awaitLong(t, 20*time.Second, what, until)
}

func awaitLong(t testing.TB, limit time.Duration, what string, until func() bool) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !until() {
		select {
		case <-deadline:
			t.Fatalf("waited %v for %s", limit, what)
		case <-tick.C:
		}
	}
}

// awaitAPI waits until an API saved on another node is live on this one.
func (n *node) awaitAPI(t testing.TB, key string) {
	t.Helper()
	await(t, key+" to be live", func() bool {
		return n.call(t, "POST", "/admin/api/v1/definitions/"+key+"/plan", map[string]any{"Param": map[string]any{"Id": "x"}}).Status == 200
	})
}

// pushFiles writes files into a folder and sends it with `apiengine push`.
func (n *node) pushFiles(t testing.TB, files fs.FS) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	n.command(t, "push", dir)
}

// command runs an apiengine command against this node and returns its standard output.
func (n *node) command(t testing.TB, args ...string) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "APIENGINE_URL="+n.URL, "APIENGINE_TOKEN="+adminToken)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("apiengine %v: %v\n%s%s", args, err, out.String(), errs.String())
	}
	return out.String()
}

// scalar reads one value from the default tenant's database.
func (n *node) scalar(t testing.TB, sql string) string {
	t.Helper()
	a := n.call(t, "POST", "/admin/api/v1/sql", map[string]any{"Sql": sql})
	data, _ := a.JSON.Data.(map[string]any)
	rows, _ := data["Rows"].([]any)
	if a.Status != 200 || len(rows) != 1 {
		t.Fatalf("%s: %d %s", sql, a.Status, a.Body)
	}
	return fmt.Sprint(rows[0].([]any)[0])
}
