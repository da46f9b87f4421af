package server

import (
	"context"
	"net/http"
	"time"

	"apiengine/fault"
)

// TokenAdmin makes and revokes tokens.
type TokenAdmin interface {
	// List returns the tokens of a tenant; of all tenants, and of none, for "".
	List(ctx context.Context, tenant string) ([]TokenInfo, error)
	// Create returns the plain token, which is never shown again.
	Create(ctx context.Context, t NewToken) (plain string, info TokenInfo, err error)
	// Revoke ends a token of the tenant; of any tenant for "". An unknown id is a not_found.
	Revoke(ctx context.Context, tenant, id string) error
}

// NewToken is a token to be made. Tenant "" makes one for every tenant.
type NewToken struct {
	Tenant    string
	Name      string
	Roles     []string
	Scopes    []string
	ExpiresAt *time.Time
	By        string
}

// TokenInfo is what may be known of a token.
type TokenInfo struct {
	Id        string //nolint:revive // the field's name is the contract's
	Tenant    string
	Name      string
	Roles     []string
	Scopes    []string
	CreatedAt time.Time
	ExpiresAt *time.Time `json:",omitempty"`
	RevokedAt *time.Time `json:",omitempty"`
}

type tokens struct{ port TokenAdmin }

func tokenRoutes(p TokenAdmin) []route {
	t := tokens{p}
	return []route{
		{http.MethodGet, "/tokens", RoleAdmin, ofTenant, t.list},
		{http.MethodPost, "/tokens", RoleAdmin, ofTenant, t.create},
		{http.MethodDelete, "/tokens/{id}", RoleAdmin, ofTenant, t.revoke},
	}
}

func (t tokens) list(c *adminCall) (answer, error) {
	tenant, _, err := c.reach()
	if err != nil {
		return answer{}, err
	}
	all, err := t.port.List(c.ctx, tenant)
	if all == nil {
		all = []TokenInfo{}
	}
	return answer{data: all}, err
}

func (t tokens) create(c *adminCall) (answer, error) {
	var in struct {
		Name       string
		Roles      []string
		Scopes     []string
		ExpiresAt  *time.Time
		AllTenants bool // a token for every tenant
	}
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	n := NewToken{Tenant: c.tenant, Name: in.Name, Roles: in.Roles, Scopes: in.Scopes, ExpiresAt: in.ExpiresAt, By: c.by()}
	switch {
	case in.Name == "":
		return answer{}, refuse(fault.BadRequest, "Name is missing").with(map[string]any{"Field": "Name"})
	case in.ExpiresAt != nil && !in.ExpiresAt.After(time.Now()):
		return answer{}, refuse(fault.BadRequest, "ExpiresAt is in the past").with(map[string]any{"Field": "ExpiresAt"})
	case in.AllTenants && c.id.Tenant != "":
		return answer{}, refuse(fault.Forbidden, "a token of one tenant cannot make one for every tenant")
	case in.AllTenants:
		n.Tenant = ""
	}
	if err := checkScopes(in.Scopes); err != nil {
		return answer{}, err
	}
	plain, info, err := t.port.Create(c.ctx, n)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusCreated, data: struct {
		TokenInfo
		Token string
	}{info, plain}}, nil
}

func (t tokens) revoke(c *adminCall) (answer, error) {
	tenant, _, err := c.reach()
	if err != nil {
		return answer{}, err
	}
	return answer{}, t.port.Revoke(c.ctx, tenant, c.param("id"))
}
