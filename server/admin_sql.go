package server

import (
	"context"
	"encoding/json"
	"net/http"

	"apiengine/fault"
)

// SQL runs one statement in a tenant's database, for administrators.
type SQL interface {
	Statement(ctx context.Context, r SQLRequest) (SQLAnswer, error)
}

// SQLRequest is a statement and where it is to run.
type SQLRequest struct {
	Tenant, Database string // Database of V8.Dbs; empty: the tenant's own
	SQL              string
}

// SQLAnswer has rows, or the number of rows changed. Each row is a JSON array.
type SQLAnswer struct {
	Columns  []string
	Rows     []json.RawMessage
	Affected int64
}

// Schema applies a tenant's own migrations, in order of their names.
type Schema interface {
	Apply(ctx context.Context, r SchemaRequest) (applied []string, err error)
}

// SchemaRequest is the migrations of one database.
type SchemaRequest struct {
	Tenant, Database string // Database of V8.Dbs; empty: the tenant's own
	Files            []SchemaFile
}

// SchemaFile is one goose migration.
type SchemaFile struct{ Name, SQL string }

func sqlRoutes(p SQL) []route {
	return []route{{http.MethodPost, "/sql", RoleAdmin, ofTenant, func(c *adminCall) (answer, error) {
		var in struct{ Sql, Database string } //nolint:revive // the field's name is the contract's
		if err := c.decode(&in); err != nil {
			return answer{}, err
		}
		if in.Sql == "" {
			return answer{}, refuse(fault.BadRequest, "Sql is missing").with(map[string]any{"Field": "Sql"})
		}
		out, err := p.Statement(c.ctx, SQLRequest{Tenant: c.tenant, Database: in.Database, SQL: in.Sql})
		if out.Columns == nil {
			out.Columns = []string{}
		}
		if out.Rows == nil {
			out.Rows = []json.RawMessage{}
		}
		return answer{data: out}, err
	}}}
}

func schemaRoutes(p Schema) []route {
	return []route{{http.MethodPost, "/schema", RoleAdmin, ofTenant, func(c *adminCall) (answer, error) {
		var in struct {
			Files    []SchemaFile
			Database string
		}
		if err := c.decode(&in); err != nil {
			return answer{}, err
		}
		applied, err := p.Apply(c.ctx, SchemaRequest{Tenant: c.tenant, Database: in.Database, Files: in.Files})
		if applied == nil {
			applied = []string{}
		}
		return answer{data: map[string]any{"Applied": applied}}, err
	}}}
}
