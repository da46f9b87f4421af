package engine

import (
	"encoding/json"
	"fmt"

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

// Explain derives the plan of a call without making it. A missing API or lock value is
// the same error as of the call.
func (e *Engine) Explain(tenant, key string, param json.RawMessage) (*Explanation, error) {
	api, _, ok := e.match(tenant, key, "")
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no API %q", key)
	}
	param, err := cleanParam(param, nil, OriginTest)
	if err != nil {
		return nil, err
	}
	p, err := ordinary(api)
	if err != nil {
		return nil, err
	}
	d := &api.Definition
	x := &Explanation{API: d.ApiEngineKey, Version: api.Version,
		RunMs: p.Run.Milliseconds(), MarginMs: p.Margin.Milliseconds()}
	if !d.Lock {
		x.MarginMs = 0
		x.Why = []string{"Lock is false: calls run side by side", fmt.Sprintf("Timeout %d s is the run's deadline from its start", d.Timeout)}
		return x, nil
	}
	lock, err := lockKey(tenant, d, param)
	if err != nil {
		return nil, err
	}
	x.Lock.Locked, x.Lock.Scope, x.Lock.Value, x.Lock.Identity = true, lock.Scope, lock.Value, lock.String()
	x.LeaseMs, x.WaitMs, x.RenewMs, x.HoldMs = p.Lease.Milliseconds(), p.Wait.Milliseconds(), p.Renew.Milliseconds(), p.Hold.Milliseconds()
	x.RunMs = (p.Lease - p.Margin).Milliseconds()
	x.Why = []string{fmt.Sprintf("Timeout %d s is the lease and the longest hold; an ordinary call is never renewed", d.Timeout),
		fmt.Sprintf("the run ends %v before its lease, counted from before the lock was asked for", p.Margin)}
	if d.LockKey == "" {
		x.Why = append(x.Why, "LockKey is empty: one lock for the whole API")
	} else {
		x.Why = append(x.Why, fmt.Sprintf("LockKey %s: calls with the same value take turns, others do not", d.LockKey))
	}
	if d.LockWait == nil {
		x.Why = append(x.Why, "LockWait is not set: a call waits for the lock as long as Timeout")
	} else {
		x.Why = append(x.Why, fmt.Sprintf("LockWait %d s is the wait cap", *d.LockWait))
	}
	return x, nil
}
