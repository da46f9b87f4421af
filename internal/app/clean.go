package app

import (
	"context"
	"errors"
	"maps"
	"time"

	"apiengine/budget"
	"apiengine/store/tenantdb"
)

const (
	// fenceAge is how long a lock must have been unused before its guard row goes: ten times
	// the longest hold, so that nobody can come back that late.
	fenceAge   = 10 * budget.MaxTaskTimeout
	cleanEvery = time.Hour
)

// ages are how long things are kept.
type ages struct {
	guards time.Duration // of locks that nobody has used
	tasks  time.Duration // that are over
}

// sweeper removes what a tenant's outbox and inbox need no more.
type sweeper func(ctx context.Context, tenant string) error

// cleaned hears what a round has removed of one kind, and what went wrong.
type cleaned func(tenant, what string, removed int64, err error)

// keepClean removes what has had its time from every tenant's database that this node has
// opened, until ctx ends. A failure is logged, and the next round tries again.
func (d *databases) keepClean(ctx context.Context, age ages, sweep sweeper, log cleaned) error {
	tick := time.NewTicker(cleanEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			d.clean(ctx, age, sweep, log)
		}
	}
}

func (d *databases) clean(ctx context.Context, age ages, sweep sweeper, log cleaned) {
	d.mu.Lock()
	open := maps.Clone(d.open)
	d.mu.Unlock()
	for at, db := range open {
		tenant := at.tenant
		guards, err := db.CleanFence(ctx, age.guards)
		log.hear(tenant, "guard rows", int64(guards), err)
		if at.name != "" {
			continue // answers, tasks and messages are in the tenant's own
		}
		answers, err := db.ForgetAnswers(ctx)
		log.hear(tenant, "kept answers", answers, err)
		tasks, err := forgetTasks(ctx, db, age.tasks)
		log.hear(tenant, "tasks", tasks, err)
		log.hear(tenant, "messages", 0, sweep(ctx, tenant))
	}
}

// forgetTasks removes all tasks that ended longer ago than keep, some at a time.
func forgetTasks(ctx context.Context, db *tenantdb.DB, keep time.Duration) (removed int64, err error) {
	for more := true; more && err == nil; {
		var n int64
		n, more, err = db.ForgetTasks(ctx, keep)
		removed += n
	}
	return removed, err
}

func (c cleaned) hear(tenant, what string, removed int64, err error) {
	if removed > 0 || err != nil && !errors.Is(err, context.Canceled) {
		c(tenant, what, removed, err)
	}
}

// cleaned logs what a round of cleaning did.
func (a *App) cleaned(tenant, what string, removed int64, err error) {
	if err != nil {
		a.Log.Warn("old rows could not be removed", "tenant", tenant, "what", what, "removed", removed, "error", err)
		return
	}
	a.Log.Info("removed old rows", "tenant", tenant, "what", what, "rows", removed)
}
