package server

import (
	"context"
	"encoding/json"
	"net/http"

	"apiengine/fault"
)

// Egress knows what tenants may reach outside, narrower than the server's own rules.
type Egress interface {
	Rules(ctx context.Context, tenant string) (json.RawMessage, error)
	// SetRules replaces them and returns them in full; by is who did it, for the audit trail.
	SetRules(ctx context.Context, tenant, by string, rules json.RawMessage) (json.RawMessage, error)
}

type egress struct{ port Egress }

// egressRoutes: a tenant's administrators see its rules, and only those of the whole
// server set them.
func egressRoutes(p Egress) []route {
	e := egress{p}
	return []route{
		{http.MethodGet, "/tenants/{tenant}/egress", RoleAdmin, ofPath, e.get},
		{http.MethodPut, "/tenants/{tenant}/egress", RoleAdmin, ofPath, e.set},
	}
}

func (e egress) get(c *adminCall) (answer, error) {
	rules, err := e.port.Rules(c.ctx, c.tenant)
	return answer{data: rules}, err
}

func (e egress) set(c *adminCall) (answer, error) {
	if c.id.Tenant != "" {
		return answer{}, refuse(fault.Forbidden, "what a tenant may reach is set with a token of every tenant")
	}
	raw, err := c.rawBody()
	if err != nil {
		return answer{}, err
	}
	rules, err := e.port.SetRules(c.ctx, c.tenant, c.by(), raw)
	return answer{data: rules}, err
}
