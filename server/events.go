package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"apiengine/fault"
)

// EventsConfig limits the streams of server-sent events. A zero field takes its default.
type EventsConfig struct {
	Max       int           // streams of this node at a time; default 1000
	Look      time.Duration // between two looks at what a stream is about; default 500 ms
	Heartbeat time.Duration // between two comments that keep a proxy from hanging up; default 15 s
}

func (c *EventsConfig) fill() {
	c.Max = cmp.Or(c.Max, 1000)
	c.Look = cmp.Or(c.Look, 500*time.Millisecond)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
}

func (c *EventsConfig) check() error {
	if c.Max < 0 || c.Look < 0 || c.Heartbeat < 0 {
		return errors.New("the fields of Config.Events must not be negative")
	}
	return nil
}

const typeEvents = "text/event-stream"

// taskEvents streams what happens to a task: "log" for a line, whose id Last-Event-ID may
// name, "task" when anything else has changed, "end" with the final task.
func (x *exchange) taskEvents() reply {
	c, err := x.enterTasks()
	if err != nil {
		return x.fail(err)
	}
	s := &taskStream{x: x, c: c}
	if s.after, err = c.after(); err != nil {
		return x.fail(err)
	}
	t, err := c.one(s.after, false)
	if err != nil {
		return x.fail(err)
	}
	if x.s.streams.Add(1) > int64(x.s.cfg.Events.Max) {
		x.s.streams.Add(-1)
		return x.fail(refuse(fault.Overloaded, "this node has as many streams of events as it may").with(map[string]any{"RetryAfterMs": 5000}))
	}
	x.streaming = func() {
		defer x.s.streams.Add(-1)
		s.run(t)
	}
	return reply{status: http.StatusOK, ctype: typeEvents}
}

// stream sends the head of an answer that has no end yet, and leaves the rest to x.streaming.
func (x *exchange) stream(status int) {
	x.set("Cache-Control", "no-store")
	x.set("X-Accel-Buffering", "no") // nginx would keep the events back
	x.w.WriteHeader(status)
	x.streaming()
}

// taskStream is one stream under way.
type taskStream struct {
	x     *exchange
	c     *taskCall
	after time.Time // of the last line that was sent
	seen  []byte    // the task that was sent last
	over  bool      // it had come to its end by then
}

// run looks and tells until the task is over, the client leaves, its right ends, or the
// server drains.
func (s *taskStream) run(t Task) {
	look, beat := time.NewTicker(s.x.s.cfg.Events.Look), time.NewTicker(s.x.s.cfg.Events.Heartbeat)
	defer look.Stop()
	defer beat.Stop()
	if !s.tell(t) {
		return
	}
	for {
		select {
		case <-s.c.ctx.Done():
			return
		case <-s.x.s.drained:
			return
		case <-beat.C:
			if !s.mayStay() || !s.write([]byte(":\n\n")) {
				return
			}
		case <-look.C:
			t, err := s.x.s.cfg.Tasks.Get(s.c.ctx, s.c.tenant, s.c.param("id"), s.after)
			if fault.Of(err) == fault.NotFound {
				return
			}
			if err == nil && !s.tell(t) { // a database that does not answer may do so at the next look
				return
			}
		}
	}
}

// mayStay asks again who the caller is: a token may have been revoked meanwhile.
func (s *taskStream) mayStay() bool {
	c, err := s.x.enterTasks()
	if err != nil {
		return fault.Of(err) == fault.StoreUnavailable
	}
	_, err = c.sees()
	return err == nil
}

// tell sends what is new. The end waits for one more look: a slice's last lines are kept
// after its commit.
func (s *taskStream) tell(t Task) (more bool) {
	var out bytes.Buffer
	for _, l := range t.Log {
		event(&out, "log", l.At.Format(time.RFC3339Nano), l)
		s.after = l.At
	}
	t.Log = nil
	now, err := json.Marshal(t)
	if err != nil {
		return false // a checkpoint was JSON when it was kept
	}
	over := t.EndedAt != nil
	end := over && s.over && bytes.Equal(now, s.seen)
	switch {
	case end:
		event(&out, "end", "", json.RawMessage(now))
	case !bytes.Equal(now, s.seen):
		event(&out, "task", "", json.RawMessage(now))
	}
	s.seen, s.over = now, over
	return (out.Len() == 0 || s.write(out.Bytes())) && !end
}

// event appends one event; JSON has no line ends that would break it.
func event(out *bytes.Buffer, name, id string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		return // what is sent has been JSON already
	}
	if id != "" {
		out.WriteString("id: " + id + "\n")
	}
	out.WriteString("event: " + name + "\ndata: ")
	out.Write(data)
	out.WriteString("\n\n")
}

// write sends bytes at once; false: the client is gone.
func (s *taskStream) write(text []byte) bool {
	out := http.NewResponseController(s.x.w)
	_ = out.SetWriteDeadline(time.Now().Add(s.x.s.cfg.WriteTimeout))
	if _, err := s.x.w.Write(text); err != nil {
		return false
	}
	return out.Flush() == nil
}
