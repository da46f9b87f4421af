package engine

import (
	"context"
	"encoding/json"

	"apiengine/fault"
)

// Tasks keeps background tasks for scripts.
type Tasks interface {
	// Submit keeps the task that a script orders in the run's own transaction, and returns it
	// as JSON with its id, which is another's when the order was given before.
	Submit(ctx context.Context, tx Tx, o Order) (answer json.RawMessage, id string, err error)
	// Submitted says that a commit has left tasks behind. It must not wait.
	Submitted(tenant string, ids []string)
}

// Order is a script's V8.Task.Submit.
type Order struct {
	Tenant string
	Caller Caller
	API    string          // whose script it is
	Text   json.RawMessage // an object with jsbridge.TaskFields
}

// taskBox is V8.Task of one frame.
type taskBox struct{ f *frame }

func (b taskBox) Submit(ctx context.Context, order json.RawMessage) (answer json.RawMessage, err error) {
	f := b.f
	if f.tree.e.cfg.Tasks == nil {
		return nil, fault.New(fault.Forbidden, "V8.Task is not available on this server")
	}
	err = session{f: f}.with(ctx, func(tx Tx) error {
		var id string
		if answer, id, err = f.tree.e.cfg.Tasks.Submit(ctx, tx, Order{Tenant: f.call.Tenant, Caller: f.call.Caller,
			API: f.api.Definition.ApiEngineKey, Text: order}); err == nil {
			f.scope.ordered = append(f.scope.ordered, id)
		}
		return err
	})
	return answer, err
}
