package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"apiengine/apis"
	"apiengine/engine"
)

// Invoker runs calls; *engine.Engine is one.
type Invoker interface {
	// Invoke runs c. The Result is never nil: its Execution tells id, token and waits
	// also when there is an error.
	Invoke(ctx context.Context, c engine.Call) (*engine.Result, error)
	// Describe returns the live definition that key (or path, when key is empty) means.
	Describe(tenant, key, path string) (apis.Definition, bool)
}

// Tokens knows the tokens that this server made.
type Tokens interface {
	// Authenticate returns who the token is for. An unknown, an expired and a revoked
	// token are one and the same unauthenticated error.
	Authenticate(ctx context.Context, plain string) (Identity, error)
}

// Check is one condition of readiness. Func must return when its ctx ends.
type Check struct {
	Name string
	Func func(ctx context.Context) error
}

// Admin holds the ports of the admin API. The routes of a nil port do not exist.
type Admin struct {
	Definitions Definitions
	Planner     Planner
	Schema      Schema
	SQL         SQL
	Tokens      TokenAdmin
	Tenants     Tenants
	Secrets     Secrets
	Outbox      Outbox
	Egress      Egress
	Databases   Databases
	Locks       Locks
	Audit       Audit
}

// Config sets up a Server. Engine is required; a zero field takes its default.
type Config struct {
	Engine Invoker
	Tokens Tokens     // nil: no token of this server is known
	JWT    *JWTConfig // nil: no JWT is accepted
	Admin  Admin
	// Outcomes tells what became of runs; nil: its route does not exist.
	Outcomes Outcomes
	// Tasks and Schedules: without them their routes do not exist.
	Tasks     Tasks
	Schedules Schedules
	Checks    []Check // of /readyz
	Log       *slog.Logger

	Addr           string         // of HTTPServer; default 127.0.0.1:8080
	MaxBody        int64          // bytes of a request body; default 10 MiB
	MaxHeader      int            // bytes of request line and headers; default 64 KiB
	MaxURI         int            // bytes of the request target; default 16 KiB
	BodyTimeout    time.Duration  // for a whole request to arrive at HTTPServer; default 60 s
	WriteTimeout   time.Duration  // for a whole answer to leave; default 60 s
	CheckTimeout   time.Duration  // of one readiness check; default 1 s
	MaxConnsPerIP  int            // open connections from one address that is no trusted proxy; default 1000, -1 no limit
	AuthFailures   int            // bad credentials in a row from one address before 429; default 20, refilled one a second
	TrustedProxies []netip.Prefix // whose X-Forwarded-For counts; default none
	Answers        AnswerPolicy   // what scripts may set on an answer
	Events         EventsConfig   // limits of streams
	Always200      bool           // refusals of the data plane are sent with status 200
}

// New returns a Server, or an error that names the first unusable field of cfg.
func New(cfg Config) (*Server, error) {
	cfg.fill()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s := &Server{cfg: cfg, failures: newBackoff(cfg.AuthFailures), conns: newConnLimit(cfg), drained: make(chan struct{})}
	if cfg.JWT != nil {
		v, err := newVerifier(*cfg.JWT, cfg.Log)
		if err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
		s.jwt = v
	}
	s.router = s.routes()
	return s, nil
}

func (c *Config) fill() {
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Addr = cmp.Or(c.Addr, "127.0.0.1:8080")
	c.MaxBody = cmp.Or(c.MaxBody, 10<<20)
	c.MaxHeader = cmp.Or(c.MaxHeader, 64<<10)
	c.MaxURI = cmp.Or(c.MaxURI, 16<<10)
	c.BodyTimeout = cmp.Or(c.BodyTimeout, time.Minute)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, time.Minute)
	c.CheckTimeout = cmp.Or(c.CheckTimeout, time.Second)
	c.MaxConnsPerIP = cmp.Or(c.MaxConnsPerIP, 1000)
	c.AuthFailures = cmp.Or(c.AuthFailures, 20)
	c.Events.fill()
}

func (c *Config) check() error {
	if c.Engine == nil {
		return errors.New("the field Config.Engine is missing")
	}
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"MaxBody", c.MaxBody}, {"MaxHeader", int64(c.MaxHeader)}, {"MaxURI", int64(c.MaxURI)},
		{"BodyTimeout", int64(c.BodyTimeout)}, {"WriteTimeout", int64(c.WriteTimeout)},
		{"CheckTimeout", int64(c.CheckTimeout)}, {"AuthFailures", int64(c.AuthFailures)},
	} {
		if f.n < 0 {
			return fmt.Errorf("the field Config.%s must not be negative", f.name)
		}
	}
	for i, p := range c.TrustedProxies {
		if !p.IsValid() {
			return fmt.Errorf("Config.TrustedProxies[%d] is no address range", i)
		}
	}
	seen := map[string]bool{}
	for i, ch := range c.Checks {
		if ch.Name == "" || ch.Func == nil || seen[ch.Name] {
			return fmt.Errorf("Config.Checks[%d] needs a name of its own and a function", i)
		}
		seen[ch.Name] = true
	}
	return errors.Join(c.Events.check(), c.Answers.check())
}
