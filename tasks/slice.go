package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"apiengine/apis"
	"apiengine/budget"
	"apiengine/engine"
	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/lockwrap"
	"apiengine/store/tenantdb"
)

var errDraining = fault.New(fault.Draining, "the server is ending")

// slice is one slice of a task while it runs.
type slice struct {
	r      *Runner
	db     *tenantdb.DB
	tenant string
	task   tenantdb.Task // as it stands; of the slice itself while it runs
	lease  *lockwrap.Lease
	read   time.Time // when task was, by this node's clock
	live   *running
	end    *tenantdb.SliceEnd // in the transaction
	logged int                // lines that are in it too
}

// run takes the task's lock and runs its next slice. went: the task has moved on, and s.task
// tells where to; else somebody else has it, or it waits for its turn.
func (s *slice) run(ctx context.Context) (went bool, err error) {
	d, plan, err := s.plan()
	if err == nil && s.task.State == tenantdb.TaskRunning && s.task.Attempt >= s.task.MaxAttempts {
		err = errNodesDied
	}
	if err != nil {
		return s.refuse(ctx, err)
	}
	s.lease, err = s.r.cfg.Locks.Acquire(ctx, lockwrap.Request{Key: lockOf(s.tenant, s.task.ID), Plan: plan, API: d.ApiEngineKey,
		Note: s.task.ID, Floor: s.task.Fence})
	switch {
	case fault.Of(err) == fault.LockBusy: // its runner lives, or its lease does
		return false, nil
	case err != nil:
		return false, err
	}
	defer func() {
		if lost := s.lease.Release(context.WithoutCancel(ctx)); lost != nil && err == nil && !went {
			err = lost
		}
	}()
	run, err := uuid.NewV7()
	if err != nil {
		return false, err
	}
	t, started, err := s.db.StartSlice(ctx, s.task, run.String(), s.lease.Token())
	switch {
	case err != nil:
		return false, err
	case !started:
		return s.bury(ctx)
	}
	s.task, s.read = t, time.Now()
	return true, s.invoke(ctx, plan)
}

// lockScope keeps the locks of tasks apart from those of APIs, whose scopes do not begin so.
const lockScope = "$task"

func lockOf(tenant, id string) lockwrap.Key {
	return lockwrap.Key{Tenant: tenant, Scope: lockScope, Value: id}
}

// plan is what the slice's lease and time come from; the task's own lock is tried once.
func (s *slice) plan() (d apis.Definition, p budget.Plan, err error) {
	d, found := s.r.cfg.Calls.Describe(s.tenant, s.task.API, "")
	if !found {
		return d, p, fault.New(fault.NotFound, "there is no API %q", s.task.API)
	}
	p, err = d.Plan(true)
	p.Wait = 0
	return d, p, err
}

// refuse ends a task that cannot even begin a slice.
func (s *slice) refuse(ctx context.Context, cause error) (went bool, err error) {
	lease, err := s.r.cfg.Locks.Acquire(ctx, lockwrap.Request{Key: lockOf(s.tenant, s.task.ID), API: s.task.API, Note: s.task.ID, Floor: s.task.Fence,
		Plan: budget.Plan{Lease: 10 * time.Second, Hold: 10 * time.Second, Run: 10 * time.Second}})
	switch {
	case fault.Of(err) == fault.LockBusy: // its runner lives
		return false, nil
	case err != nil:
		return false, err
	}
	defer func() { err = errors.Join(err, lease.Release(context.WithoutCancel(ctx))) }()
	t, started, err := s.db.StartSlice(ctx, s.task, "refused", lease.Token())
	if err != nil || !started {
		return false, err
	}
	s.task, s.read = t, time.Now()
	return true, s.settle(ctx, s.r.after(t, cause))
}

// bury ends a task that is to be ended and whose runner is gone.
func (s *slice) bury(ctx context.Context) (went bool, err error) {
	t, err := s.db.Task(ctx, s.task.ID)
	if err != nil || !t.Open() || !t.Cancel {
		return false, err
	}
	if s.task, err = s.db.BuryTask(ctx, t.ID, s.lease.Token()); fault.Of(err) == fault.VersionConflict {
		return false, nil
	}
	return err == nil, err
}

