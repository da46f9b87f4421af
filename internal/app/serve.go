package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"apiengine/examples"
	"apiengine/fault"
	"apiengine/server"
)

type serveCmd struct {
	Settings `embed:""`
}

// Run implements the command.
func (c *serveCmd) Run(ctx context.Context, io streams) error {
	tuneGC(c.Settings.memoryBudget())
	a, err := Open(ctx, c.Settings, NewLog(c.Settings, io.err))
	if err != nil {
		return err
	}
	err = a.Serve(ctx, io.out)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	return errors.Join(err, a.Close(closing))
}

// Handler is what the server answers with.
func (a *App) Handler() http.Handler { return a.server.Handler() }

func (a *App) openServer(context.Context) (err error) {
	s := &a.Settings
	cfg := server.Config{
		Engine: a.Engine, Tokens: adminTokens{a.Store}, Log: a.Log, Addr: s.Addr, MaxBody: s.MaxBody,
		Admin: server.Admin{Definitions: adminDefinitions{a.library}, Planner: planner{a.Engine}, Schema: adminSchema{a.databases},
			SQL: adminSQL{a.databases}, Tokens: adminTokens{a.Store}, Tenants: adminTenants{a.Store, a.databases}, Secrets: adminSecrets{a.Store}, Outbox: adminOutbox{a}, Egress: adminEgress{a}, Databases: adminDatabases{a.databases},
			Locks: adminLocks{a.locks, a.Store}, Audit: adminAudit{a.Store}},
		Outcomes:  a.outcomes,
		Tasks:     taskAPI{a.tasks},
		Schedules: scheduleAPI{a.tasks},
		Checks:    a.checks(),
		Answers:   server.AnswerPolicy{RedirectHosts: s.RedirectHosts},
		Always200: s.StatusMode == "always200",
	}
	for _, n := range s.TrustedProxies {
		cfg.TrustedProxies = append(cfg.TrustedProxies, netip.MustParsePrefix(n)) // Settings.Check has parsed it
	}
	if s.JWTIssuer != "" {
		cfg.JWT = &server.JWTConfig{Issuer: s.JWTIssuer, Audience: s.JWTAudience, JWKSURL: s.JWTKeys, TenantClaim: s.JWTTenantClaim}
	}
	if a.server, err = server.New(cfg); err != nil {
		return err
	}
	a.onClose(func(context.Context) error { a.server.Close(); return nil })
	return nil
}

// checks are the conditions of readiness.
func (a *App) checks() []server.Check {
	return []server.Check{
		{Name: "store", Func: a.Store.Ping},
		{Name: "lock", Func: a.locks.Ready},
		{Name: "migrations", Func: func(ctx context.Context) error {
			_, pending, err := a.Store.Migrations(ctx)
			if err == nil && len(pending) > 0 {
				err = fmt.Errorf("%d migrations are pending", len(pending))
			}
			return err
		}},
		{Name: "scripts", Func: a.stuck},
		{Name: "tasks", Func: a.overrun},
	}
}

// Serve listens and answers until ctx ends, then lets the running calls finish within the
// grace. It writes the address, and at the first start the admin token, to out.
func (a *App) Serve(ctx context.Context, out io.Writer) error {
	l, err := net.Listen("tcp", a.Settings.Addr)
	if err != nil {
		return &SettingError{"addr", "cannot be listened on: " + err.Error()}
	}
	a.listensAt(l.Addr())
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, background := errgroup.WithContext(background)
	group.Go(func() error { return a.library.follow(background) })
	group.Go(func() error {
		return a.databases.keepClean(background, ages{fenceAge, a.Settings.TaskKeep}, a.relay.Sweep, a.cleaned)
	})
	group.Go(func() error { return a.outcomes.follow(background) })
	if err := a.loadFolders(background, group); err != nil {
		stop()
		return errors.Join(err, group.Wait(), l.Close())
	}
	group.Go(func() error { return until(ctx, background, a.tasks.Run) })
	h, calls := a.server.HTTPServer(), newRunning()
	h.Handler = calls.count(h.Handler)
	group.Go(func() error {
		if err := h.Serve(a.server.Listener(l)); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	a.greet(out, l.Addr().String(), a.newToken)
	select {
	case <-ctx.Done():
	case <-background.Done(): // a part failed
	}
	a.Log.Info("shutting down", "grace", a.Settings.Grace.String())
	err = a.drain(ctx, h, calls)
	stop()
	return errors.Join(group.Wait(), err)
}

// loadFolders loads the examples and the folder of definitions, which it goes on watching.
func (a *App) loadFolders(ctx context.Context, group *errgroup.Group) error {
	if a.Settings.Examples {
		f := &folder{app: a, fsys: examples.FS, tenant: "default", by: "examples"}
		a.complain("examples", f.load(ctx))
	}
	dir := a.Settings.ApisDir
	if dir == "" {
		return nil
	}
	if _, err := a.Store.Tenant(ctx, a.Settings.ApisTo); err != nil {
		if fault.Of(err) == fault.NotFound {
			return &SettingError{"apis-tenant", "names no tenant: " + fault.Public(err)}
		}
		return err
	}
	w, err := openWatch(dir)
	if err != nil {
		return &SettingError{"apis-dir", err.Error()}
	}
	f := &folder{app: a, fsys: os.DirFS(dir), tenant: a.Settings.ApisTo, by: "apis-dir"}
	a.complain(dir, f.load(ctx)) // what changes meanwhile waits in w
	group.Go(func() error { return a.follow(ctx, w, f) })
	return nil
}

// greet tells a newcomer where to go.
func (a *App) greet(out io.Writer, addr, token string) {
	fmt.Fprintf(out, "apiengine %s answers at http://%s\n", Version(), addr)
	if token != "" {
		fmt.Fprintf(out, "admin token, shown once, kept in %s:\n  %s\n", filepath.Join(a.Settings.DataDir, adminTokenFile), token)
	}
	if !a.Settings.Examples {
		return
	}
	shown := token
	if shown == "" {
		shown = "$(cat " + filepath.Join(a.Settings.DataDir, adminTokenFile) + ")"
	}
	fmt.Fprintf(out, `try:
  curl http://%[1]s/hello/Ada
  curl 'http://%[1]s/apiengine/product_detail?ProductId=P1'
  curl -H "Authorization: Bearer %[2]s" -H 'Content-Type: application/json' -d '{"OrderId":"O1"}' http://%[1]s/apiengine/order_pay
`, addr, shown)
}
