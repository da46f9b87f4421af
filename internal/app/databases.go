package app

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/store"
	"apiengine/store/tenantdb"
)

// databases opens each database of each tenant once and keeps it: an SQLite file in
// data-dir/tenants, or a schema of its own in PostgreSQL.
type databases struct {
	pool   *pgxpool.Pool // nil: SQLite
	shared bool          // tenants share the pool's role
	dir    string
	sync   string
	store  *store.Store
	names  databaseNames

	mu   sync.Mutex
	open map[place]*tenantdb.DB
}

// place is one database of one tenant: name "" is its own, V8.Db, else V8.Dbs.<name>.
type place struct{ tenant, name string }

// Open implements engine.Databases.
func (d *databases) Open(ctx context.Context, tenant, name string) (engine.Database, error) {
	db, err := d.find(ctx, place{tenant, name})
	if err != nil {
		return nil, err
	}
	return database{db}, nil
}

// find returns a database that there is; of a named one the error names the nearest.
func (d *databases) find(ctx context.Context, at place) (*tenantdb.DB, error) {
	if at.name != "" {
		if err := d.known(ctx, at); err != nil {
			return nil, err
		}
	}
	return d.get(ctx, at)
}

// tenant returns the tenant's own database, opened at its first use.
func (d *databases) tenant(ctx context.Context, tenant string) (*tenantdb.DB, error) {
	return d.get(ctx, place{tenant: tenant})
}

// get returns a database, opened at its first use, without asking whether a named one was
// removed.
func (d *databases) get(ctx context.Context, at place) (*tenantdb.DB, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if db := d.open[at]; db != nil {
		return db, nil
	}
	if _, err := d.store.Tenant(ctx, at.tenant); err != nil {
		return nil, err
	}
	db, err := d.connect(context.WithoutCancel(ctx), at)
	if err != nil {
		return nil, err
	}
	if d.open == nil {
		d.open = map[place]*tenantdb.DB{}
	}
	d.open[at] = db
	return db, nil
}

// tenantSchema begins the name of every tenant's schema in PostgreSQL. No statement of a
// script may name anything that begins with _apiengine_, so none reaches another tenant's.
const tenantSchema = "_apiengine_tenant_"

func (d *databases) connect(ctx context.Context, at place) (*tenantdb.DB, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if d.pool != nil {
		return tenantdb.OpenPostgres(ctx, tenantdb.PostgresConfig{Pool: d.pool, Schema: at.schema(), Shared: d.shared})
	}
	path := at.file(d.dir)
	if at.name != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fault.Wrap(fault.StoreUnavailable, err, "the folder of the database %s cannot be made", at.name)
		}
	}
	return tenantdb.OpenSQLite(ctx, tenantdb.SQLiteConfig{Path: path, Sync: d.sync})
}

func (d *databases) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, db := range d.open {
		db.Close()
	}
	d.open = nil
}

// database turns a tenantdb.DB into the engine's port.
type database struct{ db *tenantdb.DB }

func (d database) Begin(ctx context.Context, g engine.Guard) (engine.Tx, error) {
	tx, err := d.db.Begin(ctx, tenantdb.Guard(g))
	if err != nil {
		return nil, err
	}
	return transaction{tx}, nil
}

func (d database) Claim(ctx context.Context, c engine.Claim) (engine.Attempt, *engine.Answer, error) {
	a, kept, err := d.db.Claim(ctx, tenantdb.Claim{ID: c.ID, Fingerprint: c.Fingerprint, Execution: c.Execution, Lease: c.Lease, Keep: c.Keep})
	if err != nil || kept != nil {
		return nil, (*engine.Answer)(kept), err
	}
	return a, nil, nil
}

func (d database) Serial() bool { return d.db.Dialect() == "sqlite" }

// transaction turns a tenantdb.Tx into the engine's port.
type transaction struct{ *tenantdb.Tx }

func (t transaction) Guard(ctx context.Context, g engine.Guard) error {
	return t.Tx.Guard(ctx, tenantdb.Guard(g))
}

func (t transaction) Reader() engine.Queries { return t.Tx.Reader() }

func (t transaction) Complete(ctx context.Context, a engine.Attempt, ans engine.Answer) error {
	mine, ok := a.(*tenantdb.Attempt)
	if !ok {
		return fault.New(fault.Internal, "an attempt of another database")
	}
	return t.Tx.Complete(ctx, mine, tenantdb.Answer(ans))
}

func (t transaction) Form(ctx context.Context, f engine.Form) (jsbridge.FormResult, error) {
	r, err := t.Tx.Form(ctx, tenantdb.FormCall{Op: f.Op, Table: f.Table, Options: f.Options, Token: f.Token,
		Who: tenantdb.Who{UserID: f.UserID, UserName: f.UserName, Tenant: f.Tenant}})
	return jsbridge.FormResult(r), err
}
