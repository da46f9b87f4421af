package tasks

import (
	"errors"
	"time"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

// errCanceled ends the run of a slice whose task somebody has canceled.
var errCanceled = fault.New(fault.Canceled, "the task was canceled")

// errNodesDied is what became of a slice whose nodes died in each of its tries.
var errNodesDied = fault.New(fault.LeaseLost, "the node that ran it has died in the last of its tries")

// after is the end of a slice that left nothing, because of err.
func (r *Runner) after(t tenantdb.Task, err error) tenantdb.SliceEnd {
	e := kept(t)
	e.State, e.Error = tenantdb.TaskRetrying, fault.Public(err)
	switch k := fault.Of(err); {
	case errors.Is(err, errCanceled):
		e.State, e.Error = tenantdb.TaskCanceled, ""
	case k == fault.Draining:
		e.State, e.Attempt, e.Error = tenantdb.TaskPending, t.Attempt-1, t.Error
	case ofPlatform(k):
		e.Attempt, e.Delay = t.Attempt-1, r.pause(1)
	case final(k):
		e.State = tenantdb.TaskFailed
	case t.Attempt >= t.MaxAttempts:
		e.State, e.Attempt = tenantdb.TaskDead, t.MaxAttempts
	default:
		e.Delay = r.pause(t.Attempt)
	}
	return e
}

// ofPlatform tells what no script can do anything about and what passes: it costs no attempt.
func ofPlatform(k fault.Kind) bool {
	switch k {
	case fault.LockBusy, fault.LockUnavailable, fault.StoreUnavailable, fault.Overloaded, fault.TenantBusy, fault.QueueFull, fault.RateLimited:
		return true
	}
	return false
}

// final tells what another try would meet again. An API that is not there, or switched off, is
// not among them: this node may be a second behind the one where it was saved.
func final(k fault.Kind) bool {
	switch k {
	case fault.Unauthenticated, fault.Forbidden, fault.BadRequest, fault.LockKeyMissing, fault.ResultInvalid, fault.ScriptSyntax:
		return true
	}
	return false
}

// pause is the wait after the n-th try: 5 s, doubled for each further one up to 300 s.
func (r *Runner) pause(n int) time.Duration {
	return min(r.cfg.Backoff<<min(max(n-1, 0), 20), 60*r.cfg.Backoff)
}
