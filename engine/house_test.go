package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"apiengine/apis"
	"apiengine/cache"
	"apiengine/engine"
	"apiengine/jsbridge"
	"apiengine/lockwrap"
	"apiengine/lockwrap/embedded"
)

// desk is an Engine with the real lock, script engine and cache of one process. Only its
// database is a recorder: it notes what the engine asks for, in order, and does what a
// test tells it at that point. What real databases do is tested in store/tenantdb and in
// engine_test.
type desk struct {
	*engine.Engine
	catalog *engine.Catalog
	cache   *cache.View
	mu      sync.Mutex
	events  []string
	on      map[string]func() error // runs at the event
	seen    []*engine.Execution
	kept    *engine.Answer // for every Idempotency-Key
	apart   bool           // lock and cache do not live together
}

func newDesk(t testing.TB, change ...func(*engine.Config)) *desk {
	t.Helper()
	backend, err := embedded.New(context.Background(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{on: map[string]func() error{}}
	locks, err := lockwrap.New(lockwrap.Config{Backend: noted{backend, d}, Prefix: "t", Instance: "i", VerifyAlways: strings.Contains(t.Name(), "always")})
	if err != nil {
		t.Fatal(err)
	}
	bridge, err := jsbridge.New(jsbridge.Config{})
	if err != nil {
		t.Fatal(err)
	}
	values, err := cache.NewEmbedded(cache.EmbeddedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
		bridge.Close()
		values.Close()
	})
	d.cache = values.For("t")
	d.catalog = apis.NewCatalog(func(def apis.Definition) (*jsbridge.Program, error) {
		return jsbridge.Compile(jsbridge.Source{Name: def.FileName(), Code: def.ApiV8Code, Language: def.Language, FirstLine: def.FirstLine})
	})
	cfg := engine.Config{Catalog: d.catalog, Locks: locks, Bridge: bridge, Databases: d, Caches: d, Settings: d,
		Observe: func(x *engine.Execution) { d.seen = append(d.seen, x) }}
	for _, c := range change {
		c(&cfg)
	}
	if d.Engine, err = engine.New(cfg); err != nil {
		t.Fatal(err)
	}
	return d
}

// add makes an API live.
func (d *desk) add(t testing.TB, def apis.Definition) {
	t.Helper()
	if err := d.catalog.Put("t", 1, def); err != nil {
		t.Fatal(err)
	}
}

// run calls an API as a signed-in caller does.
func (d *desk) run(ctx context.Context, key, param string) (*engine.Result, error) {
	return d.Invoke(ctx, engine.Call{Tenant: "t", Key: key, Method: "POST", Origin: engine.OriginHTTP,
		Param: json.RawMessage(param), Caller: engine.Caller{ID: "me"}})
}

// note records an event and does what the test wants at it.
func (d *desk) note(event string) error {
	d.mu.Lock()
	d.events = append(d.events, event)
	do := d.on[event]
	d.mu.Unlock()
	if do != nil {
		return do()
	}
	return nil
}

func (d *desk) history() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(slices.Compact(slices.Clone(d.events)), " ")
}

// noted is the embedded lock, whose requests are noted.
type noted struct {
	lockwrap.Backend
	d *desk
}

func (n noted) Acquire(ctx context.Context, c lockwrap.Claim) (lockwrap.Reply, error) {
	n.d.note("acquire")
	return n.Backend.Acquire(ctx, c)
}

func (n noted) Confirm(ctx context.Context, lock string, o lockwrap.Owner) (lockwrap.Reply, error) {
	if err := n.d.note("confirm"); err != nil {
		return lockwrap.Reply{}, nil // not held
	}
	return n.Backend.Confirm(ctx, lock, o)
}

func (n noted) Release(ctx context.Context, lock string, o lockwrap.Owner, next *lockwrap.Claim) (lockwrap.Reply, error) {
	n.d.note("release")
	return n.Backend.Release(ctx, lock, o, next)
}

