package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"apiengine/apis"
	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/lockwrap"
)

// API is one entry of the catalog.
type API = apis.Entry[*jsbridge.Program]

// Catalog holds the live APIs.
type Catalog = apis.Catalog[*jsbridge.Program]

// Config sets up an Engine. The fields up to Settings are required; a zero field of the
// rest takes its default.
type Config struct {
	Catalog   *Catalog
	Locks     *lockwrap.Manager
	Bridge    *jsbridge.Bridge
	Databases Databases
	Caches    Caches
	Settings  Settings

	Versions       Versions                       // nil: test runs of older versions are refused
	Posts          Posts                          // nil: V8.Outbox.Send is refused
	Tasks          Tasks                          // nil: V8.Task.Submit is refused
	HTTP           HTTP                           // nil: V8.Http is refused
	Log            *slog.Logger                   // one line a call; default discards
	Observe        func(*Execution)               // called once a call; default nothing
	Unknown        func(context.Context, Unknown) // called for each outcome_unknown; default nothing
	KeepAnswers    time.Duration                  // for an Idempotency-Key; default 24 h
	ClaimLease     time.Duration                  // how long a key waits for a node that died; default the database's, 15 s
	MaxKept        int                            // bytes of an answer that is kept; default 1 MiB
	MaxCalls       int                            // calls in flight on this node, waiting ones included; default 10000
	MaxTenantCalls int                            // of one tenant; default half of MaxCalls
	MaxDepth       int                            // nested calls below a root; default 32
	MaxHTTP        int                            // requests of V8.Http of one root with its nested calls; default 20
	MaxNested      int                            // nested calls of one root; default 1000
}

// Engine runs calls. It is safe for concurrent use.
type Engine struct {
	cfg   Config
	gate  gate
	rates *rates
}

// New returns an Engine, or an error that names the first unusable field of cfg.
func New(cfg Config) (*Engine, error) {
	required := []struct {
		name    string
		missing bool
	}{
		{"Catalog", cfg.Catalog == nil}, {"Locks", cfg.Locks == nil}, {"Bridge", cfg.Bridge == nil},
		{"Databases", cfg.Databases == nil}, {"Caches", cfg.Caches == nil}, {"Settings", cfg.Settings == nil},
	}
	for _, r := range required {
		if r.missing {
			return nil, errors.New("engine: Config." + r.name + " is missing")
		}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.MaxCalls = orDefault(cfg.MaxCalls, 10000)
	cfg.MaxTenantCalls = orDefault(cfg.MaxTenantCalls, (cfg.MaxCalls+1)/2)
	cfg.MaxKept = orDefault(cfg.MaxKept, 1<<20)
	cfg.KeepAnswers = cmp.Or(cfg.KeepAnswers, 24*time.Hour)
	cfg.MaxDepth = orDefault(cfg.MaxDepth, 32)
	cfg.MaxNested = orDefault(cfg.MaxNested, 1000)
	cfg.MaxHTTP = orDefault(cfg.MaxHTTP, 20)
	return &Engine{cfg: cfg, rates: newRates(), gate: gate{max: int64(cfg.MaxCalls), maxTenant: int64(cfg.MaxTenantCalls)}}, nil
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// Invoke runs one call to its end. The Result is never nil: its Execution holds what is
// known of the call also when err is not nil. Every error has a fault.Kind.
func (e *Engine) Invoke(ctx context.Context, c Call) (res *Result, err error) {
	x := newExecution(c)
	res = &Result{Execution: x}
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
		err = x.hide(err)
		e.finish(x, err)
	}()
	api, values, err := e.find(ctx, c)
	if err != nil {
		return res, err
	}
	d := &api.Definition
	x.API, x.Version, x.CorsOrigins = d.ApiEngineKey, api.Version, d.Cors
	res.ResponseType = d.ResponseType
	if c.Param, err = cleanParam(c.Param, values, c.Origin); err != nil {
		return res, err
	}
	if c.trust != nil {
		c.Param = Overlay(c.trust.Param, c.Param, nil)
	}
	if err := e.admit(c, d); err != nil {
		return res, err
	}
	if c.place, err = e.gate.enter(c.Tenant); err != nil {
		return res, err
	}
	defer c.place.leave()
	return res, e.root(ctx, c, api, res)
}

// panicked is the error for a panic that was recovered: a defect of the platform.
func panicked(p any) error {
	return fault.Wrap(fault.Internal, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), "an internal error")
}

// Describe returns the live definition that a request means, without running it.
func (e *Engine) Describe(tenant, key, path string) (apis.Definition, bool) {
	api, _, ok := e.match(tenant, key, path)
	if !ok {
		return apis.Definition{}, false
	}
	return api.Definition, true
}

func newExecution(c Call) *Execution {
	return &Execution{ID: newID(), RequestID: c.RequestID, Tenant: c.Tenant, API: c.Key, Origin: c.Origin,
		CallerID: c.Caller.ID, Started: time.Now()}
}