// invoke runs the API, and leaves in s.task where the task stands then.
func (s *slice) invoke(ctx context.Context, plan budget.Plan) error {
	t := &s.task
	s.live = s.r.live.begin(s.tenant, *t)
	res, err := s.within(ctx, plan)
	if err == nil && s.end != nil {
		defer s.log(ctx) // what was told after the end
		t.State, t.Slice, t.Attempt, t.Param, t.Checkpoint, t.Stuck = s.end.State, s.end.Slice, s.end.Attempt, s.end.Param, s.end.Checkpoint, s.end.Stuck
		t.Current, t.Total, t.Rate, t.Msg = s.end.Current, s.end.Total, s.end.Rate, s.end.Msg
		s.moved(s.end)
		s.live.noted(s.logged)
		return nil
	}
	if err == nil { // rolled back by what it answered
		err = refused(res.Body)
	}
	s.r.cfg.Log.Info("a task's slice left nothing", "tenant", s.tenant, "task", t.ID, "api", t.API, "slice", t.Slice+1, "attempt", t.Attempt, "error", err)
	s.log(ctx) // before anybody sees the end
	return s.settle(ctx, s.r.after(*t, err))
}

// settle writes the end of a slice whose work was rolled back. One that turns out to have
// been committed all the same, or to be another's, is read again.
func (s *slice) settle(ctx context.Context, e tenantdb.SliceEnd) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trouble)
	defer cancel()
	s.live.into(&e)
	e.Msg, e.Error = fit(e.Msg, maxMsg), fit(e.Error, maxError)
	ours, err := s.db.EndSlice(ctx, e)
	if err == nil && !ours && e.State != tenantdb.TaskCanceled { // canceled meanwhile?
		e.State, e.Error = tenantdb.TaskCanceled, ""
		var t tenantdb.Task
		if t, err = s.db.Task(ctx, e.ID); err == nil && t.Cancel && t.Open() {
			ours, err = s.db.EndSlice(ctx, e)
		}
	}
	if err != nil {
		return err
	}
	if !ours {
		s.task, err = s.db.Task(ctx, e.ID)
		return err
	}
	s.task.State = e.State
	s.moved(&e)
	return nil
}

// moved carries s.task on to what e has made of it.
func (s *slice) moved(e *tenantdb.SliceEnd) {
	s.task.Now, s.read = s.task.Now.Add(time.Since(s.read)), time.Now()
	s.task.NextAt = s.task.Now.Add(e.Delay)
	if e.State != tenantdb.TaskPending && e.State != tenantdb.TaskRetrying {
		s.task.EndedAt = s.task.Now
	}
}

// log keeps what the slice has told, also when its work was rolled back.
func (s *slice) log(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trouble)
	defer cancel()
	if err := s.db.LogTask(ctx, s.task.ID, s.live.lines()); err != nil {
		s.r.cfg.Log.Warn("a task's log lines are lost", "tenant", s.tenant, "task", s.task.ID, "error", err)
	}
}

// refused is the error for a slice that answered with an object without Code 1.
func refused(body []byte) error {
	var said struct {
		Code json.RawMessage
		Msg  string
	}
	_ = json.Unmarshal(body, &said) // a Msg of another type says nothing
	switch {
	case said.Msg != "":
	case len(said.Code) == 0:
		said.Msg = "it answered with an object without Code"
	default:
		said.Msg = "it answered with Code " + clip(said.Code)
	}
	return fault.New(fault.ScriptError, "%s", said.Msg)
}

