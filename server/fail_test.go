package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/server"
)

// The table of contract.md section 4.3, written a second time.
var contractTable = map[int][]fault.Kind{
	400: {fault.BadRequest, fault.LockKeyMissing, fault.IdempotencyKeyMissing},
	401: {fault.Unauthenticated},
	403: {fault.Forbidden, fault.HTTPStopped},
	404: {fault.NotFound, fault.Disabled},
	405: {fault.MethodNotAllowed},
	409: {fault.LeaseLost, fault.StaleFence, fault.IdempotencyInProgress, fault.VersionConflict},
	413: {fault.PayloadTooLarge},
	422: {fault.IdempotencyMismatch},
	423: {fault.LockBusy},
	429: {fault.RateLimited, fault.QueueFull, fault.TenantBusy},
	499: {fault.Canceled},
	500: {fault.ScriptError, fault.ScriptSyntax, fault.ResultInvalid, fault.LimitMemory, fault.LimitStack, fault.LimitDepth,
		fault.LimitOutput, fault.LimitRegex, fault.OutcomeUnknown, fault.Internal},
	503: {fault.Overloaded, fault.LockUnavailable, fault.StoreUnavailable, fault.Draining},
	504: {fault.Timeout},
}

func TestEveryKindHasItsAnswer(t *testing.T) {
	for want, kinds := range contractTable {
		for _, k := range kinds {
			t.Run(string(k), func(t *testing.T) {
				err := fmt.Errorf("deep: %w", &fault.Error{K: k, Msg: "what a person can use", Cause: errors.New("hunter2"),
					Fields: map[string]any{"RetryAfterMs": 1200, "Kind": "forged", "More": 7}})
				e := &fakeEngine{answer: failing(err)}
				h := newServer(t, server.Config{Engine: e}).Handler()
				g := do(t, h, ask{target: "/apiengine/k", header: []string{"X-Request-Id: req-1"}})
				env := g.envelope(t)
				if g.status != want || env.Msg != "what a person can use" || strings.Contains(g.body, "hunter2") {
					t.Errorf("status %d, want %d: %s", g.status, want, g.body)
				}
				code := 0.0
				if k == fault.Unauthenticated {
					code = 1001
				}
				d := env.DataAppend.Error
				if env.Code != code || d["Kind"] != string(k) || d["RequestId"] != "req-1" || d["ExecutionId"] != "exec-1" || d["More"] != 7.0 {
					t.Errorf("envelope: %s", g.body)
				}
				later := want == 423 || want == 429 || want == 503 || k == fault.IdempotencyInProgress
				if (g.header.Get("Retry-After") == "2") != later {
					t.Errorf("Retry-After %q", g.header.Get("Retry-After"))
				}
				if (g.header.Get("Www-Authenticate") != "") != (want == 401) || (g.header.Get("Allow") != "") != (want == 405) {
					t.Errorf("headers: %v", g.header)
				}

				g = do(t, newServer(t, server.Config{Engine: e, Always200: true}).Handler(), ask{target: "/apiengine/k"})
				if g.status != 200 || g.kind(t) != string(k) {
					t.Errorf("always200: status %d: %s", g.status, g.body)
				}
			})
		}
	}
}

func TestGoldenRefusal(t *testing.T) {
	err := &fault.Error{K: fault.LockBusy, Msg: `busy "x" <1>`, Fields: map[string]any{"Holder": map[string]any{"API": "a"}}}
	h := newServer(t, server.Config{Engine: &fakeEngine{answer: failing(err)}}).Handler()
	g := do(t, h, ask{target: "/apiengine/k", header: []string{"X-Request-Id: r"}})
	want := `{"Code":0,"Msg":"busy \"x\" <1>","DataAppend":{"Error":{"Kind":"lock_busy","RequestId":"r","ExecutionId":"exec-1","Holder":{"API":"a"}}}}`
	if g.body != want {
		t.Errorf("got  %s\nwant %s", g.body, want)
	}
	for name, v := range map[string]string{"Content-Type": "application/json; charset=utf-8", "Content-Length": fmt.Sprint(len(want)),
		"X-Content-Type-Options": "nosniff", "X-Request-Id": "r", "X-Execution-Id": "exec-1", "Retry-After": "1"} {
		if g.header.Get(name) != v {
			t.Errorf("%s: %q, want %q", name, g.header.Get(name), v)
		}
	}
}

