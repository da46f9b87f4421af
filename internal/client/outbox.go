package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// OutboxFilter says which messages are listed; an empty field lets all through.
type OutboxFilter struct {
	State, EventID, Type, Key, Target, Cursor string
	Limit                                     int
}

// OutboxMessage is one message of a tenant's outbox.
type OutboxMessage struct {
	Id           int64 //nolint:revive // the spelling of the contract
	EventId      string
	Type         string
	Key          string `json:",omitempty"`
	Target       string
	Data         json.RawMessage
	FencingToken int64 `json:",omitempty"`
	State        string
	Attempts     int
	Error        string `json:",omitempty"`
	Delivering   bool
	CreatedAt    time.Time
	NextRunAt    *time.Time `json:",omitempty"`
	EndedAt      *time.Time `json:",omitempty"`
}

// Outbox is a page of messages, newest first.
type Outbox struct {
	Items      []OutboxMessage
	NextCursor string `json:",omitempty"`
}

func (o *Outbox) String() string {
	text := table("ID\tEVENT\tTARGET\tKEY\tSTATE\tTRIES\tWHY", len(o.Items), func(i int) []any {
		m := o.Items[i]
		return []any{m.Id, m.EventId, m.Target, m.Key, m.State, m.Attempts, m.why()}
	})
	if o.NextCursor != "" {
		text += "more with --cursor " + o.NextCursor + "\n"
	}
	return text
}

// why says what a message that is not delivered waits for.
func (m OutboxMessage) why() string {
	switch {
	case m.Delivering:
		return "being delivered"
	case m.NextRunAt != nil && m.Error != "":
		return fmt.Sprintf("again at %s: %s", m.NextRunAt.Format(time.RFC3339), m.Error)
	case m.NextRunAt != nil:
		return "waiting"
	}
	return m.Error
}

// Outbox lists the tenant's messages.
func (c *Client) Outbox(ctx context.Context, f OutboxFilter) (*Outbox, error) {
	q := url.Values{}
	for name, v := range map[string]string{"state": f.State, "eventId": f.EventID, "type": f.Type, "key": f.Key, "target": f.Target, "cursor": f.Cursor} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	out := &Outbox{}
	return out, c.call(ctx, request{method: http.MethodGet, path: "/outbox?" + q.Encode()}, out)
}

// RetryMessage makes a message due at once.
func (c *Client) RetryMessage(ctx context.Context, id int64) error {
	return c.call(ctx, request{method: http.MethodPost, path: fmt.Sprintf("/outbox/%d/retry", id)}, nil)
}

// DropMessage gives a message up.
func (c *Client) DropMessage(ctx context.Context, id int64) error {
	return c.call(ctx, request{method: http.MethodPost, path: fmt.Sprintf("/outbox/%d/drop", id)}, nil)
}
