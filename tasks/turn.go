package tasks

import (
	"context"
	"time"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

// trouble is the pause after something of the platform has failed.
const trouble = 5 * time.Second

// turn looks at a task and runs its slices, until it is over, waits, or has had its turn; or it
// delivers a tenant's messages.
func (r *Runner) turn(ctx context.Context, tenant, id string) (again time.Duration) {
	if id == "" {
		return r.deliver(tenant)
	}
	db, err := r.cfg.Databases.Tenant(ctx, tenant)
	if err != nil {
		return r.failed(err, "tenant", tenant, "task", id)
	}
	t, err := db.Task(ctx, id)
	if err != nil {
		return r.failed(err, "tenant", tenant, "task", id)
	}
	for began := time.Now(); ; {
		if r.draining.Load() {
			return 0
		}
		switch wait := r.due(t).Sub(t.Now); {
		case !t.Open():
			r.next(ctx, db, tenant, t.Key)
			return never
		case wait > 0:
			return wait
		case r.unheard(tenant, t):
			return unheardPause
		case time.Since(began) > r.cfg.Turn:
			return 0
		}
		s := &slice{r: r, db: db, tenant: tenant, task: t}
		went, err := s.run(ctx)
		switch {
		case err != nil:
			return r.failed(err, "tenant", tenant, "task", id)
		case !went:
			return never
		}
		t = s.task
	}
}

// due is when a task may go on: one whose nodes die again and again waits as one that fails.
func (r *Runner) due(t tenantdb.Task) time.Time {
	if t.State != tenantdb.TaskRunning || t.Attempt < 2 {
		return t.NextAt
	}
	return t.SliceAt.Add(r.pause(t.Attempt - 1))
}

// A task may come to a node before the node has heard of its API, which another has just
// saved. For so long it is looked for again, at no attempt's cost.
const (
	unheardLimit = 10 * time.Second
	unheardPause = time.Second
)

func (r *Runner) unheard(tenant string, t tenantdb.Task) bool {
	if t.Now.Sub(t.CreatedAt) > unheardLimit {
		return false
	}
	_, found := r.cfg.Calls.Describe(tenant, t.API, "")
	return !found
}

// failed is the answer to a failure around a slice.
func (r *Runner) failed(err error, where ...any) time.Duration {
	switch fault.Of(err) {
	case fault.NotFound: // a task of a transaction that was rolled back, or a tenant that is gone
		return never
	case fault.Canceled, fault.Draining:
		return 0
	}
	r.cfg.Log.Warn("a task could not be looked at", append(where, "error", err)...)
	return trouble
}

// next rings for the task whose turn it is by its ConcurrencyKey; the watch does if this fails.
func (r *Runner) next(ctx context.Context, db *tenantdb.DB, tenant, key string) {
	if key == "" {
		return
	}
	t, found, err := db.NextOfKey(ctx, key)
	if err == nil && found {
		err = r.cfg.Queue.Ring(ctx, Bell{Tenant: tenant, Task: t.ID, Priority: t.Priority})
	}
	if err != nil {
		r.cfg.Log.Warn("the next task of a ConcurrencyKey has to wait for the watch", "tenant", tenant, "error", err)
	}
}
