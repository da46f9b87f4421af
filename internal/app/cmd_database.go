package app

import "context"

type tenantDatabaseCmd struct {
	Add    databaseAddCmd    `cmd:"" help:"Give a tenant one more database, V8.Dbs.NAME to its scripts."`
	List   databaseListCmd   `cmd:"" help:"List a tenant's databases beside its own, and where they are."`
	Remove databaseRemoveCmd `cmd:"" help:"Take a database away from a tenant's scripts; its data stays where it is."`
}

// namedDatabase is what the commands on one database take.
type namedDatabase struct {
	remote
	Of   string `arg:"" name:"tenant-name" help:"The tenant."`
	Name string `arg:"" help:"A letter, then lower-case letters, digits and _; at most 40."`
}

type databaseAddCmd struct{ namedDatabase }

// Run implements the command.
func (c *databaseAddCmd) Run(ctx context.Context, io streams) error {
	made, err := c.client().AddDatabase(ctx, c.Of, c.Name)
	return show(io, c.JSON, made, err)
}

type databaseListCmd struct {
	remote
	Of string `arg:"" name:"tenant-name" help:"The tenant."`
}

// Run implements the command.
func (c *databaseListCmd) Run(ctx context.Context, io streams) error {
	list, err := c.client().Databases(ctx, c.Of)
	return show(io, c.JSON, list, err)
}

type databaseRemoveCmd struct{ namedDatabase }

// Run implements the command.
func (c *databaseRemoveCmd) Run(ctx context.Context, io streams) error {
	return show(io, c.JSON, done("removed "+c.Name+"; its data stays"), c.client().RemoveDatabase(ctx, c.Of, c.Name))
}
