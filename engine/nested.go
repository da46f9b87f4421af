package engine

import (
	"context"
	"encoding/json"
	"time"

	"apiengine/apis"
	"apiengine/fault"
)

// nested runs V8.ApiEngine.Run. A child that fails is undone alone and answers with the
// envelope of its failure, so that the caller can surface it; what ends the whole tree
// is returned as an error.
func (f *frame) nested(ctx context.Context, key string, param json.RawMessage) (json.RawMessage, error) {
	t := f.tree
	t.nested++
	switch depth := f.depth() + 1; {
	case depth > t.e.cfg.MaxDepth:
		return nil, fault.New(fault.LimitDepth, "nested calls go at most %d deep", t.e.cfg.MaxDepth)
	case t.nested > t.e.cfg.MaxNested:
		return nil, fault.New(fault.LimitDepth, "one call makes at most %d nested calls", t.e.cfg.MaxNested)
	}
	c := Call{Tenant: f.call.Tenant, Key: key, Param: param, Caller: f.call.Caller, Origin: OriginScript,
		RequestID: f.call.RequestID, ClientIP: f.call.ClientIP, Method: f.call.Method}
	body, err := f.child(ctx, c)
	if err == nil {
		return body, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if endsTree(err) || fault.Of(err) == fault.Timeout && remaining(f.deadline) < lastMoment {
		return nil, err
	}
	t.e.cfg.Log.LogAttrs(ctx, levelOf(fault.Of(err)), "nested call failed", nestedAttrs(f, key, err)...)
	return json.Marshal(Failure(err, f.x))
}

// lastMoment is how long before its own deadline a caller goes down with a child that ran
// out of time: a database ends a statement a little early, and nothing could follow.
const lastMoment = 100 * time.Millisecond

// endsTree tells the failures of a nested call that its caller cannot go on from: a lock
// of the tree is gone, nobody knows what the database did, the server ends or the
// nesting is endless. A child that only ran out of its own time is not among them.
func endsTree(err error) bool {
	switch fault.Of(err) {
	case fault.LeaseLost, fault.StaleFence, fault.OutcomeUnknown, fault.Draining, fault.LimitDepth:
		return true
	}
	return false
}

func (f *frame) child(ctx context.Context, c Call) (json.RawMessage, error) {
	api, _, err := f.tree.e.find(ctx, c)
	if err != nil {
		return nil, err
	}
	f.x.calls(api.Definition.ApiEngineKey)
	if !api.Definition.Enabled() {
		return nil, fault.New(fault.Disabled, "the API %q is switched off", api.Definition.ApiEngineKey)
	}
	if c.Param, err = cleanParam(c.Param, nil, c.Origin); err != nil {
		return nil, err
	}
	if err := f.clash(&api.Definition); err != nil {
		return nil, err
	}
	plan, err := ordinary(api)
	if err != nil {
		return nil, err
	}
	child := &frame{tree: f.tree, parent: f, api: api, plan: plan, call: c, x: f.x}
	mark := 0
	if f.scope.staged != nil {
		mark = f.scope.staged.Mark()
	}
	report, err := child.run(ctx)
	f.x.add(report)
	if !child.owner && f.scope.staged != nil && (err != nil || !commits(report.Outcome)) {
		f.scope.staged.RollbackTo(mark)
	}
	f.view.Cache = f.cache()
	if err != nil {
		return nil, err
	}
	switch out := report.Outcome; {
	case out.IsText:
		return json.Marshal(out.Text)
	case out.Result == nil:
		return json.RawMessage(`{"Code":1}`), nil // as over HTTP
	default:
		return out.Result, nil
	}
}

// clash refuses a child that asks for effects at once (a locked API with Effects: immediate)
// where it would join a transaction whose effects wait for the commit: it can have neither
// its own way nor the caller's order. One that only has the default, immediate without a
// lock, goes along with its caller.
func (f *frame) clash(d *apis.Definition) error {
	s := f.scope
	joins := d.Transaction == "auto" && s.mode != "none"
	asks := d.Lock && d.Effects == "immediate"
	if waits := s.stages || s.staged != nil && !s.staged.Empty(); !joins || !asks || !waits {
		return nil
	}
	return fault.New(fault.ScriptError, "%s has Effects: immediate, but it would join the transaction of %s, whose effects wait for the commit; leave Effects out, or give it Transaction: own",
		d.ApiEngineKey, f.api.Definition.ApiEngineKey)
}

// depth is 0 for the root.
func (f *frame) depth() int {
	n := 0
	for p := f.parent; p != nil; p = p.parent {
		n++
	}
	return n
}
