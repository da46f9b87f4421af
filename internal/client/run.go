package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// RunRequest is one test run. Version 0 is the live one; Param nil is {}.
type RunRequest struct {
	Key     string          `json:"-"`
	Param   json.RawMessage `json:",omitempty"`
	Version int             `json:",omitempty"`
}

// RunResult is how a test run ended. Status is what a caller over HTTP would have got.
type RunResult struct {
	Status    int
	Result    json.RawMessage `json:",omitempty"`
	Error     map[string]any  `json:",omitempty"` // Kind, Msg, File, Line, Column, Stack ...
	Console   []ConsoleLine
	Execution json.RawMessage
}

// ConsoleLine is one console call of the script.
type ConsoleLine struct {
	Level string
	Time  time.Time
	Line  int
	Text  string
}

// Failed reports whether the run ended by an error. A Code other than 1 that the script
// returned itself is an answer.
func (r *RunResult) Failed() bool { return r.Error != nil }

// ConsoleText is what the script wrote to its console.
func (r *RunResult) ConsoleText() string {
	var b strings.Builder
	for _, l := range r.Console {
		fmt.Fprintf(&b, "%-5s line %d: %s\n", l.Level, l.Line, visible(l.Text))
	}
	return b.String()
}

// String is the answer, or what went wrong.
func (r *RunResult) String() string {
	if !r.Failed() {
		return indent(r.Result)
	}
	p := Problem{Line: number(r.Error["Line"]), Column: number(r.Error["Column"])}
	p.File, _ = r.Error["File"].(string)
	p.Msg = fmt.Sprintf("%v (%v, status %d)", r.Error["Msg"], r.Error["Kind"], r.Status)
	if stack, _ := r.Error["Stack"].(string); stack != "" {
		return p.String() + "\n" + visible(strings.TrimRight(stack, "\n")) + "\n"
	}
	return p.String() + "\n"
}

// Run makes a test run: with the rights of the administrator, the API's own lock and
// database, and its console captured.
func (c *Client) Run(ctx context.Context, r RunRequest) (*RunResult, error) {
	out := &RunResult{}
	return out, c.call(ctx, request{method: http.MethodPost, path: definitionPath(r.Key) + "/run", body: r}, out)
}

// PlanResult is the lock and the limits that a call would have, and why.
type PlanResult struct {
	ApiEngineKey string
	Version      int
	Lock         struct {
		Locked                 bool
		Scope, Value, Identity string `json:",omitempty"`
	}
	LeaseMs, WaitMs, RenewMs, HoldMs, RunMs, MarginMs int64
	Why                                               []string
}

// String is one line for each limit.
func (r *PlanResult) String() string {
	var b strings.Builder
	row := func(name string, v any) { fmt.Fprintf(&b, "%-14s %s\n", name, visible(fmt.Sprint(v))) }
	span := func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
	if r.Lock.Locked {
		row("lock", r.Lock.Identity)
		row("scope", r.Lock.Scope)
		row("value", r.Lock.Value)
	} else {
		row("lock", "none")
	}
	if r.LeaseMs > 0 {
		row("lease", span(r.LeaseMs))
		row("wait cap", span(r.WaitMs))
		if row("longest hold", span(r.HoldMs)); r.RenewMs > 0 {
			row("renewed every", span(r.RenewMs))
		} else {
			row("renewed", "never")
		}
		row("margin", span(r.MarginMs))
	}
	row("run deadline", span(r.RunMs))
	for _, w := range r.Why {
		row("why", w)
	}
	return b.String()
}

// PlanRequest names a call to be explained; Task: as a slice of a background task.
type PlanRequest struct {
	Key   string          `json:"-"`
	Param json.RawMessage `json:",omitempty"`
	Task  bool            `json:",omitempty"`
}

// Plan explains what a call would do about its lock, and makes none.
func (c *Client) Plan(ctx context.Context, r PlanRequest) (*PlanResult, error) {
	out := &PlanResult{}
	return out, c.call(ctx, request{method: http.MethodPost, path: definitionPath(r.Key) + "/plan", body: r}, out)
}

// indent writes JSON for people; a text comes as it is.
func indent(text json.RawMessage) string {
	var s string
	if json.Unmarshal(text, &s) == nil && len(text) > 0 && text[0] == '"' {
		return visible(s) + "\n"
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return visible(string(text)) + "\n"
	}
	return visible(b.String()) + "\n"
}
