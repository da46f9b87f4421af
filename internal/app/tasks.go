package app

import (
	"context"
	"database/sql"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/migrations"
	"apiengine/store"
	"apiengine/store/tenantdb"
	"apiengine/tasks"
)

// makeQueue makes the tables of the task queue beside the platform's own.
func (a *App) makeQueue(ctx context.Context, sqlite *sql.DB) error {
	if sqlite != nil {
		return tasks.Migrate(ctx, riversqlite.New(sqlite), tasks.RiverConfig{Log: a.Log})
	}
	return tasks.Migrate(ctx, riverpgxv5.New(a.pool), a.queueConfig())
}

func (a *App) queueConfig() tasks.RiverConfig {
	return tasks.RiverConfig{Schema: migrations.Schema, Log: a.Log}
}

func (a *App) queue() (tasks.Queue, error) {
	if db := a.Store.Queue(); db != nil {
		return tasks.NewRiver[*sql.Tx](riversqlite.New(db), tasks.RiverConfig{Log: a.Log})
	}
	return tasks.NewRiver[pgx.Tx](riverpgxv5.New(a.pool), a.queueConfig())
}

// openTasks makes what runs background tasks; Serve runs it.
func (a *App) openTasks(context.Context) error {
	queue, err := a.queue()
	if err != nil {
		return err
	}
	s := &a.Settings
	a.tasks, err = tasks.New(tasks.Config{
		Calls: a.Engine, Locks: a.locks, Databases: taskBoxes{a.databases}, Marks: a.Store, Progress: progress{a.Store}, Principals: principals{a.Store}, Queue: queue,
		Schedules: schedules{a}, Outbox: a.relay, Log: a.Log, Workers: s.TaskWorkers, MaxAttempts: s.TaskAttempts, Backoff: s.TaskBackoff, Keep: s.TaskKeep, Grace: s.Grace,
	})
	return err
}

// taskBoxes implements tasks.Databases.
type taskBoxes struct{ *databases }

func (t taskBoxes) Tenant(ctx context.Context, tenant string) (*tenantdb.DB, error) {
	return t.tenant(ctx, tenant)
}

// progress implements tasks.Progress.
type progress struct{ *store.Store }

func (p progress) KeepShown(ctx context.Context, tenant string, list []tasks.Shown) error {
	out := make([]store.Shown, len(list))
	for i, s := range list {
		out[i] = store.Shown(s)
	}
	return p.Store.KeepShown(ctx, tenant, out)
}

func (p progress) Shown(ctx context.Context, tenant string, ids []string) ([]tasks.Shown, error) {
	list, err := p.Store.Shown(ctx, tenant, ids)
	out := make([]tasks.Shown, len(list))
	for i, s := range list {
		out[i] = tasks.Shown(s)
	}
	return out, err
}

// principals implements tasks.Principals.
type principals struct{ store *store.Store }

// Reload looks a token up again. A caller of another issuer keeps the rights that its
// credential had when the task was ordered: nobody but the issuer could say more.
func (p principals) Reload(ctx context.Context, tenant string, c engine.Caller) (engine.Caller, error) {
	if c.Issuer != "" {
		return c, nil
	}
	t, err := p.store.Token(ctx, c.ID)
	switch {
	case fault.Of(err) == fault.NotFound, err == nil && (t.RevokedAt != nil || t.ExpiresAt != nil && !t.ExpiresAt.After(time.Now())):
		return c, fault.New(fault.Unauthenticated, "the token that ordered the task is no longer valid")
	case err != nil:
		return c, err
	case t.Tenant != "" && t.Tenant != tenant:
		return c, fault.New(fault.Forbidden, "the token that ordered the task is of another tenant")
	}
	return tokenCaller(t), nil
}

// schedules implements tasks.Schedules.
type schedules struct{ a *App }

func (s schedules) All() []tasks.Schedule {
	var list []tasks.Schedule
	s.a.library.catalog.Each(func(tenant string, e *engine.API) {
		if d := &e.Definition; d.Schedule != "" && d.Enabled() {
			list = append(list, tasks.Schedule{Tenant: tenant, API: d.ApiEngineKey, Cron: d.Schedule})
		}
	})
	slices.SortFunc(list, tasks.Schedule.Compare)
	return list
}

func (s schedules) State(ctx context.Context, tenant, api string) (tasks.ScheduleState, error) {
	st, err := s.a.Store.Schedule(ctx, tenant, api)
	return tasks.ScheduleState(st), err
}

func (s schedules) Save(ctx context.Context, from, to tasks.ScheduleState) (bool, error) {
	return s.a.Store.SaveSchedule(ctx, store.ScheduleState(from), store.ScheduleState(to))
}

// overrun fails when slices that do not end hold as many threads as there are cores.
func (a *App) overrun(context.Context) error {
	if n := a.tasks.Stuck(); n >= runtime.GOMAXPROCS(0) {
		return fault.New(fault.Overloaded, "%d slices of tasks do not end", n)
	}
	return nil
}

// Tasks is the node's runner of background tasks; Serve runs it.
func (a *App) Tasks() *tasks.Runner { return a.tasks }
