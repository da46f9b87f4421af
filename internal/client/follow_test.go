package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"apiengine/fault"
)

// streams answers the n-th request for events by its n-th text; what is no stream is a status.
func streams(t *testing.T, texts ...string) (c *Client, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := len(*asked)
		*asked = append(*asked, r.URL.Path+" "+r.Header.Get("Last-Event-ID"))
		text := texts[min(n, len(texts)-1)]
		if status, err := strconv.Atoi(text); err == nil {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"Code":0,"Msg":"no","DataAppend":{"Error":{"Kind":"not_found"}}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	return &Client{URL: s.URL}, asked
}

const (
	logOne  = "id: 2026-01-02T12:00:00.000001Z\nevent: log\ndata: {\"At\":\"2026-01-02T12:00:00.000001Z\",\"Text\":\"one\"}\n\n"
	logTwo  = "id: 2026-01-02T12:00:00.000002Z\nevent: log\ndata: {\"At\":\"2026-01-02T12:00:00.000002Z\",\"Text\":\"t\\u001bwo\"}\n\n"
	running = ":\n\nevent: task\ndata: {\"Id\":\"a\",\"Status\":\"Running\",\"Current\":5,\"Total\":10,\"Progress\":50}\n\n"
)

func ends(status string) string {
	return "event: end\ndata: {\"Id\":\"a\",\"Status\":\"" + status + "\",\"EndedAt\":\"2026-01-02T12:00:01Z\"}\n\n"
}

// heard follows a task and notes what it was told.
func heard(t *testing.T, c *Client) (got []string, end TaskEnd, err error) {
	end, err = c.FollowTask(t.Context(), Follow{ID: "a", Pause: time.Millisecond,
		Line: func(l TaskLine) { got = append(got, l.String()) }, Change: func(x *Task) { got = append(got, x.Status+" "+x.Units()) }})
	return got, end, err
}

// A stream that breaks off is taken up behind the last line.
func TestFollowGoesOn(t *testing.T) {
	c, asked := streams(t, logOne+running, "503", "502", "id: cut off in the midd", logTwo+ends("Succeeded"))
	got, end, err := heard(t, c)
	if err != nil || end.Status != "Succeeded" || end.Failed() {
		t.Fatalf("%+v, %v", end, err)
	}
	if want := []string{"12:00:00.000 one", "Running 5/10", `12:00:00.000 t\x1bwo`, "Succeeded "}; !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
	behind := "/api/v1/tasks/a/events 2026-01-02T12:00:00.000001Z"
	if want := []string{"/api/v1/tasks/a/events ", behind, behind, behind, behind}; !slices.Equal(*asked, want) {
		t.Errorf("asked %q, want %q", *asked, want)
	}
}

func TestFollowGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		texts []string
		kind  fault.Kind
		asked int
	}{
		"no such task":               {[]string{"404"}, fault.NotFound, 1},
		"forgotten meanwhile":        {[]string{running, "404"}, fault.NotFound, 2},
		"not even there at first":    {[]string{"503"}, fault.Draining, 1},
		"something else than a task": {[]string{"event: task\ndata: []\n\n"}, fault.Internal, 1},
	} {
		client, asked := streams(t, c.texts...)
		if _, _, err := heard(t, client); fault.Of(err) != c.kind || len(*asked) != c.asked {
			t.Errorf("%s: %v after %q", name, err, *asked)
		}
	}
	c, _ := streams(t, running)
	_, err := c.FollowTask(t.Context(), Follow{ID: "a", Pause: time.Millisecond, Patience: time.Nanosecond, Line: func(TaskLine) {}, Change: func(*Task) {}})
	if fault.Of(err) != fault.Draining {
		t.Errorf("without patience: %v", err)
	}
}

func TestEveryOtherEndHasFailed(t *testing.T) {
	for _, status := range []string{"Failed", "Dead", "Canceled"} {
		c, _ := streams(t, ends(status))
		if _, end, err := heard(t, c); err != nil || !end.Failed() {
			t.Errorf("%s: %+v, %v", status, end, err)
		}
	}
}

func TestATaskForPeople(t *testing.T) {
	half := 45.0
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	task := Task{Id: "a", ApiEngineKey: "import", Status: "Retrying", Slice: 4, Attempt: 1, MaxAttempts: 3, Current: 9, Total: 20, Progress: &half,
		Msg: "line\x1b 9", Error: "boom", Why: "try 2 of 3 at 12:00:05: boom", Source: "api", Checkpoint: []byte(`{"at":9}`), CreatedAt: at,
		Log: []TaskLine{{at, "begun"}}}
	expect(t, "task", task.String(), `task         a
api          import
status       Retrying
progress     45.0% 9/20
slices       4 done, try 1 of 3
message      line\x1b 9
error        boom
why          try 2 of 3 at 12:00:05: boom
checkpoint   {"at":9}
source       api
created      2026-01-02 12:00Z
12:00:00.000 begun
`)
	list := Tasks{Items: []Task{task}, NextCursor: "a"}
	expect(t, "list", list.String(), `ID  API     STATUS    PROGRESS  UNITS  SLICES  TRY  CREATED            SAYS
a   import  Retrying  45.0%     9/20   4       1    2026-01-02 12:00Z  try 2 of 3 at 12:00:05: boom
more with --cursor a
`)
}
