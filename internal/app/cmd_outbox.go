package app

import (
	"context"
	"fmt"

	"apiengine/internal/client"
)

type outboxCmd struct {
	List  outboxListCmd  `cmd:"" help:"List messages, newest first, and why they wait."`
	Retry outboxRetryCmd `cmd:"" help:"Deliver a message at once, its tries counted anew."`
	Drop  outboxDropCmd  `cmd:"" help:"Give a message up."`
}

type outboxListCmd struct {
	remote
	State  string `enum:",pending,delivered,dead,dropped" default:"" help:"pending, delivered, dead or dropped."`
	Event  string `help:"EventId."`
	Type   string `help:"Type."`
	Key    string `help:"Key."`
	Target string `help:"Target."`
	Limit  int    `default:"100" help:"Messages of a page, at most 1000."`
	Cursor string `help:"The cursor that the page before has shown."`
}

// Run implements the command.
func (c *outboxListCmd) Run(ctx context.Context, io streams) error {
	list, err := c.client().Outbox(ctx, client.OutboxFilter{State: c.State, EventID: c.Event, Type: c.Type, Key: c.Key,
		Target: c.Target, Limit: c.Limit, Cursor: c.Cursor})
	return show(io, c.JSON, list, err)
}

type outboxRetryCmd struct {
	remote
	ID int64 `arg:"" help:"The message's id, from outbox list."`
}

// Run implements the command.
func (c *outboxRetryCmd) Run(ctx context.Context, io streams) error {
	return show(io, c.JSON, done(fmt.Sprintf("message %d is due now", c.ID)), c.client().RetryMessage(ctx, c.ID))
}

type outboxDropCmd struct {
	remote
	ID int64 `arg:"" help:"The message's id, from outbox list."`
}

// Run implements the command.
func (c *outboxDropCmd) Run(ctx context.Context, io streams) error {
	return show(io, c.JSON, done(fmt.Sprintf("message %d is dropped", c.ID)), c.client().DropMessage(ctx, c.ID))
}
