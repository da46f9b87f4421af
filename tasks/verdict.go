package tasks

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/nearest"
	"apiengine/store/tenantdb"
)

// Limits of what a slice may leave.
const (
	maxCheckpoint = 256 << 10 // bytes
	maxParam      = 1 << 20   // bytes, patched
	maxResult     = 1 << 20   // bytes of the last slice's Data
	maxMsg        = 1000      // runes
	maxError      = 4000      // runes
	maxDelay      = 30 * 24 * time.Hour
	maxSame       = 3 // slices in a row that leave the same checkpoint
)

// said is a slice's Data.BackgroundTask.
type said struct {
	HasMore          bool
	Checkpoint       json.RawMessage
	Current, Total   *int64
	NextDelaySeconds float64
	Msg              string
	ParamPatch       map[string]json.RawMessage
}

var saidFields = []string{"HasMore", "Checkpoint", "Current", "Total", "NextDelaySeconds", "Msg", "ParamPatch"}

// hear reads what a slice has returned. A slice that says nothing of a task has finished it.
func hear(out jsbridge.Outcome) (s said, data json.RawMessage, err error) {
	if !out.IsObject {
		if out.IsText {
			data, err = json.Marshal(out.Text)
			return s, data, err
		}
		return s, out.Result, nil
	}
	var answer struct{ Data, BackgroundTask json.RawMessage }
	if err := json.Unmarshal(out.Result, &answer); err != nil {
		return s, nil, fault.Wrap(fault.ResultInvalid, err, "the slice's answer cannot be read")
	}
	if len(answer.BackgroundTask) > 0 {
		return s, nil, fault.New(fault.ResultInvalid, "BackgroundTask has its place in Data: { Code: 1, Data: { BackgroundTask: { ... } } }")
	}
	var parts struct{ BackgroundTask json.RawMessage }
	if len(answer.Data) == 0 || answer.Data[0] != '{' {
		return s, answer.Data, nil
	}
	if err := json.Unmarshal(answer.Data, &parts); err != nil {
		return s, nil, fault.Wrap(fault.ResultInvalid, err, "the slice's Data cannot be read")
	}
	if len(parts.BackgroundTask) == 0 || string(parts.BackgroundTask) == "null" {
		return s, answer.Data, nil
	}
	s, err = read(parts.BackgroundTask)
	return s, answer.Data, err
}

func invalid(format string, args ...any) error {
	return fault.New(fault.ResultInvalid, "Data.BackgroundTask"+format, args...)
}

func read(text json.RawMessage) (s said, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return s, invalid(" must be an object with HasMore and Checkpoint")
	}
	for name, v := range fields {
		if !slices.Contains(saidFields, name) {
			if near := nearest.Name(name, saidFields); near != "" {
				return s, invalid(" has no %s; did you mean %s?", name, near)
			}
			return s, invalid(" has no %s", name)
		}
		if string(v) == "null" {
			delete(fields, name)
		}
	}
	for _, f := range []struct {
		name string
		dst  any
		want string
	}{
		{"HasMore", &s.HasMore, "true or false"}, {"Checkpoint", &s.Checkpoint, "a value"}, {"NextDelaySeconds", &s.NextDelaySeconds, "a number of seconds"},
		{"Msg", &s.Msg, "a string"}, {"ParamPatch", &s.ParamPatch, "an object"},
	} {
		if v, given := fields[f.name]; given && json.Unmarshal(v, f.dst) != nil {
			return s, invalid(".%s must be %s, not %s", f.name, f.want, clip(v))
		}
	}
	for name, dst := range map[string]**int64{"Current": &s.Current, "Total": &s.Total} {
		if v, given := fields[name]; given {
			var f float64
			if json.Unmarshal(v, &f) != nil || f < 0 || f != math.Trunc(f) || f > 1<<53 {
				return s, invalid(".%s must be a whole number from 0, not %s", name, clip(v))
			}
			n := int64(f)
			*dst = &n
		}
	}
	return s, s.check()
}

// fit is at most so many runes of s.
func fit(s string, most int) string {
	runes := []rune(s)
	return string(runes[:min(len(runes), most)])
}

func clip(text []byte) string {
	if len(text) > 100 {
		return string(text[:100]) + "..."
	}
	return string(text)
}

