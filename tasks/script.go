package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/store/tenantdb"
)

// Scripts takes the orders of scripts for a Runner.
type Scripts struct{ Runner func() *Runner }

// orderTx is a transaction that keeps tasks; the tenants' databases make it.
type orderTx interface {
	AddTask(ctx context.Context, t tenantdb.NewTask) (id string, created bool, err error)
}

// Submit implements engine.Tasks.
func (s Scripts) Submit(ctx context.Context, tx engine.Tx, o engine.Order) (json.RawMessage, string, error) {
	keeps, ok := tx.(orderTx)
	if !ok {
		return nil, "", fault.New(fault.Internal, "tasks: %T keeps no tasks", tx)
	}
	var order Order
	if err := ReadOrder(o.Text, &order); err != nil {
		return nil, "", err
	}
	r := s.Runner()
	n, err := r.row(o.Tenant, o.Caller, "script:"+o.API, order)
	if err != nil {
		return nil, "", err
	}
	if err := r.Expect(ctx, o.Tenant); err != nil {
		return nil, "", err
	}
	id, _, err := keeps.AddTask(ctx, n)
	if err != nil {
		return nil, "", err
	}
	answer, err := json.Marshal(struct{ Id, Status string }{id, statuses[tenantdb.TaskPending]})
	return answer, id, err
}

// Submitted implements engine.Tasks.
func (s Scripts) Submitted(tenant string, ids []string) {
	for _, id := range ids {
		select {
		case s.Runner().ordered <- Bell{Tenant: tenant, Task: id}:
		default: // so many that the watch has to ring
		}
	}
}

// ringOrdered rings for the tasks that scripts have ordered.
func (r *Runner) ringOrdered(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-r.ordered:
			bells := []Bell{b}
			for len(r.ordered) > 0 && len(bells) < cap(r.ordered) {
				if b := <-r.ordered; !slices.Contains(bells, b) {
					bells = append(bells, b)
				}
			}
			if err := r.cfg.Queue.Ring(ctx, bells...); err != nil && ctx.Err() == nil {
				r.cfg.Log.Warn("tasks and messages of scripts have to wait for the watch", "bells", len(bells), "error", err)
			}
		}
	}
}

// ReadOrder reads an order strictly; bad_request names the field.
func ReadOrder(text json.RawMessage, o *Order) error {
	err := jsonv2.Unmarshal(text, o, jsonv2.RejectUnknownMembers(true))
	var sem *jsonv2.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &sem) && sem.JSONPointer != "":
		return wrong(string(sem.JSONPointer[1:]), "of the task cannot be read")
	}
	return bad("the task cannot be read: %v", err)
}

// canonical is one text for all that say the same.
func canonical(text json.RawMessage) string {
	v := jsontext.Value(bytes.Clone(text))
	_ = v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) // else it is compared as it is
	return string(v)
}
