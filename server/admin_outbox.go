package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"apiengine/fault"
)

// Outbox shows a tenant's messages and decides about those that could not be delivered.
type Outbox interface {
	// List returns messages, newest first.
	List(ctx context.Context, tenant string, f OutboxFilter) ([]OutboxMessage, error)
	// Retry makes a message due at once; Drop gives it up. not_found, or version_conflict
	// when its state does not allow it.
	Retry(ctx context.Context, tenant string, id int64) error
	Drop(ctx context.Context, tenant string, id int64) error
}

// OutboxFilter says which messages are listed; an empty field lets all through.
type OutboxFilter struct {
	State, ID, Type, Key, Target string
	Before                       int64 // the Id of the last one of the page before
	Max                          int
}

// OutboxMessage is one message.
type OutboxMessage struct {
	Id           int64 //nolint:revive // the spelling of the contract
	EventId      string
	Type         string
	Key          string `json:",omitempty"`
	Target       string
	Data         json.RawMessage
	FencingToken int64  `json:",omitempty"`
	State        string // pending, delivered, dead, dropped
	Attempts     int
	Error        string     `json:",omitempty"` // of the last try
	Delivering   bool       // a relay has it now
	CreatedAt    time.Time  // when it was sent
	NextRunAt    *time.Time `json:",omitempty"`
	EndedAt      *time.Time `json:",omitempty"`
}

var outboxStates = []string{"", "pending", "delivered", "dead", "dropped"}

type outboxAdmin struct{ port Outbox }

func outboxRoutes(p Outbox) []route {
	o := outboxAdmin{p}
	return []route{
		{http.MethodGet, "/outbox", RoleAdmin, ofTenant, o.list},
		{http.MethodPost, "/outbox/{id}/retry", RoleAdmin, ofTenant, o.decide(p.Retry)},
		{http.MethodPost, "/outbox/{id}/drop", RoleAdmin, ofTenant, o.decide(p.Drop)},
	}
}

func (o outboxAdmin) list(c *adminCall) (answer, error) {
	q, err := plainQuery(c.x.r.URL)
	if err != nil {
		return answer{}, err
	}
	f := OutboxFilter{State: q.Get("state"), ID: q.Get("eventId"), Type: q.Get("type"), Key: q.Get("key"), Target: q.Get("target")}
	if !slices.Contains(outboxStates, f.State) {
		return answer{}, refuse(fault.BadRequest, "state must be pending, delivered, dead or dropped, not %q", f.State)
	}
	limit, err := limitOf(q)
	if err != nil {
		return answer{}, err
	}
	if f.Before, err = cursorOf(q); err != nil {
		return answer{}, err
	}
	f.Max = limit + 1
	found, err := o.port.List(c.ctx, c.tenant, f)
	return page(found, limit, func(m OutboxMessage) string { return strconv.FormatInt(m.Id, 10) }), err
}

func (o outboxAdmin) decide(do func(ctx context.Context, tenant string, id int64) error) func(*adminCall) (answer, error) {
	return func(c *adminCall) (answer, error) {
		id, err := strconv.ParseInt(c.param("id"), 10, 64)
		if err != nil || id < 1 {
			return answer{}, refuse(fault.NotFound, "there is no message %q", c.param("id"))
		}
		return answer{}, do(c.ctx, c.tenant, id)
	}
}
