package tasks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"apiengine/fault"
	"apiengine/lockwrap"
	"apiengine/store/tenantdb"
)

// marked says of tenants, before their tasks are kept, that they have some: so a task whose
// node died before it could ring is found. A tenant is marked at most every markEvery.
type marked struct {
	marks Marks
	mu    *sync.Mutex
	at    map[string]time.Time
}

const (
	markEvery = 20 * time.Second
	// markAge is how old a mark must be before a tenant without tasks is forgotten: whoever
	// relies on it has long ended.
	markAge = 3 * markEvery
)

func newMarked(m Marks) marked {
	return marked{marks: m, mu: &sync.Mutex{}, at: map[string]time.Time{}}
}

func (m marked) mark(ctx context.Context, tenant string) error {
	m.mu.Lock()
	fresh := time.Since(m.at[tenant]) < markEvery
	m.mu.Unlock()
	if fresh {
		return nil
	}
	began := time.Now()
	if err := m.marks.Mark(ctx, tenant); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at[tenant] = began
	return nil
}

// watch looks, until ctx ends, for tasks that nobody rang for, and at those that run here.
func (r *Runner) watch(ctx context.Context) {
	look, report, forget := time.NewTicker(r.cfg.Look), time.NewTicker(r.cfg.Report), time.NewTicker(time.Hour)
	defer look.Stop()
	defer report.Stop()
	defer forget.Stop()
	r.lookAt(ctx, 0, 0) // what the last process left: on SQLite everything that was running
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if !r.draining.Load() {
				r.lookAt(ctx, r.cfg.Look*4/5, r.cfg.Look)
			}
		case <-report.C:
			r.lookHere(ctx)
		case <-forget.C:
			r.forgetShown(ctx)
		}
	}
}

// lookAt rings for tasks of all marked tenants that have been due for at least age.
func (r *Runner) lookAt(ctx context.Context, unseen, age time.Duration) {
	tenants, err := r.cfg.Marks.Marked(ctx, unseen)
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.Warn("the watch over tasks failed and tries again", "error", err)
	}
	for _, tenant := range tenants {
		if err := r.lookInto(ctx, tenant, age); err != nil && ctx.Err() == nil && fault.Of(err) != fault.NotFound {
			r.cfg.Log.Warn("the watch over a tenant's tasks failed and tries again", "tenant", tenant, "error", err)
		}
	}
}

// maxDue is how many tasks of a tenant one look rings for.
const maxDue = 200

func (r *Runner) lookInto(ctx context.Context, tenant string, age time.Duration) error {
	db, err := r.cfg.Databases.Tenant(ctx, tenant)
	if err != nil {
		return err
	}
	due, err := db.DueTasks(ctx, age, maxDue)
	if err != nil {
		return err
	}
	bells, pending, err := r.bellForPosts(ctx, tenant, age)
	if err != nil {
		return err
	}
	if len(due) == 0 && !pending {
		n, _, err := db.OpenTasks(ctx)
		if err == nil && n == 0 {
			err = r.cfg.Marks.Unmark(ctx, tenant, markAge)
		}
		return err
	}
	for _, t := range due {
		if b, wanted := r.bellFor(ctx, tenant, t); wanted {
			bells = append(bells, b)
		}
	}
	return r.cfg.Queue.Ring(ctx, bells...)
}

// bellFor rings for a task whose runner is gone, or which waits for a bell that may be lost:
// one in the queue already is not doubled more than twice a minute. A bell stays in the
// queue when the node dies that has taken it, so those of other processes do not count.
func (r *Runner) bellFor(ctx context.Context, tenant string, t tenantdb.Task) (Bell, bool) {
	b := Bell{Tenant: tenant, Task: t.ID, Priority: t.Priority, Once: fmt.Sprintf("due %d, found by %d", time.Now().Unix()/30, r.born)}
	if t.State != tenantdb.TaskRunning {
		return b, true
	}
	b.Once = fmt.Sprintf("left by %d, found by %d", t.Fence, r.born)
	_, err := r.cfg.Locks.Lock(ctx, lockOf(tenant, t.ID).String())
	_, free := err.(*lockwrap.NotHeldError)
	return b, free
}

// lookHere keeps what slices on this node have told, and ends those of canceled tasks. On
// SQLite, which one process has and where a slice may have the writer, log lines wait for the
// slice's end, and an end is told without the database.
func (r *Runner) lookHere(ctx context.Context) {
	for tenant, list := range r.live.all() {
		r.keepShown(ctx, tenant, list)
		db, err := r.cfg.Databases.Tenant(ctx, tenant)
		if err != nil || db.Dialect() == "sqlite" {
			continue
		}
		ids, byID := make([]string, 0, len(list)), map[string]*running{}
		for _, run := range list {
			ids, byID[run.id] = append(ids, run.id), run
			if err := db.LogTask(ctx, run.id, run.lines()); err != nil {
				r.cfg.Log.Debug("a task's log lines are lost", "tenant", tenant, "task", run.id, "error", err)
			}
		}
		ended, err := db.ToBeEnded(ctx, ids)
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn("it could not be seen which tasks are canceled", "tenant", tenant, "error", err)
		}
		for _, id := range ended {
			byID[id].stop(errCanceled)
		}
	}
}
