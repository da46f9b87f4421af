package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"apiengine/internal/testserver"
)

// ended waits for the process and returns its exit code; -1 is the death by a signal.
func (n *node) ended(t *testing.T) int {
	t.Helper()
	select {
	case <-n.done:
	case <-time.After(20 * time.Second):
		t.Fatalf("the process does not end:\n%s", n.log.tail(2000))
	}
	return n.cmd.ProcessState.ExitCode()
}

// The first start makes a token, shows it once and keeps it for its owner only.
func TestFirstStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	n := serve(t, "--data-dir", dir)
	n.awaitReady(t)
	token := regexp.MustCompile(`aek_\S+`).FindString(n.log.String())
	path := filepath.Join(dir, "admin-token")
	kept, err := os.ReadFile(path)
	if err != nil || token == "" || strings.TrimSpace(string(kept)) != token {
		t.Fatalf("shown %q, kept %q, %v", token, kept, err)
	}
	for _, name := range []string{"admin-token", "secret-key", "apiengine.db"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	cli("tenant", "list", "--url", n.URL, "--token", token).want(t, 0, "default")
	n.stop(syscall.SIGTERM)

	again := serve(t, "--data-dir", dir)
	again.awaitReady(t)
	if strings.Contains(again.log.String(), "aek_") {
		t.Errorf("the second start shows a token:\n%s", again.log.String())
	}
	cli("tenant", "list", "--url", again.URL, "--token", token).want(t, 0, "default")
}

func TestASecondProcessOnADataDirIsRefused(t *testing.T) {
	dir := t.TempDir()
	first := startNode(t, "--data-dir", dir)
	second := serve(t, "--data-dir", dir)
	if code := second.ended(t); code != 2 {
		t.Errorf("exit code %d", code)
	}
	if msg := second.log.String(); !strings.Contains(msg, "--data-dir") || !strings.Contains(msg, fmt.Sprint(first.cmd.Process.Pid)) {
		t.Errorf("it says %s", msg)
	}
}

// gated is an API that runs until another call lets it through; inside tells that it runs.
// The wait is a loop over the cache, so that the test needs no time of its own.
const gated = `/*---
ApiEngineKey: gated
Lock: true
LockKey: Id
Timeout: 30
---*/
%s
V8.Cache.SetIfNotExists('inside:' + V8.Param.Id, '1', 60);
while (!V8.Cache.Exists('go:' + V8.Param.Id)) { var pause = Date.now() + 3; while (Date.now() < pause) {} } // host calls are counted
return { Code: 1, Data: 'through' };`

// gate brings the API gated, with a first line of its own, and what opens it.
func (n *node) gate(t *testing.T, first string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "gated.js", fmt.Sprintf(gated, first))
	write(t, dir, "inside.js", "return { Code: 1, Data: V8.Cache.Get('inside:' + V8.Param.Id) };")
	write(t, dir, "open.js", "V8.Cache.SetIfNotExists('go:' + V8.Param.Id, '1', 60); return { Code: 1 };")
	write(t, dir, "schema/0001_mark.sql", "-- +goose Up\nCREATE TABLE mark (id TEXT);\n-- +goose Down\nDROP TABLE mark;")
	n.cli("push", dir).want(t, 0, "created")
}

func (n *node) awaitInside(t *testing.T, id string) {
	t.Helper()
	await(t, "the call to be inside", func() bool { return n.call(t, "GET", "/apiengine/inside?Id="+id, nil).JSON.Data == "1" })
}

// outcome is what a call in the background came to.
type outcome struct {
	answer
	err error
}

func (n *node) later(t *testing.T, path string, body any) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		a, err := n.try(t.Context(), "POST", path, body)
		done <- outcome{a, err}
	}()
	return done
}

// SIGTERM under load: running calls finish, new ones and /readyz hear 503, the exit code is 0.
func TestShutdownLetsCallsFinish(t *testing.T) {
	s := testserver.NewRedis(t) // the gate is opened from another node
	args := func() []string { return []string{"--data-dir", t.TempDir(), "--redis-url", s.URL()} }
	n, other := startNode(t, args()...), startNode(t, args()...)
	n.gate(t, "")
	other.gate(t, "")
	var calls []<-chan outcome
	for i := range 5 {
		calls = append(calls, n.later(t, "/apiengine/gated", map[string]any{"Id": fmt.Sprint(i)}))
		n.awaitInside(t, fmt.Sprint(i))
	}
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	await(t, "/readyz to say that it drains", func() bool {
		a, err := n.try(t.Context(), "GET", "/readyz", nil)
		return err == nil && a.Status == 503 && a.kind() == "draining"
	})
	if a := n.call(t, "GET", "/apiengine/inside?Id=0", nil); a.Status != 503 || a.kind() != "draining" || a.Header.Get("Retry-After") == "" {
		t.Errorf("a new call: %d %s", a.Status, a.Body)
	}
	for i := range calls {
		other.call(t, "POST", "/apiengine/open", map[string]any{"Id": fmt.Sprint(i)})
	}
	for _, c := range calls {
		if o := <-c; o.err != nil || o.JSON.Data != "through" {
			t.Errorf("a running call: %v %s", o.err, o.Body)
		}
	}
	if code := n.ended(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, n.log.tail(2000))
	}
}

