package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"apiengine/fault"
)

// Tenants knows the tenants and their settings (V8.SysConfig).
type Tenants interface {
	List(ctx context.Context) ([]TenantInfo, error)
	Create(ctx context.Context, name string) (TenantInfo, error)
	Settings(ctx context.Context, tenant string) (json.RawMessage, error)
	SetSettings(ctx context.Context, tenant string, settings json.RawMessage) error
}

// TenantInfo is one tenant.
type TenantInfo struct {
	Name      string
	CreatedAt time.Time
}

type tenants struct{ port Tenants }

func tenantRoutes(p Tenants) []route {
	t := tenants{p}
	return []route{
		{http.MethodGet, "/tenants", RoleAdmin, ofTenant, t.list},
		{http.MethodPost, "/tenants", RoleAdmin, ofAll, t.create},
		{http.MethodGet, "/tenants/{tenant}/settings", RoleAdmin, ofPath, t.settings},
		{http.MethodPut, "/tenants/{tenant}/settings", RoleAdmin, ofPath, t.setSettings},
	}
}

// list shows all tenants to a token of every tenant, else the token's own.
func (t tenants) list(c *adminCall) (answer, error) {
	all, err := t.port.List(c.ctx)
	out := []TenantInfo{}
	for _, one := range all {
		if c.id.Tenant == "" || strings.EqualFold(one.Name, c.id.Tenant) {
			out = append(out, one)
		}
	}
	return answer{data: out}, err
}

func (t tenants) create(c *adminCall) (answer, error) {
	var in struct{ Name string }
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	name := strings.ToLower(in.Name)
	if !saneTenant(name) {
		return answer{}, refuse(fault.BadRequest, "Name must be 1 to 40 of a-z, 0-9, _ and -").with(map[string]any{"Field": "Name"})
	}
	info, err := t.port.Create(c.ctx, name)
	return answer{status: http.StatusCreated, data: info}, err
}

func (t tenants) settings(c *adminCall) (answer, error) {
	s, err := t.port.Settings(c.ctx, c.tenant)
	if err == nil && len(s) == 0 {
		s = json.RawMessage("{}")
	}
	return answer{data: s}, err
}

func (t tenants) setSettings(c *adminCall) (answer, error) {
	raw, err := c.rawBody()
	if err != nil {
		return answer{}, err
	}
	return answer{data: json.RawMessage(raw)}, t.port.SetSettings(c.ctx, c.tenant, raw)
}
