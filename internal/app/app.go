// Package app wires the parts together: it reads the settings, opens what they name, and
// runs the server. It is the only reader of the environment and the only package that
// knows all others.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"apiengine/egress"
	"apiengine/engine"
	"apiengine/jsbridge"
	"apiengine/lockwrap"
	"apiengine/outbox"
	"apiengine/server"
	"apiengine/store"
	"apiengine/tasks"
)

// App is everything that one node runs.
type App struct {
	Settings  Settings
	Log       *slog.Logger
	Store     *store.Store
	Engine    *engine.Engine
	library   *library
	databases *databases
	bridge    *jsbridge.Bridge
	locks     *lockwrap.Manager
	outcomes  *outcomes
	pool      *pgxpool.Pool
	server    *server.Server
	outside   *egress.Client
	reach     *reach
	relay     *outbox.Relay
	tasks     *tasks.Runner
	listening atomic.Pointer[netip.AddrPort] // where Serve listens
	newToken  string                         // the admin token that this start made, to be shown once

	closers []func(context.Context) error // in the order of opening
}

// Open starts every part that the settings name; the caller closes the App. An error says
// which part could not be had, and leaves nothing open.
func Open(ctx context.Context, s Settings, log *slog.Logger) (a *App, err error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	a = &App{Settings: s, Log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close(context.WithoutCancel(ctx)))
			a = nil
		}
	}()
	for _, step := range []func(context.Context) error{
		a.openDataDir, a.openStore, a.openDatabases, a.openScripts, a.openLocks, a.openOutside, a.openEngine, a.openRelay, a.openTasks, a.openServer, a.openAdmin,
	} {
		if err := step(ctx); err != nil {
			return a, err
		}
	}
	return a, nil
}

// Close stops the parts in the reverse order of their opening.
func (a *App) Close(ctx context.Context) error {
	var errs []error
	for _, c := range slices.Backward(a.closers) {
		errs = append(errs, c(ctx))
	}
	a.closers = nil
	return errors.Join(errs...)
}

func (a *App) onClose(f func(context.Context) error) { a.closers = append(a.closers, f) }

// openDataDir makes the data folder and, where anything embedded lives in it, keeps every
// other process out of it.
func (a *App) openDataDir(context.Context) error {
	s := &a.Settings
	if err := os.MkdirAll(filepath.Join(s.DataDir, "tenants"), 0o700); err != nil {
		return &SettingError{"data-dir", "cannot be made: " + err.Error()}
	}
	if s.DatabaseURL != "" && s.lockKind() != "embedded" {
		return nil
	}
	return a.lockDataDir()
}

func (a *App) openStore(ctx context.Context) error {
	s := &a.Settings
	key, err := a.secretKey()
	if err != nil {
		return err
	}
	cfg := store.Config{SQLitePath: filepath.Join(s.DataDir, "apiengine.db"), Sync: s.SqliteSync, SecretKey: key,
		Beside: a.makeQueue}
	if s.DatabaseURL != "" {
		if a.pool, err = openPool(ctx, s.DatabaseURL); err != nil {
			return err
		}
		a.onClose(func(context.Context) error { a.pool.Close(); return nil })
		cfg.SQLitePath, cfg.Pool = "", a.pool
	}
	if a.Store, err = store.Open(ctx, cfg); err != nil {
		return fmt.Errorf("%s: %w", databaseName(s), err)
	}
	a.onClose(func(context.Context) error { return a.Store.Close() })
	return nil
}

// databaseName is where an operator sets the platform's database.
func databaseName(s *Settings) string {
	if s.DatabaseURL != "" {
		return "--database-url"
	}
	return "the database in --data-dir"
}

func (a *App) openDatabases(context.Context) error {
	a.databases = &databases{pool: a.pool, dir: a.Settings.DataDir, sync: a.Settings.SqliteSync, store: a.Store,
		shared: a.Settings.TenantRoles == "off"}
	a.onClose(func(context.Context) error { a.databases.close(); return nil })
	return nil
}

func (a *App) openScripts(context.Context) (err error) {
	all, run := a.Settings.scriptMemory()
	stuck := func(env *jsbridge.Env) {
		a.Log.Error("a script does not stop", "api", env.APIKey, "tenant", env.Tenant, "stuck", a.bridge.Stuck())
	}
	debug.SetMaxStack(int(max(1<<30, 4*run))) // a lookup through prototypes takes as much stack as they take heap
	if a.bridge, err = jsbridge.New(jsbridge.Config{Memory: all, RunMemory: run, OnStuck: stuck}); err != nil {
		return err
	}
	a.onClose(func(context.Context) error { a.bridge.Close(); return nil })
	return nil
}

func (a *App) openEngine(ctx context.Context) error {
	caches, err := a.openCache()
	if err != nil {
		return err
	}
	catalog := newCatalog()
	a.library = &library{store: a.Store, catalog: catalog, log: a.Log}
	a.outcomes = &outcomes{store: a.Store, databases: a.databases, log: a.Log, memory: a.Settings.KeepAnswers}
	a.Engine, err = engine.New(engine.Config{
		Catalog: catalog, Locks: a.locks, Bridge: a.bridge, Databases: a.databases, Caches: caches,
		Settings: &tenantSettings{store: a.Store}, Versions: a.library, Log: a.Log,
		Posts: posts{a}, Tasks: tasks.Scripts{Runner: func() *tasks.Runner { return a.tasks }}, HTTP: scriptHTTP{a}, MaxHTTP: a.Settings.HTTPMaxCalls,
		MaxCalls: a.Settings.MaxCalls, MaxTenantCalls: a.Settings.MaxTenantCalls,
		Unknown: a.outcomes.keep, Observe: a.outcomes.recent.observe, KeepAnswers: a.Settings.KeepAnswers, ClaimLease: a.Settings.ClaimLease,
	})
	if err != nil {
		return err
	}
	return a.library.load(ctx)
}

// closeLimit bounds the stopping of the parts.
const closeLimit = 20 * time.Second

// stuck fails when scripts that ignore their interrupt hold as many threads as there are cores.
func (a *App) stuck(context.Context) error {
	if n := a.bridge.Stuck(); n >= runtime.GOMAXPROCS(0) {
		return fmt.Errorf("%d scripts do not stop", n)
	}
	return nil
}

// LoadFolder brings a folder's schema and definitions into a tenant. Unlike a watched
// folder's, a broken file is an error.
func (a *App) LoadFolder(ctx context.Context, tenant string, fsys fs.FS) error {
	f := &folder{app: a, fsys: fsys, tenant: tenant, by: "folder"}
	return f.load(ctx)
}

// poolSize is the most connections of one node where the address does not say
// pool_max_conns. A run keeps one while a nested call of it waits for a lock, whose holder
// may need another: the driver's own default, 4 on a small machine, stands still then.
const poolSize = 32

func openPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, &SettingError{"database-url", "cannot be read as a PostgreSQL address"} // err repeats the password
	}
	cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = poolSize
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

// NewLog makes the log that the settings ask for.
func NewLog(s Settings, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		level = slog.LevelInfo // kong admits only the four names
	}
	opt := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "text" {
		return slog.New(slog.NewTextHandler(w, opt))
	}
	return slog.New(slog.NewJSONHandler(w, opt))
}