// A second signal ends the process at once; so does the end of the grace, with exit code 1.
func TestShutdownThatDoesNotWait(t *testing.T) {
	t.Run("second signal", func(t *testing.T) {
		n := startNode(t, "--data-dir", t.TempDir())
		n.gate(t, "")
		call := n.later(t, "/apiengine/gated", map[string]any{"Id": "a"})
		n.awaitInside(t, "a")
		for _, want := range []string{"shutting down", ""} {
			if err := n.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			n.logs(t, want)
		}
		if code := n.ended(t); code != -1 {
			t.Errorf("exit code %d", code)
		}
		if o := <-call; o.err == nil {
			t.Errorf("the call came through: %s", o.Body)
		}
	})
	t.Run("grace", func(t *testing.T) {
		n := startNode(t, "--data-dir", t.TempDir(), "--grace", "100ms")
		n.gate(t, "")
		call := n.later(t, "/apiengine/gated", map[string]any{"Id": "a"})
		n.awaitInside(t, "a")
		if err := n.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code := n.ended(t); code != 1 || !strings.Contains(n.log.String(), "grace of 100ms") {
			t.Errorf("exit code %d:\n%s", code, n.log.tail(2000))
		}
		<-call
	})
}

// A client that hangs up leaves no lock behind: before a transaction has begun the run is
// ended, afterwards it goes on to its end, and the next call has the lock at once.
func TestAClientThatHangsUpLeavesNoLock(t *testing.T) {
	for _, backend := range []string{"embedded", "Redis"} {
		for _, c := range []struct{ when, first, rows string }{
			{"before its transaction", "", "0"},
			{"in its transaction", "V8.Db.FromSql('INSERT INTO mark VALUES (@p0)').AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery();", "1"},
		} {
			t.Run(backend+" "+c.when, func(t *testing.T) {
				args := []string{"--data-dir", t.TempDir(), "--prefix", fmt.Sprintf("h%d", prefixes.Add(1))}
				if backend == "Redis" {
					args = append(args, "--redis-url", testserver.Redis(t).URL())
				}
				n := startNode(t, args...)
				n.gate(t, c.first)
				n.hangUp(t, "a")
				if c.rows == "1" {
					n.call(t, "POST", "/apiengine/open", map[string]any{"Id": "a"})
				}
				n.logs(t, `"api":"gated"`) // the run is over
				n.call(t, "POST", "/apiengine/open", map[string]any{"Id": "a"})
				a := n.call(t, "POST", "/apiengine/gated", map[string]any{"Id": "a"})
				if a.JSON.Code != 1 {
					t.Fatalf("the next call: %d %s", a.Status, a.Body)
				}
				var ms int
				if _, err := fmt.Sscan(a.Header.Get("X-Lock-Wait-Ms"), &ms); err != nil || ms > 1000 {
					t.Errorf("the next call waited %d ms for the lock, %v", ms, err)
				}
				want := map[string]string{"0": "0", "1": "2"}[c.rows] // the next call writes too
				if got := n.scalar(t, "SELECT count(*) FROM mark"); got != want {
					t.Errorf("%s rows, want %s", got, want)
				}
			})
		}
	}
}

// hangUp calls gated and closes the connection once the script runs.
func (n *node) hangUp(t *testing.T, id string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", n.URL+"/apiengine/gated", strings.NewReader(`{"Id":"`+id+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	done := make(chan error, 1)
	go func() {
		res, err := client.Do(req)
		if err == nil {
			err = errors.Join(res.Body.Close(), errors.New("it was answered"))
		}
		done <- err
	}()
	n.awaitInside(t, id)
	leave()
	if err := <-done; err == nil || strings.Contains(err.Error(), "answered") {
		t.Fatal(err)
	}
}

// What is saved on one node is live on the other within a second. The bound here is
// generous, for a loaded machine; the log of the test has the time.
func TestASavedDefinitionIsLiveOnTheOtherNode(t *testing.T) {
	t.Parallel()
	a, b := twoNodes(t)
	var longest time.Duration
	for i := range 5 {
		want := fmt.Sprintf("version %d", i)
		a.push(t, map[string]any{"ApiEngineKey": "v", "ApiV8Code": answering(want)})
		saved := time.Now()
		b.says(t, "v", want)
		longest = max(longest, time.Since(saved))
	}
	t.Logf("live on the other node after at most %v", longest)
	if longest > 5*time.Second {
		t.Errorf("it took %v", longest)
	}
}
