package server

import (
	"context"
	"net/http"
	"time"

	"apiengine/fault"
)

// Databases knows the named databases of tenants (V8.Dbs.<name>).
type Databases interface {
	List(ctx context.Context, tenant string) ([]DatabaseInfo, error)
	Add(ctx context.Context, r DatabaseRequest) (DatabaseInfo, error)
	Remove(ctx context.Context, r DatabaseRequest) error
}

// DatabaseRequest names a database; By is who asks, for the audit trail.
type DatabaseRequest struct{ Tenant, Name, By string }

// DatabaseInfo is one named database.
type DatabaseInfo struct {
	Name      string
	CreatedAt time.Time
	Where     string // a file under the data folder, or a schema
}

type databases struct{ port Databases }

// databaseRoutes: a tenant's administrators see its databases, and only those of the whole
// server make and remove them.
func databaseRoutes(p Databases) []route {
	d := databases{p}
	return []route{
		{http.MethodGet, "/tenants/{tenant}/databases", RoleAdmin, ofPath, d.list},
		{http.MethodPost, "/tenants/{tenant}/databases", RoleAdmin, ofPath, d.add},
		{http.MethodDelete, "/tenants/{tenant}/databases/{name}", RoleAdmin, ofPath, d.remove},
	}
}

func (d databases) list(c *adminCall) (answer, error) {
	list, err := d.port.List(c.ctx, c.tenant)
	if list == nil {
		list = []DatabaseInfo{}
	}
	return answer{data: list}, err
}

func (d databases) add(c *adminCall) (answer, error) {
	if err := everyTenants(c); err != nil {
		return answer{}, err
	}
	var in struct{ Name string }
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	made, err := d.port.Add(c.ctx, DatabaseRequest{Tenant: c.tenant, Name: in.Name, By: c.by()})
	return answer{status: http.StatusCreated, data: made}, err
}

func (d databases) remove(c *adminCall) (answer, error) {
	if err := everyTenants(c); err != nil {
		return answer{}, err
	}
	return answer{}, d.port.Remove(c.ctx, DatabaseRequest{Tenant: c.tenant, Name: c.param("name"), By: c.by()})
}

func everyTenants(c *adminCall) error {
	if c.id.Tenant != "" {
		return refuse(fault.Forbidden, "a tenant's databases are made and removed with a token of every tenant")
	}
	return nil
}
