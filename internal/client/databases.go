package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Database is one named database of a tenant, V8.Dbs.<Name> to its scripts.
type Database struct {
	Name      string
	CreatedAt time.Time
	Where     string // a file under the server's data folder, or a schema
}

func (d *Database) String() string { return d.Name + "\n" }

// Databases is a list of named databases.
type Databases []Database

func (l Databases) String() string {
	return table("NAME\tCREATED\tWHERE", len(l), func(i int) []any {
		return []any{l[i].Name, day(&l[i].CreatedAt), visible(l[i].Where)}
	})
}

func databasesOf(tenant string) string { return "/tenants/" + url.PathEscape(tenant) + "/databases" }

// AddDatabase gives a tenant a named database.
func (c *Client) AddDatabase(ctx context.Context, tenant, name string) (*Database, error) {
	out := &Database{}
	return out, c.call(ctx, request{method: http.MethodPost, path: databasesOf(tenant), body: map[string]any{"Name": name}}, out)
}

// Databases lists a tenant's named databases.
func (c *Client) Databases(ctx context.Context, tenant string) (Databases, error) {
	var out Databases
	return out, c.call(ctx, request{method: http.MethodGet, path: databasesOf(tenant)}, &out)
}

// RemoveDatabase takes a named database away from a tenant's scripts; its data stays.
func (c *Client) RemoveDatabase(ctx context.Context, tenant, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: databasesOf(tenant) + "/" + url.PathEscape(name)}, nil)
}