func (n noted) ReleaseWith(ctx context.Context, h lockwrap.Handback, e lockwrap.Effects) (lockwrap.Reply, error) {
	if err := n.d.note("flush+release"); err != nil { // one write failed
		r, err := n.Backend.(lockwrap.Applier).ReleaseWith(ctx, h, func(bool) int { return 1 })
		return r, err
	}
	return n.Backend.(lockwrap.Applier).ReleaseWith(ctx, h, e)
}

func (d *desk) SysConfig(string) json.RawMessage                       { return json.RawMessage("{}") }
func (d *desk) Secret(context.Context, string, string) (string, error) { return "", nil }
func (d *desk) For(string) jsbridge.Cache                              { return d.cache }
func (d *desk) Stage(string) engine.Staged                             { return staged{cache.NewStaged(d.cache), d} }
func (d *desk) Open(_ context.Context, _, name string) (engine.Database, error) {
	return database{d, name}, nil
}

type staged struct {
	*cache.Staged
	d *desk
}

func (s staged) Flush(ctx context.Context, token int64) error {
	if err := s.d.note("flush"); err != nil {
		return err
	}
	return s.Staged.Flush(ctx, token)
}

func (s staged) Effects(token int64) lockwrap.Effects {
	if s.d.apart {
		return nil
	}
	return s.Staged.Effects(token)
}

func (s staged) Invalidate(ctx context.Context) error {
	s.d.note("invalidate")
	return s.Staged.Invalidate(ctx)
}

type database struct {
	d    *desk
	name string // of V8.Dbs
}

// note adds the name of a named database to an event.
func (b database) note(event string) error {
	return b.d.note(strings.TrimSuffix(event+":"+b.name, ":"))
}

func (b database) Serial() bool { return false }

func (b database) Begin(_ context.Context, g engine.Guard) (engine.Tx, error) {
	event := "begin"
	if g.Key != "" {
		event = "begin+guard"
	}
	if err := b.note(event); err != nil {
		return nil, err
	}
	return tx{b}, nil
}

func (b database) Claim(_ context.Context, c engine.Claim) (engine.Attempt, *engine.Answer, error) {
	return attempt{b.d}, b.d.kept, b.d.note("claim")
}

type attempt struct{ d *desk }

func (a attempt) Renews() time.Duration       { return 0 }
func (a attempt) Renew(context.Context) error { return nil }
func (a attempt) End(_ context.Context, kept bool) error {
	if kept {
		return a.d.note("kept")
	}
	return a.d.note("free")
}

type tx struct{ database }

func (t tx) Complete(context.Context, engine.Attempt, engine.Answer) error {
	return t.note("record")
}

func (t tx) Guard(context.Context, engine.Guard) error { return t.note("guard") }
func (t tx) Reader() engine.Queries                    { return t }
func (t tx) Exec(context.Context, string, map[string]any) (int64, error) {
	return 1, t.note("exec")
}
func (t tx) Query(context.Context, string, map[string]any) (json.RawMessage, int, error) {
	return json.RawMessage("[]"), 0, t.note("query")
}
func (t tx) Scalar(context.Context, string, map[string]any) (json.RawMessage, error) {
	return json.RawMessage("1"), t.note("scalar")
}
func (t tx) Form(context.Context, engine.Form) (jsbridge.FormResult, error) {
	return jsbridge.FormResult{}, t.note("form")
}
func (t tx) Send(context.Context, engine.Message) (bool, error) { return true, t.note("send") }
func (t tx) Once(context.Context, string) (bool, error)         { return true, t.note("once") }
func (t tx) Savepoint(context.Context) (string, error)          { return "s", t.note("savepoint") }
func (t tx) RollbackTo(context.Context, string) error           { return t.note("rollback-to") }
func (t tx) ReleaseSavepoint(context.Context, string) error     { return t.note("keep") }
func (t tx) Commit(context.Context) error                       { return t.note("commit") }
func (t tx) Rollback(context.Context) error                     { return t.note("rollback") }
