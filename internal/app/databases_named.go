package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/nearest"
	"apiengine/server"
	"apiengine/store"
	"apiengine/store/tenantdb"
)

// namedSchema begins the name of the schema of every named database in PostgreSQL.
const namedSchema = "_apiengine_named_"

// schema is where a database is in PostgreSQL. A tenant's name and a database's are together
// too long for an identifier, so a named one has a hash of them.
func (at place) schema() string {
	if at.name == "" {
		return tenantSchema + at.tenant
	}
	sum := sha256.Sum256([]byte(at.tenant + "/" + at.name)) // neither can hold a slash
	return namedSchema + hex.EncodeToString(sum[:16])
}

// file is where a database is under the data folder.
func (at place) file(dir string) string {
	if at.name == "" {
		return filepath.Join(dir, "tenants", at.tenant+".db")
	}
	return filepath.Join(dir, "tenants", at.tenant, at.name+".db")
}

// databaseNames remembers which named databases there are. One that is added is there at
// once, one that another node has removed is gone within namesFor.
type databaseNames struct {
	mu    sync.Mutex
	known map[string]knownNames // by tenant
}

type knownNames struct {
	names []string
	at    time.Time
}

const namesFor = time.Second

// known refuses a database that the tenant does not have.
func (d *databases) known(ctx context.Context, at place) error {
	k := d.names.of(at.tenant)
	if slices.Contains(k.names, at.name) && time.Since(k.at) < namesFor {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, namesFor)
	defer cancel()
	list, err := d.store.Databases(asking, at.tenant)
	switch {
	case err != nil && ctx.Err() == nil && slices.Contains(k.names, at.name):
		return nil // while the store does not answer the last known ones hold
	case err != nil && ctx.Err() == nil && asking.Err() != nil:
		return fault.Wrap(fault.StoreUnavailable, err, "the platform's database does not answer")
	case err != nil:
		return err
	}
	names := make([]string, len(list))
	for i, one := range list {
		names[i] = one.Name
	}
	d.names.keep(at.tenant, names)
	if slices.Contains(names, at.name) {
		return nil
	}
	meant := ""
	if near := nearest.Name(at.name, names); near != "" {
		meant = "; did you mean " + near + "?"
	}
	return fault.New(fault.ScriptError, "V8.Dbs.%.60s: the tenant has no such database%s", at.name, meant)
}

func (n *databaseNames) of(tenant string) knownNames {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[tenant]
}

func (n *databaseNames) keep(tenant string, names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]knownNames{}
	}
	n.known[tenant] = knownNames{names, time.Now()}
}

func (n *databaseNames) forget(tenant string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, tenant)
}

// asked is find for an administrator, to whom a name that is not there is not_found.
func (d *databases) asked(ctx context.Context, tenant, name string) (*tenantdb.DB, error) {
	at := place{strings.ToLower(tenant), strings.ToLower(name)}
	db, err := d.find(ctx, at)
	if at.name != "" && fault.Of(err) == fault.ScriptError {
		err = fault.Wrap(fault.NotFound, err, "%s; apiengine tenant database add makes one", fault.Public(err))
	}
	return db, err
}

// adminDatabases makes, lists and removes named databases.
type adminDatabases struct{ *databases }

func (a adminDatabases) List(ctx context.Context, tenant string) ([]server.DatabaseInfo, error) {
	list, err := a.store.Databases(ctx, tenant)
	out := make([]server.DatabaseInfo, len(list))
	for i, one := range list {
		out[i] = a.info(tenant, one)
	}
	return out, err
}

func (a adminDatabases) Add(ctx context.Context, r server.DatabaseRequest) (server.DatabaseInfo, error) {
	if !jsbridge.NamesDatabase(r.Name) {
		e := fault.New(fault.BadRequest, "database %.60q: the language itself asks every object for this name, so that V8.Dbs cannot have it", r.Name)
		e.Fields = map[string]any{"Field": "Name"}
		return server.DatabaseInfo{}, e
	}
	made, err := a.store.AddDatabase(ctx, store.DatabaseChange{Tenant: r.Tenant, Name: r.Name, Actor: r.By})
	if err != nil {
		return server.DatabaseInfo{}, err
	}
	a.names.forget(strings.ToLower(r.Tenant))
	// Schema, role and all, so that what is missing shows now and not in the first call.
	_, err = a.get(ctx, place{strings.ToLower(r.Tenant), made.Name})
	return a.info(r.Tenant, made), err
}

func (a adminDatabases) Remove(ctx context.Context, r server.DatabaseRequest) error {
	err := a.store.RemoveDatabase(ctx, store.DatabaseChange{Tenant: r.Tenant, Name: r.Name, Actor: r.By})
	a.names.forget(strings.ToLower(r.Tenant))
	return err
}

// info tells an operator where a database is, to back it up or to delete it once removed.
func (a adminDatabases) info(tenant string, d store.Database) server.DatabaseInfo {
	at := place{strings.ToLower(tenant), d.Name}
	out := server.DatabaseInfo{Name: d.Name, CreatedAt: d.CreatedAt, Where: at.file("")}
	if a.pool != nil {
		out.Where = "schema " + at.schema()
	}
	return out
}
