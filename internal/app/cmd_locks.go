package app

import (
	"context"
	"fmt"

	"apiengine/internal/client"
)

type locksCmd struct {
	List    locksListCmd    `cmd:"" default:"withargs" help:"Show who holds which lock, since when, and who waits."`
	Release locksReleaseCmd `cmd:"" help:"Take a lock away from its holder, whose run fails with lease_lost. It goes into the audit trail."`
}

type locksListCmd struct {
	remote
	Prefix string `help:"Only locks whose names begin with this: OrderId:4 with --tenant, acme:OrderId:4 without."`
}

// Run implements the command.
func (c *locksListCmd) Run(ctx context.Context, io streams) error {
	list, err := c.client().Locks(ctx, c.Prefix)
	return show(io, c.JSON, list, err)
}

type locksReleaseCmd struct {
	remote
	Lock   string `arg:"" help:"The lock, as the list shows it."`
	Holder int64  `arg:"" name:"fencing-token" help:"The holder's token, as the list shows it: a later holder keeps the lock."`
	Reason string `help:"Why; kept in the audit trail."`
}

// Run implements the command.
func (c *locksReleaseCmd) Run(ctx context.Context, io streams) error {
	err := c.client().ReleaseLock(ctx, client.LockRelease{Lock: c.Lock, Token: c.Holder, Reason: c.Reason})
	return show(io, c.JSON, done(fmt.Sprintf("released %s", c.Lock)), err)
}
