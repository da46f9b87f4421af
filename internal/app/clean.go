package app

import (
	"context"
	"errors"
	"maps"
	"time"

	"apiengine/budget"
)

const (
	// fenceAge is how long a lock must have been unused before its guard row goes: ten times
	// the longest hold, so that nobody can come back that late.
	fenceAge   = 10 * budget.MaxTaskTimeout
	cleanEvery = time.Hour
)

// keepClean removes old guard rows of every tenant whose database this node has opened,
// until ctx ends. A failure is logged, and the next round tries again.
func (d *databases) keepClean(ctx context.Context, log func(tenant string, removed int, err error)) error {
	tick := time.NewTicker(cleanEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			d.clean(ctx, fenceAge, log)
		}
	}
}

func (d *databases) clean(ctx context.Context, age time.Duration, log func(tenant string, removed int, err error)) {
	d.mu.Lock()
	open := maps.Clone(d.open)
	d.mu.Unlock()
	for tenant, db := range open {
		n, err := db.CleanFence(ctx, age)
		if n > 0 || err != nil && !errors.Is(err, context.Canceled) {
			log(tenant, n, err)
		}
	}
}

// cleaned logs what a round of cleaning did.
func (a *App) cleaned(tenant string, removed int, err error) {
	if err != nil {
		a.Log.Warn("old guard rows could not be removed", "tenant", tenant, "removed", removed, "error", err)
		return
	}
	a.Log.Info("removed old guard rows", "tenant", tenant, "rows", removed)
}
