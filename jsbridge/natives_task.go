package jsbridge

import (
	"context"
	"encoding/json"
	"math"
)

// Tasks keeps tasks that begin after the run's commit.
type Tasks interface {
	// Submit takes the order as the script wrote it, with the fields of TaskFields, and
	// returns the task as JSON.
	Submit(ctx context.Context, order json.RawMessage) (json.RawMessage, error)
}

// TaskFields are the options of V8.Task.Submit.
var TaskFields = []string{"ApiEngineKey", "Param", "IdempotencyKey", "ConcurrencyKey", "Delay", "RunAt", "Priority", "MaxAttempts"}

var progressFields = []string{"Current", "Total", "Msg", "Log"}

// maxReported is the longest text of one UpdateBackgroundTask.
const maxReported = 1000

func taskFuncs() []Func {
	return []Func{
		hostFn("Task.Submit", "keeps a background task that begins after the commit: {ApiEngineKey, Param, IdempotencyKey, ConcurrencyKey, Delay (seconds), RunAt, Priority, MaxAttempts}; the answer has its Id",
			func(c *Call, in struct{ Order json.RawMessage }) (any, error) {
				if c.Env.Tasks == nil {
					return nil, errNoService("Task")
				}
				if _, err := objectOf("Task.Submit", in.Order, TaskFields); err != nil {
					return nil, err
				}
				return c.Env.Tasks.Submit(c, in.Order)
			}),
		hostFn("Method.UpdateBackgroundTask", "tells how far a task's slice is, before its commit: {Current, Total, Msg, Log}; false when the run is no task",
			func(c *Call, in struct{ Progress json.RawMessage }) (any, error) {
				p, err := progressOf(in.Progress)
				if err != nil || c.Env.Report == nil {
					return false, err
				}
				c.Env.Report(p)
				return true, nil
			}),
	}
}

func progressOf(text json.RawMessage) (p Progress, err error) {
	fields, err := objectOf("Method.UpdateBackgroundTask", text, progressFields)
	if err != nil {
		return p, err
	}
	for name, dst := range map[string]**int64{"Current": &p.Current, "Total": &p.Total} {
		if *dst, err = units(name, fields[name]); err != nil {
			return p, err
		}
	}
	if err := optionText("Method.UpdateBackgroundTask", "Msg", fields["Msg"], &p.Msg); err != nil {
		return p, err
	}
	p.Msg = clipText(p.Msg)
	if log := fields["Log"]; len(log) > 0 && log[0] == '[' {
		if json.Unmarshal(log, &p.Log) != nil {
			return p, argErrorf("V8.Method.UpdateBackgroundTask: Log must be a string or a list of strings")
		}
	} else {
		var line string
		if err := optionText("Method.UpdateBackgroundTask", "Log", log, &line); err != nil {
			return p, err
		}
		if line != "" {
			p.Log = []string{line}
		}
	}
	for i := range p.Log {
		p.Log[i] = clipText(p.Log[i])
	}
	return p, nil
}

// units is a number of units: whole and not negative; nil when it is missing.
func units(name string, text json.RawMessage) (*int64, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	var f float64
	if json.Unmarshal(text, &f) != nil || f < 0 || f != math.Trunc(f) || f > 1<<53 {
		return nil, argErrorf("V8.Method.UpdateBackgroundTask: %s must be a whole number from 0, not %s", name, text)
	}
	n := int64(f)
	return &n, nil
}

// clipText keeps a text that is shown in lists short.
func clipText(s string) string {
	if runes := []rune(s); len(runes) > maxReported {
		return string(runes[:maxReported]) + "…"
	}
	return s
}