func TestRateLimitHeaders(t *testing.T) {
	err := &fault.Error{K: fault.RateLimited, Msg: "slow", Fields: map[string]any{"Limit": 60, "WindowSeconds": 60, "RetryAfterMs": int64(2500)}}
	g := do(t, newServer(t, server.Config{Engine: &fakeEngine{answer: failing(err)}}).Handler(), ask{target: "/apiengine/k"})
	if g.header.Get("RateLimit") != `"default";r=0;t=3` || g.header.Get("RateLimit-Policy") != `"default";q=60;w=60` || g.header.Get("Retry-After") != "3" {
		t.Errorf("%v", g.header)
	}
}

type scriptError struct{ error }

func (scriptError) Kind() fault.Kind { return fault.ScriptError }
func (scriptError) Public() string   { return "x is not defined" }
func (scriptError) Details() map[string]any {
	return map[string]any{"Line": 3, "Stack": "at secret.js"}
}
func (scriptError) ScriptStack() string { return "at k.js:3:1" }

func TestStackOnlyForAdministrators(t *testing.T) {
	h := newServer(t, server.Config{Engine: &fakeEngine{answer: failing(scriptError{errors.New("boom")})}}).Handler()
	for token, want := range map[string]any{"": nil, "acme": nil, "viewer": nil, "admin": "at k.js:3:1"} {
		d := do(t, h, ask{target: "/apiengine/k", token: token}).envelope(t).DataAppend.Error
		if d["Stack"] != want || d["Line"] != 3.0 {
			t.Errorf("%q: %v", token, d)
		}
	}
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	var log strings.Builder
	e := &fakeEngine{answer: func(context.Context, engine.Call) (*engine.Result, error) { panic("the secret plan") }}
	h := newServer(t, server.Config{Engine: e, Log: slog.New(slog.NewTextHandler(&log, nil))}).Handler()
	g := do(t, h, ask{target: "/apiengine/k", header: []string{"X-Request-Id: r-9"}})
	if g.status != 500 || g.kind(t) != "internal" || strings.Contains(g.body, "plan") {
		t.Errorf("%d %s", g.status, g.body)
	}
	if !strings.Contains(log.String(), "the secret plan") || !strings.Contains(log.String(), "r-9") || !strings.Contains(log.String(), "fail_test.go") {
		t.Errorf("the log does not help: %s", log.String())
	}
}

func TestExecutionHeaders(t *testing.T) {
	res := jsonResult(`{}`)
	res.Execution.Lock, res.Execution.Token, res.Execution.LockWait = "acme:OrderId:7", 41, 12*time.Millisecond
	for name, answer := range map[string]func(context.Context, engine.Call) (*engine.Result, error){
		"ok": answering(res),
		"failed": func(context.Context, engine.Call) (*engine.Result, error) {
			return res, fault.New(fault.LeaseLost, "lost")
		},
	} {
		g := do(t, newServer(t, server.Config{Engine: &fakeEngine{answer: answer}}).Handler(), ask{target: "/apiengine/k"})
		if g.header.Get("X-Execution-Id") != "exec-1" || g.header.Get("X-Fencing-Token") != "41" || g.header.Get("X-Lock-Wait-Ms") != "12" {
			t.Errorf("%s: %v", name, g.header)
		}
	}
	g := do(t, newServer(t, server.Config{}).Handler(), ask{target: "/apiengine/k"})
	if g.header.Get("X-Fencing-Token") != "" || g.header.Get("X-Lock-Wait-Ms") != "" || g.header.Get("X-Request-Id") == "" {
		t.Errorf("without a lock: %v", g.header)
	}
}

func TestRequestID(t *testing.T) {
	for given, kept := range map[string]bool{"abc-1.2_3": true, "": false, "a b": false, "a\tb": false, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false, "<script>": false} {
		e := &fakeEngine{}
		g := do(t, newServer(t, server.Config{Engine: e}).Handler(), ask{target: "/apiengine/k", header: []string{"X-Request-Id: " + given}})
		call, _ := e.seen()
		id := g.header.Get("X-Request-Id")
		if (id == given) != kept || id == "" || call.RequestID != id {
			t.Errorf("%q became %q, the engine has %q", given, id, call.RequestID)
		}
	}
}
