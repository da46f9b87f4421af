package engine

import (
	"context"
	"sync/atomic"
	"time"

	"apiengine/budget"
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
	requests int               // of V8.Http
	whole    []*lockwrap.Lease // released, and the tree's own until then
	floors   floors            // tokens that locks must be given above
	acted    atomic.Bool       // something was done that no rollback takes back
	begun    atomic.Bool       // a transaction has begun: the caller's hanging up no longer stops the tree
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
	plan     budget.Plan
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
	once     *once           // the root's claim of an Idempotency-Key; nil: none
}

// root runs a call that no script made. A lock whose counter is behind what the database
// has seen is healed here: the call starts over, once, with a larger token (docs/decisions.md 16).
func (e *Engine) root(ctx context.Context, c Call, api *API, res *Result) (err error) {
	claimed, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	plan, err := planOf(&c, api)
	if err != nil {
		return err
	}
	f := e.frame(c, api, res, floors{})
	f.plan = plan
	if done, err := f.claim(claimed, end); done || err != nil { // of the Idempotency-Key
		return err
	}
	defer func() { f.settle(claimed, err) }()
	report, err := f.start(ctx, claimed)
	if l, behind := f.tree.behind(err); behind {
		again := f.tree.repeatable(f.x)
		e.cfg.Log.Warn("the lock gave a token that the database has seen passed", "execution", f.x.ID, "lock", l.Key().String(),
			"token", l.Token(), "stored", f.tree.floors[l.Key().String()], "again", again)
		if again {
			f.x.Lock, f.x.Token, f.x.Console, f.x.consoleSize = "", 0, nil, 0
			once := f.once
			f = e.frame(c, api, res, f.tree.floors)
			f.plan, f.once = plan, once
			report, err = f.start(ctx, claimed)
			l, behind = f.tree.behind(err)
		}
		if behind {
			f.tree.raise(ctx, l, f)
		}
	}
	e.keepUnknown(claimed, f, err)
	f.x.note(f, report, err)
	return err
}

// frame is a root's, of a tree of its own.
func (e *Engine) frame(c Call, api *API, res *Result, low floors) *frame {
	return &frame{tree: &tree{e: e, call: c, floors: low}, api: api, call: c, x: res.Execution, res: res}
}

// start is one run of a root, with the locks that it and its nested calls take. The caller's
// hanging up ends the wait for the lock, and the run until it has begun a transaction; from
// then on only the deadline, the lease and the end of claimed do (contract.md section 5.3). A
// slice of a task is ended by its runner at any time.
func (f *frame) start(ctx, claimed context.Context) (jsbridge.Report, error) {
	runCtx, cancel := context.WithCancelCause(claimed)
	defer cancel(nil)
	f.tree.cancel = cancel
	stop := context.AfterFunc(ctx, func() {
		if f.call.trust != nil || !f.tree.begun.Load() {
			cancel(context.Cause(ctx))
		}
	})
	defer stop()
	defer f.tree.entrust(f.call.trust)()
	return f.run(runCtx)
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
	f.deadline = f.plan.RunDeadline(sent, time.Now())
	if p := f.parent; p != nil && p.deadline.Before(f.deadline) {
		f.deadline = p.deadline // a child has no more than its caller's rest
	}
	if f.owner {
		f.scope.until = f.deadline
	}
}
