package client

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/tmaxmax/go-sse"

	"apiengine/fault"
)

// Follow says which task is followed and who hears of it.
type Follow struct {
	ID     string
	Line   func(TaskLine) // a line of its log
	Change func(*Task)    // how it stands by now
	// Pause is how long to wait before a stream that broke off is asked for again, default
	// 1 s; Patience is how long nothing may come before that is given up, default 2 min. The
	// first answer is not waited for.
	Pause, Patience time.Duration
}

// FollowTask hears of a task until it is over, over as many connections as that takes.
func (c *Client) FollowTask(ctx context.Context, f Follow) (TaskEnd, error) {
	f.Pause, f.Patience = cmp.Or(f.Pause, time.Second), cmp.Or(f.Patience, 2*time.Minute)
	s := &follower{c: c, Follow: f}
	for {
		err := s.listen(ctx)
		switch {
		case s.end != nil:
			return TaskEnd{s.end}, nil
		case ctx.Err() != nil:
			return TaskEnd{}, context.Cause(ctx)
		case err != nil && (s.heard.IsZero() || final(err) || time.Since(s.heard) > f.Patience):
			return TaskEnd{}, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(f.Pause):
		}
	}
}

// final reports whether a refusal stays one.
func final(err error) bool {
	switch fault.Of(err) {
	case fault.Draining, fault.Overloaded, fault.StoreUnavailable, fault.RateLimited:
		return false
	}
	return true
}

type follower struct {
	Follow
	c     *Client
	last  string // id of the last line
	heard time.Time
	end   *Task
}

// maxEvent is the largest event, a task with its checkpoint and result.
const maxEvent = 32 << 20

// listen hears one stream to its end.
func (s *follower) listen(ctx context.Context) error {
	r := request{root: taskRoot, method: http.MethodGet, path: taskPath(s.ID) + "/events", header: map[string]string{"Accept": "text/event-stream"}}
	if s.last != "" {
		r.header["Last-Event-ID"] = s.last
	}
	req, err := s.c.newRequest(ctx, r)
	if err != nil {
		return err
	}
	res, err := cmp.Or(s.c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return unreachable(ctx, s.c.url(), err)
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusBadGateway {
		return fault.New(fault.Draining, "%s answered %s", res.Request.URL, res.Status) // a proxy, or a node that ends
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" {
		text, err := io.ReadAll(io.LimitReader(res.Body, maxEvent))
		if err == nil {
			err = decodeAnswer(res, text, nil)
		}
		return cmp.Or(err, error(fault.New(fault.Internal, "%s answered %s instead of events", res.Request.URL, res.Status)))
	}
	s.heard = time.Now()
	for e, err := range sse.Read(res.Body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			return unreachable(ctx, s.c.url(), err)
		}
		s.heard = time.Now()
		if err := s.hear(e); err != nil || s.end != nil {
			return err
		}
	}
	return fault.New(fault.Draining, "the server at %s has ended the stream of events", s.c.url())
}

func (s *follower) hear(e sse.Event) error {
	var err error
	switch e.Type {
	case "log":
		var l TaskLine
		if err = json.Unmarshal([]byte(e.Data), &l); err == nil {
			s.last = e.LastEventID
			s.Line(l)
		}
	case "task", "end":
		t := &Task{}
		if err = json.Unmarshal([]byte(e.Data), t); err != nil {
			break
		}
		if s.Change(t); e.Type == "end" {
			s.end = t
		}
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "an event cannot be read; is the server of another version?")
	}
	return nil
}