func (s *said) check() error {
	switch delay := s.NextDelaySeconds; {
	case delay < 0 || math.IsNaN(delay) || delay > maxDelay.Seconds():
		return invalid(".NextDelaySeconds must be from 0 to %d, not %v", int(maxDelay.Seconds()), delay)
	case len(s.Checkpoint) > maxCheckpoint:
		return invalid(".Checkpoint has %d bytes, at most %d are kept: keep rows in a table and their number here", len(s.Checkpoint), maxCheckpoint)
	}
	for name := range s.ParamPatch {
		if len(name) > 0 && name[0] == '_' {
			return invalid(".ParamPatch must not set %s: names with an underscore are the platform's", name)
		}
	}
	s.Msg = fit(s.Msg, maxMsg)
	return nil
}

// end is what the slice leaves in the task's row.
func (r *Runner) end(t tenantdb.Task, out jsbridge.Outcome) (tenantdb.SliceEnd, error) {
	s, data, err := hear(out)
	if err != nil {
		return tenantdb.SliceEnd{}, err
	}
	e := kept(t)
	e.Slice, e.Attempt, e.State, e.Error = t.Slice+1, 0, tenantdb.TaskSucceeded, ""
	e.Current, e.Total = progressed(t, s)
	if s.Msg != "" {
		e.Msg = s.Msg
	}
	e.Rate = rate(t, e.Current)
	if len(s.Checkpoint) > 0 {
		e.Checkpoint = s.Checkpoint
	}
	if !s.HasMore {
		if len(data) > maxResult {
			return e, invalid(": the answer's Data has %d bytes, at most %d are kept with a task", len(data), maxResult)
		}
		if e.Result = data; len(data) == 0 {
			e.Result = json.RawMessage("null")
		}
		return e, nil
	}
	e.State, e.Delay = tenantdb.TaskPending, time.Duration(s.NextDelaySeconds*float64(time.Second))
	if len(s.Checkpoint) == 0 {
		e.Checkpoint = json.RawMessage("null")
	}
	if e.Param = patched(t.Param, s.ParamPatch); len(e.Param) > maxParam {
		return e, invalid(".ParamPatch makes parameters of %d bytes, at most %d are kept", len(e.Param), maxParam)
	}
	e.Stuck = 1
	if t.Slice > 0 && e.Current == t.Current && same(e.Checkpoint, t.Checkpoint) {
		e.Stuck = t.Stuck + 1
	}
	switch {
	case e.Stuck >= maxSame:
		e.State, e.Error = tenantdb.TaskFailed, "the slices do not get on: the same checkpoint was left 3 times in a row"
	case e.Slice >= r.cfg.MaxSlices:
		e.State, e.Error = tenantdb.TaskFailed, "the task has had as many slices as it may"
	}
	return e, nil
}

// kept is the end of a slice that changes nothing yet.
func kept(t tenantdb.Task) tenantdb.SliceEnd {
	return tenantdb.SliceEnd{ID: t.ID, Run: t.Run, Fence: t.Fence, State: t.State, Slice: t.Slice, Attempt: t.Attempt, Param: t.Param,
		Checkpoint: t.Checkpoint, Stuck: t.Stuck, Current: t.Current, Total: t.Total, Best: t.Best, Rate: t.Rate, Msg: t.Msg, Error: t.Error, Result: t.Result}
}

// progressed never goes back, and never beyond the total.
func progressed(t tenantdb.Task, s said) (current, total int64) {
	current, total = t.Current, t.Total
	if s.Total != nil {
		total = *s.Total
	}
	if s.Current != nil {
		current = max(current, *s.Current)
	}
	if total > 0 && total < current {
		total = current
	}
	return current, total
}

// smoothing is how much the newest slice counts in the rate.
const smoothing = 0.3

// rate is in units a second, over the time since the last commit; NextAt is that commit's
// time, a wished delay included.
func rate(t tenantdb.Task, current int64) float64 {
	since := t.NextAt
	if t.Slice == 0 || t.Attempt > 1 {
		since = t.SliceAt
	}
	took := time.Since(t.Now) + t.Now.Sub(since) // the database's clock, carried on by ours
	if gained := current - t.Current; gained > 0 && took > 0 {
		now := float64(gained) / took.Seconds()
		if t.Rate == 0 {
			return now
		}
		return smoothing*now + (1-smoothing)*t.Rate
	}
	return t.Rate
}

// patched sets members of the parameters; null takes one out.
func patched(param json.RawMessage, patch map[string]json.RawMessage) json.RawMessage {
	if len(patch) == 0 {
		return param
	}
	set := map[string]json.RawMessage{}
	for name, v := range patch {
		if string(v) != "null" {
			set[name] = v
		}
	}
	return engine.Overlay(set, param, func(name string) bool { v, named := patch[name]; return named && string(v) == "null" })
}

// same compares two JSON texts by what they say.
func same(a, b json.RawMessage) bool {
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	if x.Canonicalize() != nil || y.Canonicalize() != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x, y)
}
