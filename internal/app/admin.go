package app

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/fault"
	"apiengine/server"
	"apiengine/store"
	"apiengine/store/tenantdb"
)

// The ports of the admin API, one adapter each.

type adminDefinitions struct{ *library }

func (d adminDefinitions) List(ctx context.Context, tenant string) ([]server.StoredDefinition, error) {
	return storedAll(d.store.Definitions(ctx, tenant))
}

func (d adminDefinitions) Get(ctx context.Context, tenant, key string) (server.StoredDefinition, error) {
	return storedOne(d.store.Definition(ctx, tenant, key))
}

func (d adminDefinitions) Save(ctx context.Context, r server.SaveRequest) (server.StoredDefinition, bool, error) {
	saved, err := d.save(ctx, saving{tenant: r.Tenant, def: r.Definition, ifVersion: r.IfVersion, by: r.By})
	one, err := storedOne(saved, err)
	return one, one.Version == 1, err
}

func (d adminDefinitions) Delete(ctx context.Context, r server.DeleteRequest) error {
	return d.remove(ctx, r.Tenant, r.Key, r.IfVersion, r.By)
}

func (d adminDefinitions) Versions(ctx context.Context, tenant, key string) ([]server.StoredDefinition, error) {
	return storedAll(d.store.DefinitionVersions(ctx, tenant, key))
}

func (d adminDefinitions) Version(ctx context.Context, tenant, key string, version int) (server.StoredDefinition, error) {
	return storedOne(d.store.DefinitionVersion(ctx, tenant, key, version))
}

func (d adminDefinitions) Rollback(ctx context.Context, r server.RollbackRequest) (server.StoredDefinition, error) {
	return storedOne(d.rollback(ctx, r))
}

func storedOne(d store.Definition, err error) (server.StoredDefinition, error) {
	if err != nil {
		return server.StoredDefinition{}, err
	}
	out := server.StoredDefinition{Version: d.Version, SavedAt: d.SavedAt, SavedBy: d.SavedBy, Note: d.Note, Deleted: d.Deleted}
	out.Definition.ApiEngineKey = d.Key
	if len(d.Body) > 0 {
		out.Definition, err = apis.DecodeJSON(d.Body)
	}
	return out, err
}

func storedAll(list []store.Definition, err error) ([]server.StoredDefinition, error) {
	if err != nil {
		return nil, err
	}
	out := make([]server.StoredDefinition, 0, len(list))
	for _, d := range list {
		one, err := storedOne(d, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

type planner struct{ *engine.Engine }

func (p planner) Plan(_ context.Context, q server.PlanQuery) (any, error) {
	if q.Task {
		return p.ExplainTask(q.Tenant, q.Key, q.Param)
	}
	return p.Explain(q.Tenant, q.Key, q.Param)
}

type adminSchema struct{ *databases }

func (s adminSchema) Apply(ctx context.Context, r server.SchemaRequest) ([]string, error) {
	db, err := s.asked(ctx, r.Tenant, r.Database)
	if err != nil {
		return nil, err
	}
	list := make([]tenantdb.SchemaFile, len(r.Files))
	for i, f := range r.Files {
		list[i] = tenantdb.SchemaFile{Name: f.Name, SQL: []byte(f.SQL)}
	}
	return db.ApplySchema(ctx, list)
}

type adminSQL struct{ *databases }

// statementLimit bounds an administrator's statement.
const statementLimit = time.Minute

func (s adminSQL) Statement(ctx context.Context, r server.SQLRequest) (server.SQLAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	db, err := s.asked(ctx, r.Tenant, r.Database)
	if err != nil {
		return server.SQLAnswer{}, err
	}
	columns, rows, affected, err := db.Statement(ctx, r.SQL)
	out := server.SQLAnswer{Columns: columns, Affected: affected}
	for _, row := range rows {
		text, err := json.Marshal(row)
		if err != nil {
			return server.SQLAnswer{}, err
		}
		out.Rows = append(out.Rows, text)
	}
	return out, err
}

type adminTokens struct{ *store.Store }

func (t adminTokens) List(ctx context.Context, tenant string) ([]server.TokenInfo, error) {
	tenants := []string{tenant}
	if tenant == "" { // every tenant's, after those for the whole platform
		all, err := t.Tenants(ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			tenants = append(tenants, one.Name)
		}
	}
	var out []server.TokenInfo
	for _, name := range tenants {
		list, err := t.Tokens(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			out = append(out, tokenInfo(one))
		}
	}
	return out, nil
}

func (t adminTokens) Create(ctx context.Context, n server.NewToken) (string, server.TokenInfo, error) {
	plain, made, err := t.CreateToken(ctx, store.NewToken{Tenant: n.Tenant, Name: n.Name, Roles: n.Roles, Scopes: n.Scopes, ExpiresAt: n.ExpiresAt})
	return plain, tokenInfo(made), err
}

func (t adminTokens) Revoke(ctx context.Context, tenant, id string) error {
	if tenant != "" { // a token of another tenant is not there
		list, err := t.Tokens(ctx, tenant)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(t store.Token) bool { return t.ID == id }) {
			return fault.New(fault.NotFound, "there is no token %q", id)
		}
	}
	return t.RevokeToken(ctx, id)
}

func tokenInfo(t store.Token) server.TokenInfo {
	return server.TokenInfo{Id: t.ID, Tenant: t.Tenant, Name: t.Name, Roles: t.Roles, Scopes: t.Scopes,
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt}
}

// Authenticate implements server.Tokens.
func (t adminTokens) Authenticate(ctx context.Context, plain string) (server.Identity, error) {
	found, err := t.Store.Authenticate(ctx, plain)
	if err != nil {
		return server.Identity{}, err
	}
	return server.Identity{Tenant: found.Tenant, Scopes: found.Scopes,
		Caller: tokenCaller(found)}, nil
}

type adminTenants struct {
	*store.Store
	databases *databases
}

func (t adminTenants) List(ctx context.Context) ([]server.TenantInfo, error) {
	list, err := t.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]server.TenantInfo, len(list))
	for i, one := range list {
		out[i] = server.TenantInfo{Name: one.Name, CreatedAt: one.CreatedAt}
	}
	return out, nil
}

func (t adminTenants) Create(ctx context.Context, name string) (server.TenantInfo, error) {
	made, err := t.CreateTenant(ctx, name)
	if err == nil { // its database, role and all, so that what is missing shows now and not in the first call
		_, err = t.databases.tenant(ctx, made.Name)
	}
	return server.TenantInfo{Name: made.Name, CreatedAt: made.CreatedAt}, err
}

func (t adminTenants) Settings(ctx context.Context, tenant string) (json.RawMessage, error) {
	found, err := t.Tenant(ctx, tenant)
	return found.Settings, err
}

func (t adminTenants) SetSettings(ctx context.Context, tenant string, settings json.RawMessage) error {
	return t.SetTenantSettings(ctx, tenant, settings)
}

type adminSecrets struct{ *store.Store }

func (s adminSecrets) Names(ctx context.Context, tenant string) ([]string, error) {
	return s.SecretNames(ctx, tenant)
}

func (s adminSecrets) Set(ctx context.Context, tenant, name, value string) error {
	return s.SetSecret(ctx, tenant, name, value)
}

func (s adminSecrets) Delete(ctx context.Context, tenant, name string) error {
	return s.DeleteSecret(ctx, tenant, name)
}

// tokenCaller is who a token is for.
func tokenCaller(t store.Token) engine.Caller {
	return engine.Caller{ID: t.ID, Account: t.Name, Name: t.Name, Roles: t.Roles}
}
