package server_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/server"
)

func TestTestRun(t *testing.T) {
	run := func(t *testing.T, e *fakeEngine, body string) (got, map[string]any) {
		h := newServer(t, server.Config{Engine: e}).Handler()
		g := do(t, h, ask{method: "POST", target: server.AdminPrefix + "/definitions/k/run?OsClient=acme", body: body, header: []string{ctJSON}, token: "author"})
		var data map[string]any
		if raw := g.envelope(t).Data; raw != nil {
			if err := json.Unmarshal(raw, &data); err != nil {
				t.Fatal(err)
			}
		}
		return g, data
	}
	e := &fakeEngine{}
	res := jsonResult(`{"Code":0,"Msg":"no"}`)
	res.Response.Status = 202
	res.Execution.Token, res.Execution.LockWait = 9, 1500*time.Microsecond
	e.answer = answering(res)
	g, data := run(t, e, `{"Param":{"a":1},"Version":3}`)
	call, _ := e.seen()
	if call.Origin != engine.OriginTest || call.Key != "k" || call.Version != 3 || string(call.Param) != `{"a":1}` || call.Tenant != "acme" || call.Caller.Name != "Ann" {
		t.Errorf("call %+v", call)
	}
	x, _ := data["Execution"].(map[string]any)
	if g.status != 200 || data["Status"] != 202.0 || fmt.Sprint(data["Result"]) != "map[Code:0 Msg:no]" || x["FencingToken"] != 9.0 || x["LockWaitMs"] != 1.5 {
		t.Errorf("%d %s", g.status, g.body)
	}

	e.answer = failing(scriptError{fault.New(fault.ScriptError, "boom")})
	g, data = run(t, e, `{}`)
	failure, _ := data["Error"].(map[string]any)
	if g.status != 200 || data["Status"] != 500.0 || failure["Kind"] != "script_error" || failure["Line"] != 3.0 || failure["Msg"] != "x is not defined" {
		t.Errorf("%d %s", g.status, g.body)
	}
	if call, _ = e.seen(); string(call.Param) != "{}" || call.Version != 0 {
		t.Errorf("call %+v", call)
	}

	e.answer = failing(fault.New(fault.NotFound, "there is no API"))
	if g, _ = run(t, e, `{}`); g.status != 404 {
		t.Errorf("%d %s", g.status, g.body)
	}
	if g, _ = run(t, e, `{"Param":"x"}`); g.status != 400 {
		t.Errorf("%d %s", g.status, g.body)
	}
	e.answer = answering(scripted(0, "https://evil.example", nil))
	if g, data = run(t, e, `{}`); g.status != 200 || data["Status"] != 500.0 || fmt.Sprint(data["Error"].(map[string]any)["Kind"]) != "result_invalid" {
		t.Errorf("%d %s", g.status, g.body)
	}
	text := jsonResult("hi")
	text.IsText = true
	e.answer = answering(text)
	if _, data = run(t, e, `{}`); data["Result"] != "hi" {
		t.Errorf("%v", data)
	}
}
