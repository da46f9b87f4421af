package server_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/server"
)

// listening is s on a real connection, with the limits of HTTPServer.
func listening(t *testing.T, s *server.Server) string {
	t.Helper()
	h := httptest.NewUnstartedServer(s.Handler())
	h.Config = s.HTTPServer()
	h.Start()
	t.Cleanup(h.Close)
	return h.URL
}

// quick makes streams look all the time.
func quick(c *server.Config) {
	c.Events = server.EventsConfig{Look: 5 * time.Millisecond, Heartbeat: 20 * time.Millisecond}
}

// events is a stream that a client reads.
type events struct {
	res    *http.Response
	in     *bufio.Reader
	cancel context.CancelFunc
}

func follow(t *testing.T, url string, header ...string) *events {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
	req.Header.Set("Authorization", "Bearer aek_submit")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return &events{res, bufio.NewReader(res.Body), cancel}
}

// next reads one event, "EOF" at the end of the stream. A comment is ":".
func (e *events) next() string {
	var block []string
	for {
		line, err := e.in.ReadString('\n')
		switch line = strings.TrimSuffix(line, "\n"); {
		case err != nil:
			return err.Error()
		case line == "":
			return strings.Join(block, "|")
		}
		block = append(block, line)
	}
}

// await reads until an event holds text.
func (e *events) await(t *testing.T, text string) string {
	t.Helper()
	for {
		switch got := e.next(); {
		case strings.Contains(got, text):
			return got
		case strings.Contains(got, "EOF") || strings.Contains(got, "context"):
			t.Fatalf("the stream ended by %q before %q", got, text)
		}
	}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func line(n int, text string) server.TaskLine {
	return server.TaskLine{At: noon.Add(time.Duration(n) * time.Microsecond), Text: text}
}

func TestEventsOfATask(t *testing.T) {
	first := ofAnn("a")
	first.Log = []server.TaskLine{line(1, "old"), line(2, "begun\nhere")}
	f := newFakeTasks(first)
	e := follow(t, listening(t, taskServer(t, f, quick))+"/api/v1/tasks/a/events", "Last-Event-ID", line(1, "").At.Format(time.RFC3339Nano))
	if h := e.res.Header; e.res.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("Content-Length") != "" {
		t.Fatalf("%d %v", e.res.StatusCode, h)
	}
	if got := e.next(); got != `id: 2026-01-02T12:00:00.000002Z|event: log|data: {"At":"2026-01-02T12:00:00.000002Z","Text":"begun\nhere"}` {
		t.Errorf("the first event is %s", got)
	}
	if got := e.next(); !strings.HasPrefix(got, `event: task|data: {"Id":"a",`) || strings.Contains(got, "begun") {
		t.Errorf("the second event is %s", got)
	}
	e.await(t, ":") // a heartbeat, and nothing else until something changes
	f.change("a", func(t *server.Task) { t.Status, t.Current = "Running", 5 })
	if got := e.await(t, "event: task"); !strings.Contains(got, `"Current":5`) {
		t.Errorf("%s", got)
	}
	ended := noon
	f.change("a", func(t *server.Task) { t.Status, t.EndedAt = "Succeeded", &ended })
	if got := e.await(t, "event:"); !strings.HasPrefix(got, "event: task") || !strings.Contains(got, "Succeeded") {
		t.Errorf("before the end: %s", got)
	}
	f.change("a", func(t *server.Task) { t.Log = append(t.Log, line(3, "late")) }) // kept after the last commit
	var got []string
	for {
		one := e.next()
		if one != ":" {
			got = append(got, one)
		}
		if strings.Contains(one, "EOF") {
			break
		}
	}
	if len(got) < 2 || !strings.HasPrefix(got[len(got)-2], `event: end|data: {"Id":"a"`) || strings.Contains(got[len(got)-2], `"Log"`) || got[len(got)-1] != io.EOF.Error() {
		t.Errorf("the stream ended by %q", got)
	}
}

// A stream outlives the deadlines of a request's body and of an answer, and ends with the
// drain; what a slow caller asked of an API outlives them too.
func TestStreamsAreNotCutOff(t *testing.T) {
	short := func(c *server.Config) { c.BodyTimeout, c.WriteTimeout = 100*time.Millisecond, 200*time.Millisecond }
	f := newFakeTasks(ofAnn("a"))
	s := taskServer(t, f, quick, short, func(c *server.Config) {
		c.Engine = &fakeEngine{answer: func(ctx context.Context, _ engine.Call) (*engine.Result, error) {
			select {
			case <-ctx.Done():
				return jsonResult(""), context.Cause(ctx)
			case <-time.After(500 * time.Millisecond): // the time itself is what is tested
				return jsonResult(`{"Code":1}`), nil
			}
		}}
	})
	url := listening(t, s)
	e := follow(t, url+"/api/v1/tasks/a/events")
	for began := time.Now(); time.Since(began) < 600*time.Millisecond; {
		if got := e.next(); strings.Contains(got, "EOF") {
			t.Fatalf("it was cut off after %v: %s", time.Since(began), got)
		}
	}
	if res, err := http.Get(url + "/apiengine/slow"); err != nil || res.StatusCode != 200 {
		t.Errorf("a run that is longer than a body may take: %v, %v", res, err)
	}
	s.Drain()
	for got := ""; got != io.EOF.Error(); {
		if got = e.next(); strings.Contains(got, "context") {
			t.Fatalf("the drain did not end it: %s", got)
		}
	}
}

func TestStreamsAreCounted(t *testing.T) {
	f := newFakeTasks(ofAnn("a"))
	s := taskServer(t, f, quick, func(c *server.Config) { c.Events.Max = 1 })
	url := listening(t, s) + "/api/v1/tasks/a/events"
	e := follow(t, url)
	e.await(t, "event: task")
	if other := follow(t, url); other.res.StatusCode != 503 || other.res.Header.Get("Retry-After") != "5" {
		t.Errorf("one too many: %d", other.res.StatusCode)
	}
	e.cancel() // the client leaves, and its place is free
	for began := time.Now(); follow(t, url).res.StatusCode != 200; {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the place of a client that has left is not free")
		}
	}
}

// A token that is no longer good ends its stream at the next heartbeat.
func TestAStreamEndsWithItsToken(t *testing.T) {
	f := newFakeTasks(ofAnn("a"))
	tokens := &revocable{}
	e := follow(t, listening(t, taskServer(t, f, quick, func(c *server.Config) { c.Tokens = tokens }))+"/api/v1/tasks/a/events")
	e.await(t, ":")
	tokens.revoked.Store(true)
	for got := ""; got != io.EOF.Error(); {
		if got = e.next(); strings.Contains(got, "context") {
			t.Fatalf("it goes on: %s", got)
		}
	}
}

// revocable knows workers until they are revoked.
type revocable struct{ revoked atomic.Bool }

func (r *revocable) Authenticate(ctx context.Context, plain string) (server.Identity, error) {
	if r.revoked.Load() {
		return server.Identity{}, fault.New(fault.Unauthenticated, "revoked")
	}
	return workers.Authenticate(ctx, plain)
}
