package engine

import (
	"context"
	"encoding/json"

	"apiengine/budget"
	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/lockwrap"
)

// Trust is what makes a call one slice of a trusted task (contract.md section 6): its locks
// are renewed, and its end is written by its own transaction. Only package tasks makes one,
// by Trusted; no parameter, header, token or script can.
type Trust struct {
	// Lease is the task's own, which every transaction of the slice is guarded by. The maker
	// releases it when Invoke has returned.
	Lease *lockwrap.Lease
	// Param are the parameters that only the platform may set.
	Param map[string]json.RawMessage
	// Record writes the slice's end into its transaction, last before the check after. Its
	// error fails the call, and nothing of the slice is left.
	Record func(ctx context.Context, tx Tx, out jsbridge.Outcome) error
	// Report hears what V8.Method.UpdateBackgroundTask is told.
	Report func(jsbridge.Progress)
	// Author says that a script's author asked for the task, or a definition's Schedule: the
	// API's roles do not apply, as in V8.ApiEngine.Run.
	Author bool
}

// Trusted returns c as one slice of a task.
func Trusted(c Call, t Trust) Call {
	c.trust, c.Origin = &t, OriginTask
	return c
}

// ordinary returns the plan of a call that nobody trusts; an API that only a task can run
// has none.
func ordinary(api *API) (budget.Plan, error) {
	if api.Plan == (budget.Plan{}) {
		_, err := api.Definition.Plan(false)
		return budget.Plan{}, fault.Wrap(fault.BadRequest, err, "the Timeout of %s is longer than an ordinary call may take (%d s): it runs as a task only",
			api.Definition.ApiEngineKey, int(budget.MaxTimeout.Seconds()))
	}
	return api.Plan, nil
}

// planOf returns the limits of a call.
func planOf(c *Call, api *API) (budget.Plan, error) {
	if c.trust == nil {
		return ordinary(api)
	}
	return api.Definition.Plan(true)
}

// entrust gives the tree of a slice the task's lease. The returned function must be called
// when the slice is over.
func (t *tree) entrust(trust *Trust) (done func()) {
	if trust == nil {
		return func() {}
	}
	t.leases = append(t.leases, trust.Lease)
	unwatch := trust.Lease.AfterLost(func() { t.cancel(trust.Lease.Err()) })
	return func() { unwatch() }
}

// entrusted writes a slice's end, which is part of what it did.
func (f *frame) entrusted(ctx context.Context, out jsbridge.Outcome) error {
	if f.call.trust == nil {
		return nil
	}
	t, err := f.open(ctx, "")
	if err != nil {
		return err
	}
	return f.call.trust.Record(ctx, t.tx, out)
}
