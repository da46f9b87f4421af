package server

import (
	"context"
	"net/http"

	"apiengine/fault"
)

// Secrets keeps a tenant's secrets. There is no way to read a value here (S47).
type Secrets interface {
	Names(ctx context.Context, tenant string) ([]string, error)
	Set(ctx context.Context, tenant, name, value string) error
	Delete(ctx context.Context, tenant, name string) error
}

const maxSecretName = 100

type secrets struct{ port Secrets }

func secretRoutes(p Secrets) []route {
	s := secrets{p}
	return []route{
		{http.MethodGet, "/tenants/{tenant}/secrets", RoleAdmin, ofPath, s.names},
		{http.MethodPut, "/tenants/{tenant}/secrets/{secret}", RoleAdmin, ofPath, s.set},
		{http.MethodDelete, "/tenants/{tenant}/secrets/{secret}", RoleAdmin, ofPath, s.delete},
	}
}

func (s secrets) names(c *adminCall) (answer, error) {
	names, err := s.port.Names(c.ctx, c.tenant)
	if names == nil {
		names = []string{}
	}
	return answer{data: names}, err
}

func (s secrets) set(c *adminCall) (answer, error) {
	name := c.param("secret")
	if len(name) > maxSecretName || !saneID(name) {
		return answer{}, refuse(fault.BadRequest, "the name of a secret is 1 to %d of A-Z, a-z, 0-9, '.', '_' and '-'", maxSecretName)
	}
	var in struct{ Value *string }
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	if in.Value == nil {
		return answer{}, refuse(fault.BadRequest, "Value is missing").with(map[string]any{"Field": "Value"})
	}
	return answer{}, s.port.Set(c.ctx, c.tenant, name, *in.Value)
}

func (s secrets) delete(c *adminCall) (answer, error) {
	return answer{}, s.port.Delete(c.ctx, c.tenant, c.param("secret"))
}
