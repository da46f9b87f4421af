package app

import (
	"context"
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

// databases opens each tenant's own database once and keeps it: an SQLite file in
// data-dir/tenants, or a schema of its own in PostgreSQL.
type databases struct {
	pool   *pgxpool.Pool // nil: SQLite
	shared bool          // tenants share the pool's role
	dir    string
	sync   string
	store  *store.Store

	mu   sync.Mutex
	open map[string]*tenantdb.DB
}

// Open implements engine.Databases.
func (d *databases) Open(ctx context.Context, tenant, name string) (engine.Database, error) {
	if name != "" {
		return nil, fault.New(fault.ScriptError, "V8.Dbs.%s: more databases are not in this version; V8.Db is the tenant's own", name)
	}
	db, err := d.tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return database{db}, nil
}

// tenant returns the tenant's database, opened at its first use.
func (d *databases) tenant(ctx context.Context, tenant string) (*tenantdb.DB, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if db := d.open[tenant]; db != nil {
		return db, nil
	}
	if _, err := d.store.Tenant(ctx, tenant); err != nil {
		return nil, err
	}
	db, err := d.connect(context.WithoutCancel(ctx), tenant)
	if err != nil {
		return nil, err
	}
	if d.open == nil {
		d.open = map[string]*tenantdb.DB{}
	}
	d.open[tenant] = db
	return db, nil
}

// tenantSchema begins the name of every tenant's schema in PostgreSQL. No statement of a
// script may name anything that begins with _apiengine_, so none reaches another tenant's.
const tenantSchema = "_apiengine_tenant_"

func (d *databases) connect(ctx context.Context, tenant string) (*tenantdb.DB, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if d.pool != nil {
		return tenantdb.OpenPostgres(ctx, tenantdb.PostgresConfig{Pool: d.pool, Schema: tenantSchema + tenant, Shared: d.shared})
	}
	return tenantdb.OpenSQLite(ctx, tenantdb.SQLiteConfig{Path: filepath.Join(d.dir, "tenants", tenant+".db"), Sync: d.sync})
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
