package engine

import (
	"context"
	"sync/atomic"
	"time"

	"apiengine/jsbridge"
	"apiengine/lockwrap"
)

// tree is one call with all the calls nested in it. Its scripts run one at a time, so
// only what the caller's hanging up touches is atomic.
type tree struct {
	e        *Engine
	call     Call
	cancel   context.CancelCauseFunc // ends the whole tree
	leases   []*lockwrap.Lease       // every lock that the tree holds, oldest first
	nested   int
	requests int         // of V8.Http
	begun    atomic.Bool // a transaction has begun: the caller's hanging up no longer stops the tree
}

// holds returns the tree's lease on key, or nil.
func (t *tree) holds(key lockwrap.Key) *lockwrap.Lease {
	for _, l := range t.leases {
		if l.Key() == key {
			return l
		}
	}
	return nil
}

// frame is one call of a tree while it runs.
type frame struct {
	tree     *tree
	parent   *frame // nil for the root
	api      *API
	call     Call
	scope    *scope
	owner    bool // the scope ends with this frame
	lease    *lockwrap.Lease
	joined   bool // the lease was taken by a caller of this frame
	deadline time.Time
	view     *jsbridge.Env   // what the script sees
	saves    map[*txn]string // savepoint this frame began in each open transaction; "" = it opened it
	x        *Execution      // the root's record; nested calls add to its counts
	res      *Result         // the root's answer; nil for nested calls
}

// root runs a call that no script made.
func (e *Engine) root(ctx context.Context, c Call, api *API, res *Result) error {
	// The caller's hanging up ends the wait for the lock, and the run until it has begun a
	// transaction; from then on only the deadline and the lease do (contract.md section 5.3).
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	t := &tree{e: e, call: c, cancel: cancel}
	stop := context.AfterFunc(ctx, func() {
		if !t.begun.Load() {
			cancel(context.Cause(ctx))
		}
	})
	defer stop()
	f := &frame{tree: t, api: api, call: c, x: res.Execution, res: res}
	report, err := f.run(runCtx)
	f.x.note(f, report, err)
	return err
}

// accept makes the root's answer of what the script left, and asks the caller whether it
// can be sent.
func (f *frame) accept(out jsbridge.Outcome) error {
	if f.res == nil {
		return nil
	}
	f.res.Body, f.res.IsText, f.res.Response = out.Result, out.IsText, out.Response
	if out.IsText {
		f.res.Body = []byte(out.Text)
	}
	if f.call.Accept == nil {
		return nil
	}
	return f.call.Accept(f.res)
}

// bound sets the run's deadline: before the lease's end, and no later than the caller's.
func (f *frame) bound() {
	var sent time.Time
	if f.lease != nil && !f.joined { // else whoever took it is bound by it, and so is this frame
		sent = f.lease.Sent()
	}
	f.deadline = f.api.Plan.RunDeadline(sent, time.Now())
	if p := f.parent; p != nil && p.deadline.Before(f.deadline) {
		f.deadline = p.deadline // a child has no more than its caller's rest
	}
	if f.owner {
		f.scope.until = f.deadline
	}
}
