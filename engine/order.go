package engine

import (
	"context"
	"encoding/json"
	"time"

	"apiengine/apis"
	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/lockwrap"
)

// run is the order of one call (contract.md section 3), root or nested. Nothing scarce is
// held before the lock is: the runtime is taken inside script, the connection and the
// transaction at the script's first use of the database.
func (f *frame) run(ctx context.Context) (report jsbridge.Report, err error) {
	f.join() // the caller's transaction, or one of its own
	defer func() {
		err = f.release(ctx, err) // last, on every path: the locks taken in this transaction
	}()
	defer func() {
		if p := recover(); p != nil { // a defect of ours leaves no transaction open behind it
			err = f.undo(ctx, panicked(p))
		}
	}()
	if err := f.acquire(ctx); err != nil { // local queue, then the backend
		return report, err
	}
	f.bound()
	return f.inside(ctx)
}

// inside is the part of run in which the lock is held and the time is bounded.
func (f *frame) inside(ctx context.Context) (report jsbridge.Report, err error) {
	if err := f.checkBefore(ctx); err != nil {
		return report, err
	}
	if report, err = f.script(ctx); err != nil {
		return report, f.undo(ctx, err)
	}
	if err := f.accept(report.Outcome); err != nil { // can it be sent at all?
		return report, f.undo(ctx, err)
	}
	if !commits(report.Outcome) {
		return report, f.undo(ctx, nil)
	}
	if err := f.record(ctx, report.Outcome); err != nil { // the answer, beside the work
		return report, f.undo(ctx, err)
	}
	if err := f.checkAfter(ctx); err != nil {
		return report, f.undo(ctx, err)
	}
	if err := f.commit(ctx); err != nil {
		return report, err
	}
	f.flush(ctx)
	return report, nil
}

// commits is the rule of contract.md section 5.3: an object commits when its Code is 1,
// anything that is not an object commits by having been returned.
func commits(o jsbridge.Outcome) bool {
	return !o.IsObject || (o.Code != nil && *o.Code == 1)
}

// acquire takes the lock of the API, or joins it where the tree holds it already.
func (f *frame) acquire(ctx context.Context) error {
	d := &f.api.Definition
	if !d.Lock {
		return nil
	}
	key, err := lockKey(f.call.Tenant, d, f.call.Param)
	if err != nil {
		return err
	}
	if f.lease = f.tree.holds(key); f.lease != nil {
		f.joined = true
		return nil
	}
	plan := f.plan
	if f.parent != nil {
		plan.Wait = min(plan.Wait, patience(remaining(f.parent.deadline)))
	}
	lease, err := f.tree.e.cfg.Locks.Acquire(ctx, lockwrap.Request{Key: key, Plan: plan, API: d.ApiEngineKey, Note: f.x.ID,
		Floor: f.tree.floors[key.String()]})
	if err != nil {
		return inOwnWords(err, d.LockMsg)
	}
	f.lease = lease
	f.tree.leases = append(f.tree.leases, lease)
	f.scope.taken = append(f.scope.taken, taken{lease: lease, unwatch: lease.AfterLost(func() { f.tree.cancel(lease.Err()) })})
	f.x.locked(lease)
	return nil
}

// patience is how long a nested call waits for a lock when its caller has left so much
// time: a tenth of it, at least 20 ms, stays for the caller to hear of lock_busy and to act.
// Two calls that want each other's locks so end as busy, not as out of time.
func patience(left time.Duration) time.Duration {
	return max(0, left-max(left/10, 20*time.Millisecond))
}

// inOwnWords gives lock_busy the text that the API's author chose.
func inOwnWords(err error, msg string) error {
	if msg == "" || fault.Of(err) != fault.LockBusy {
		return err
	}
	return &fault.Error{K: fault.LockBusy, Msg: msg, Fields: fault.Details(err), Cause: err}
}

// lockKey is the identity of the lock that a call of d with these parameters takes.
func lockKey(tenant string, d *apis.Definition, param json.RawMessage) (lockwrap.Key, error) {
	value, err := lockValue(d, param)
	return lockwrap.Key{Tenant: tenant, Scope: d.EffectiveLockScope(), Value: value}, err
}

// checkBefore confirms the grant before the script sees the world.
func (f *frame) checkBefore(ctx context.Context) error {
	if f.lease == nil {
		return nil
	}
	return f.lease.CheckBefore(ctx)
}

// script runs the API's program with everything that this call may use.
func (f *frame) script(ctx context.Context) (jsbridge.Report, error) {
	f.view = f.env()
	report, err := f.tree.e.cfg.Bridge.Run(ctx, f.api.Program, f.view)
	if err != nil && fault.Of(err) == fault.Timeout {
		timeout := fault.Wrap(fault.Timeout, err, "the run of %s reached its deadline (Timeout %d s)", f.api.Definition.ApiEngineKey, f.api.Definition.Timeout)
		timeout.Fields = fault.Details(err) // where it was
		err = timeout
	}
	return report, err
}

// checkAfter asks the backend about every lock of the tree before anything is committed.
// Where nothing waits to be committed, the release's own answer is the check after and
// saves the round trip.
func (f *frame) checkAfter(ctx context.Context) error {
	if !f.owner || !f.scope.pending() {
		return nil
	}
	for _, l := range f.tree.leases {
		if err := l.Confirm(ctx); err != nil {
			return err
		}
	}
	return nil
}
