package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/fault"
	"apiengine/server"
	"apiengine/store"
)

// library keeps the catalog in step with the store: what is saved here is live at once,
// what another node saved is live within followEvery and the time of one query.
type library struct {
	store   *store.Store
	catalog *engine.Catalog
	log     *slog.Logger

	mu       sync.Mutex   // one change of the catalog at a time
	revision atomic.Int64 // of the newest change in the catalog
}

// followEvery is how often a node asks for changes; the contract promises one second.
const followEvery = 250 * time.Millisecond

// load fills the catalog with every tenant's definitions. One that no longer compiles is
// logged and left out; the others are live.
func (l *library) load(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.catchUp(ctx)
}

// catchUp applies all changes since the last one seen, tenant by tenant. l.mu is held.
func (l *library) catchUp(ctx context.Context) error {
	changed, err := l.store.ChangedSince(ctx, l.revision.Load())
	if err != nil {
		return err
	}
	tenants := map[string]*change{}
	for _, d := range changed {
		c := tenants[d.Tenant]
		if c == nil {
			c = &change{}
			tenants[d.Tenant] = c
		}
		if err := c.add(d); err != nil {
			l.unusable(d.Tenant, err)
		}
		l.revision.Store(max(l.revision.Load(), d.Revision))
	}
	for tenant, c := range tenants {
		for _, err := range l.catalog.Update(tenant, c.put, c.remove) {
			l.unusable(tenant, err)
		}
	}
	return nil
}

// change is what a tenant's table needs to be up to date.
type change struct {
	put    []apis.Versioned
	remove []string
}

func (c *change) add(d store.Definition) error {
	if d.Deleted {
		c.remove = append(c.remove, d.Key)
		return nil
	}
	def, err := apis.DecodeJSON(d.Body)
	if err != nil {
		return fmt.Errorf("%s version %d: %w", d.Key, d.Version, err)
	}
	c.put = append(c.put, apis.Versioned{Version: d.Version, Definition: def})
	return nil
}

func (l *library) unusable(tenant string, err error) {
	l.log.Error("a stored definition is unusable, what was live stays", "tenant", tenant, "error", err)
}

// follow applies the changes of other nodes until ctx ends. A store that is down changes
// nothing: what is live stays live.
func (l *library) follow(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	down := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := l.poll(ctx)
		if (err != nil) != down && ctx.Err() == nil {
			if down = err != nil; down {
				l.log.Error("definitions cannot be followed, the known ones stay live", "error", err)
			} else {
				l.log.Info("definitions are followed again")
			}
		}
	}
}

func (l *library) poll(ctx context.Context) error {
	revision, err := l.store.Revision(ctx)
	if err != nil || revision == l.revision.Load() {
		return err
	}
	return l.load(ctx)
}

// saving is one wish to save a definition.
type saving struct {
	tenant    string
	def       apis.Definition
	ifVersion *int
	by, note  string
}

// save checks, compiles, stores and publishes a definition. An error leaves the old one live.
func (l *library) save(ctx context.Context, s saving) (store.Definition, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	def, _, err := l.catalog.Check(s.tenant, s.def)
	if err != nil {
		return store.Definition{}, err
	}
	if _, err := l.store.Tenant(ctx, s.tenant); err != nil {
		return store.Definition{}, err
	}
	body, err := apis.EncodeJSON(def)
	if err != nil {
		return store.Definition{}, err
	}
	saved, err := l.store.SaveDefinition(ctx, store.Save{Tenant: s.tenant, Key: def.ApiEngineKey, Body: body,
		IfVersion: s.ifVersion, By: s.by, Note: s.note})
	if err != nil {
		return store.Definition{}, err
	}
	return saved, l.catchUp(ctx)
}

func (l *library) remove(ctx context.Context, tenant, key string, ifVersion *int, by string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.store.DeleteDefinition(ctx, tenant, key, ifVersion, by); err != nil {
		return err
	}
	return l.catchUp(ctx)
}

// rollback saves the text of an older version as a new one.
func (l *library) rollback(ctx context.Context, r server.RollbackRequest) (store.Definition, error) {
	old, err := l.store.DefinitionVersion(ctx, r.Tenant, r.Key, r.Version)
	if err != nil {
		return store.Definition{}, err
	}
	if old.Deleted {
		return store.Definition{}, fault.New(fault.BadRequest, "version %d of %s is its removal", r.Version, r.Key)
	}
	def, err := apis.DecodeJSON(old.Body)
	if err != nil {
		return store.Definition{}, err
	}
	return l.save(ctx, saving{tenant: r.Tenant, def: def, ifVersion: r.IfVersion, by: r.By, note: fmt.Sprintf("version %d again", r.Version)})
}

// Load compiles an older version for a test run.
func (l *library) Load(ctx context.Context, tenant, key string, version int) (*engine.API, error) {
	old, err := l.store.DefinitionVersion(ctx, tenant, key, version)
	if err != nil {
		return nil, err
	}
	def, err := apis.DecodeJSON(old.Body)
	if err != nil {
		return nil, err
	}
	return l.catalog.Build(version, def)
}

var _ engine.Versions = (*library)(nil)
