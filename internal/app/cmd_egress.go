package app

import (
	"context"

	"apiengine/internal/client"
)

type tenantEgressCmd struct {
	remote
	Name  string   `arg:"" help:"The tenant."`
	Mode  string   `enum:",public,list,off" default:"" help:"public: what the server allows; list: of that, what --allow names; off: nothing. None: show."`
	Allow []string `help:"scheme://host or scheme://host:port; may be repeated. Makes the mode list."`
}

// Run implements the command.
func (c *tenantEgressCmd) Run(ctx context.Context, io streams) error {
	if len(c.Allow) > 0 && c.Mode == "" {
		c.Mode = "list"
	}
	if c.Mode == "" {
		rules, err := c.client().Egress(ctx, c.Name)
		return show(io, c.JSON, rules, err)
	}
	rules, err := c.client().SetEgress(ctx, c.Name, client.Egress{Mode: c.Mode, Allow: c.Allow})
	return show(io, c.JSON, rules, err)
}
