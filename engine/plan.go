package engine

import (
	"encoding/json"
	"fmt"

	"apiengine/apis"
	"apiengine/budget"
	"apiengine/fault"
)

// Explanation says what a call would do about its lock and its budget, and why.
type Explanation struct {
	API     string `json:"ApiEngineKey"`
	Version int
	Lock    struct {
		Locked   bool
		Scope    string `json:",omitempty"`
		Value    string `json:",omitempty"`
		Identity string `json:",omitempty"`
	}
	LeaseMs, WaitMs, RenewMs, HoldMs, RunMs, MarginMs int64
	Why                                               []string
}

// Explain derives the plan of an ordinary call without making it. A missing API or lock
// value is the same error as of the call.
func (e *Engine) Explain(tenant, key string, param json.RawMessage) (*Explanation, error) {
	x, api, err := e.explain(tenant, key, param)
	if err != nil {
		return nil, err
	}
	p, err := ordinary(api)
	if err != nil {
		return nil, err
	}
	d := &api.Definition
	x.RunMs = p.Run.Milliseconds()
	if !d.Lock {
		x.Why = []string{"Lock is false: calls run side by side", fmt.Sprintf("Timeout %d s is the run's deadline from its start", d.Timeout)}
		return x, nil
	}
	x.limits(p)
	x.RunMs = (p.Lease - p.Margin).Milliseconds()
	x.Why = append([]string{fmt.Sprintf("Timeout %d s is the lease and the longest hold; an ordinary call is never renewed", d.Timeout),
		fmt.Sprintf("the run ends %v before its lease, counted from before the lock was asked for", p.Margin)}, waits(d, "as long as Timeout")...)
	return x, nil
}

// ExplainTask is Explain for one slice of a background task.
func (e *Engine) ExplainTask(tenant, key string, param json.RawMessage) (*Explanation, error) {
	x, api, err := e.explain(tenant, key, param)
	if err != nil {
		return nil, err
	}
	d := &api.Definition
	p, err := d.Plan(true)
	if err != nil {
		return nil, err
	}
	x.limits(p)
	x.RunMs = p.Run.Milliseconds()
	x.Why = []string{fmt.Sprintf("a task's leases are renewed: %v, the Timeout of %d s or 60 s, renewed every third of it", p.Lease, d.Timeout),
		fmt.Sprintf("Timeout %d s is the deadline of each slice, from its start; between slices nothing is held", d.Timeout)}
	if d.Lock {
		x.Why = append(x.Why, waits(d, "as long as the lease")...)
	} else {
		x.WaitMs = 0
		x.Why = append(x.Why, "Lock is false: the task's own lock is all that a slice holds")
	}
	return x, nil
}

// explain says what the plan is of, and which lock it takes.
func (e *Engine) explain(tenant, key string, param json.RawMessage) (*Explanation, *API, error) {
	api, _, ok := e.match(tenant, key, "")
	if !ok {
		return nil, nil, fault.New(fault.NotFound, "there is no API %q", key)
	}
	param, err := cleanParam(param, nil, OriginTest)
	if err != nil {
		return nil, nil, err
	}
	d := &api.Definition
	x := &Explanation{API: d.ApiEngineKey, Version: api.Version}
	if d.Lock {
		lock, err := lockKey(tenant, d, param)
		if err != nil {
			return nil, nil, err
		}
		x.Lock.Locked, x.Lock.Scope, x.Lock.Value, x.Lock.Identity = true, lock.Scope, lock.Value, lock.String()
	}
	return x, api, nil
}

func (x *Explanation) limits(p budget.Plan) {
	x.LeaseMs, x.WaitMs, x.RenewMs, x.HoldMs = p.Lease.Milliseconds(), p.Wait.Milliseconds(), p.Renew.Milliseconds(), p.Hold.Milliseconds()
	x.MarginMs = p.Margin.Milliseconds()
}

// waits says who waits for whom, and how long.
func waits(d *apis.Definition, unset string) []string {
	who, long := "LockKey is empty: one lock for the whole API", "LockWait is not set: a call waits for the lock "+unset
	if d.LockKey != "" {
		who = fmt.Sprintf("LockKey %s: calls with the same value take turns, others do not", d.LockKey)
	}
	if d.LockWait != nil {
		long = fmt.Sprintf("LockWait %d s is the wait cap", *d.LockWait)
	}
	return []string{who, long}
}
