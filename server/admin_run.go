package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"apiengine/engine"
	"apiengine/fault"
)

// Planner explains what a call would do with the lock, without doing it.
type Planner interface {
	// Plan returns a value whose JSON is the answer: Lock, LeaseMs, WaitMs, RenewMs,
	// HoldMs, RunMs, MarginMs, Why.
	Plan(ctx context.Context, q PlanQuery) (any, error)
}

// PlanQuery names a call to be explained.
type PlanQuery struct {
	Tenant, Key string
	Param       json.RawMessage
	Task        bool // as a slice of a background task, not as an ordinary call
}

type runner struct{ engine Invoker }

func runRoutes(e Invoker) []route {
	return []route{{http.MethodPost, "/definitions/{key}/run", RoleAuthor, ofTenant, runner{e}.run}}
}

// runAnswer is what a test run shows. A failed run is a success of the test: its Status
// is what a caller over HTTP would have got, and Error says why.
type runAnswer struct {
	Status    int
	Result    json.RawMessage `json:",omitempty"`
	Error     map[string]any  `json:",omitempty"`
	Console   any
	Execution any
}

func (r runner) run(c *adminCall) (answer, error) {
	var in struct {
		Param   json.RawMessage
		Version int
	}
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	param, err := paramObject(in.Param)
	if err != nil {
		return answer{}, err
	}
	res, err := r.engine.Invoke(c.ctx, engine.Call{
		Tenant: c.tenant, Key: c.param("key"), Method: http.MethodPost, Param: param, Version: in.Version,
		Header: map[string]string{}, Caller: c.id.Caller, Origin: engine.OriginTest,
		RequestID: c.x.requestID, ClientIP: c.x.clientIP(),
	})
	c.x.record(res)
	if err == nil {
		err = c.x.s.cfg.Answers.Check(res, c.x.r.Host)
	}
	if k := fault.Of(err); k == fault.NotFound || k == fault.Canceled {
		return answer{}, err
	}
	out := runAnswer{Status: statusOf(fault.Of(err)), Console: []string{}}
	if res != nil && res.Execution != nil {
		out.Execution = executionView(res.Execution)
		if res.Execution.Console != nil {
			out.Console = res.Execution.Console
		}
	}
	if err != nil {
		out.Error = c.failure(err)
		return answer{data: out}, nil
	}
	out.Status = statusOfResult(res)
	out.Result, err = resultJSON(res)
	return answer{data: out}, err
}

// statusOfResult is the status of an answer that can be sent.
func statusOfResult(res *engine.Result) int {
	switch {
	case res.Response.Status != 0:
		return res.Response.Status
	case res.Response.Redirect != "":
		return http.StatusFound
	}
	return http.StatusOK
}

func (c *adminCall) failure(err error) map[string]any {
	out := map[string]any{}
	for k, v := range c.x.visible(err, c.x.details(err)) {
		out[k] = v
	}
	out["Kind"], out["Msg"] = fault.Of(err), fault.Public(err)
	return out
}

func resultJSON(res *engine.Result) (json.RawMessage, error) {
	switch {
	case res.Body == nil:
		return json.RawMessage("null"), nil
	case res.IsText:
		return json.Marshal(string(res.Body))
	}
	return res.Body, nil
}

// paramObject is the Param of a body; nil and null are {}.
func paramObject(p json.RawMessage) (json.RawMessage, error) {
	switch {
	case len(p) == 0 || string(p) == "null":
		return json.RawMessage("{}"), nil
	case p[0] != '{':
		return nil, refuse(fault.BadRequest, "Param must be an object").with(map[string]any{"Field": "Param"})
	}
	return p, nil
}

// executionView is an Execution as JSON: times in ISO, durations in milliseconds.
func executionView(e *engine.Execution) any {
	return struct {
		Id, RequestId, Tenant, Api string
		Version                    int
		Outcome                    string
		Started                    time.Time
		DurationMs                 float64
		Lock                       string `json:",omitempty"`
		FencingToken               int64
		LockWaitMs, LockHoldMs     float64
		Committed                  bool
		HostCalls                  int
		DbMs, CacheMs              float64
	}{
		e.ID, e.RequestID, e.Tenant, e.API, e.Version, e.Outcome, e.Started.UTC(), ms(e.Duration),
		e.Lock, e.Token, ms(e.LockWait), ms(e.LockHold), e.Committed,
		e.Stats.HostCalls, ms(e.Stats.DBTime), ms(e.Stats.CacheTime),
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