// within invokes the call in a goroutine of its own: a run that does not end when it must is
// left behind, and its worker goes on. Such a run has lost its row, so it cannot commit.
func (s *slice) within(ctx context.Context, plan budget.Plan) (*engine.Result, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if !s.live.endBy(end) {
		return nil, errCanceled
	}
	call, err := s.call(ctx)
	if err != nil {
		s.live.done()
		return nil, err
	}
	type answer struct {
		res *engine.Result
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		defer s.live.done()
		res, err := s.r.cfg.Calls.Invoke(ctx, call)
		answered <- answer{res, err}
	}()
	limit := time.NewTimer(plan.Run + plan.Lease + s.r.cfg.Overrun) // it may wait for its API's lock first
	defer limit.Stop()
	ended := ctx.Done()
	for {
		select {
		case a := <-answered:
			return a.res, a.err
		case <-ended:
			ended = nil
			limit.Reset(s.r.cfg.Overrun)
		case <-limit.C:
			s.r.stuck.Add(1)
			s.r.cfg.Log.Error("a task's slice does not end and is left behind", "tenant", s.tenant, "task", s.task.ID, "api", s.task.API)
			go func() { <-answered; s.r.stuck.Add(-1) }()
			return nil, cmp.Or(context.Cause(ctx), error(fault.New(fault.Timeout, "the slice did not end at its deadline")))
		}
	}
}

// call is the slice as a call.
func (s *slice) call(ctx context.Context) (engine.Call, error) {
	t := &s.task
	var p principal
	if err := json.Unmarshal(t.Principal, &p); err != nil {
		return engine.Call{}, fault.Wrap(fault.Internal, err, "tasks: a principal cannot be read")
	}
	caller := engine.Caller(p)
	if caller.ID != "" {
		var err error
		if caller, err = s.r.cfg.Principals.Reload(ctx, s.tenant, caller); err != nil {
			return engine.Call{}, err
		}
	}
	key := t.ID + ":" + strconv.FormatInt(t.Slice, 10)
	c := engine.Call{Tenant: s.tenant, Key: t.API, Param: t.Param, Caller: caller, RequestID: t.ID, IdempotencyKey: key}
	return engine.Trusted(c, engine.Trust{Lease: s.lease, Author: t.Source != SourceAPI, Report: s.live.report, Record: s.record,
		Param: map[string]json.RawMessage{
			"_BackgroundTaskId": text(t.ID), "_BackgroundTaskCheckpoint": t.Checkpoint, "_BackgroundTaskIdempotencyKey": text(key),
			"_BackgroundTaskFencingToken": json.RawMessage(strconv.FormatInt(s.lease.Token(), 10)),
			"_BackgroundTaskAttempt":      json.RawMessage(strconv.Itoa(t.Attempt)),
		}}), nil
}

func text(s string) json.RawMessage {
	quoted, _ := json.Marshal(s) // a string always can be
	return quoted
}

// sliceTx is a transaction that keeps the end of a slice; the tenants' databases make it.
type sliceTx interface {
	EndSlice(ctx context.Context, e tenantdb.SliceEnd) (ours bool, err error)
	LogTask(ctx context.Context, id string, lines []tenantdb.TaskLine) error
}

// record writes the slice's end into its transaction.
func (s *slice) record(ctx context.Context, tx engine.Tx, out jsbridge.Outcome) error {
	keeps, ok := tx.(sliceTx)
	if !ok {
		return fault.New(fault.Internal, "tasks: %T keeps no slices", tx)
	}
	e, err := s.r.end(s.task, out)
	if err != nil {
		return err
	}
	s.live.into(&e)
	ours, err := keeps.EndSlice(ctx, e)
	switch {
	case err != nil:
		return err
	case !ours:
		return s.lost(ctx)
	}
	lines, upTo := s.live.unkept()
	if err := keeps.LogTask(ctx, s.task.ID, lines); err != nil {
		return err
	}
	s.end, s.logged = &e, upTo
	return nil
}

// lost says why the row is not the slice's any more.
func (s *slice) lost(ctx context.Context) error {
	t, err := s.db.Task(ctx, s.task.ID)
	switch {
	case err != nil:
		return err
	case t.Cancel && t.Run == s.task.Run:
		return errCanceled
	}
	return fault.New(fault.StaleFence, "the task was taken over by a later run, whose token is %d", t.Fence)
}
