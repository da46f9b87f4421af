package tasks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The delivery of outboxes. A bell without a task says that a tenant has messages; whoever
// hears it delivers until none is due, and rings for the next one's time.

// posts says for which tenants this node has rung and nobody here has come yet.
type posts struct {
	mu   sync.Mutex
	rung map[string]*rung
}

type rung struct {
	at    time.Time
	again *time.Timer // nil: nothing was posted since
}

// rungFor is how long a bell keeps this node from ringing again, unless it was heard here.
const rungFor = 100 * time.Millisecond

// Expect must be called before a message or a task is kept in a transaction of the tenant, so
// that it is found although the node dies before it can ring. It seldom asks the database.
func (r *Runner) Expect(ctx context.Context, tenant string) error { return r.marked.mark(ctx, tenant) }

// Posted says that a commit has left messages behind. It does not wait.
func (r *Runner) Posted(tenant string) {
	if !r.posts.ring(tenant, r.Posted) {
		return
	}
	select {
	case r.ordered <- Bell{Tenant: tenant}:
	default: // so many that the watch has to ring
	}
}

// ring reports whether to ring for a tenant now. If not, a bell is on its way; since another
// node may have heard it just before the commit, again is called a little later.
func (p *posts) ring(tenant string, again func(tenant string)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.rung[tenant]
	if last == nil || time.Since(last.at) >= rungFor {
		if p.rung == nil {
			p.rung = map[string]*rung{}
		}
		p.rung[tenant] = &rung{at: time.Now()}
		return true
	}
	if last.again == nil {
		last.again = time.AfterFunc(rungFor, func() { again(tenant) })
	}
	return false
}

// heard says that a bell for a tenant was heard here: what was posted before will be found.
func (p *posts) heard(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := p.rung[tenant]; last != nil && last.again != nil {
		last.again.Stop()
	}
	delete(p.rung, tenant)
}

// deliver delivers a tenant's messages.
func (r *Runner) deliver(tenant string) (again time.Duration) {
	r.posts.heard(tenant)
	next, err := r.cfg.Outbox.Deliver(r.working, tenant)
	if errors.Is(err, context.Canceled) && r.draining.Load() {
		return 0 // another node's
	}
	if err != nil {
		return r.failed(err, "tenant", tenant, "what", "outbox")
	}
	if next.IsZero() {
		return never
	}
	// Rung for the time instead of kept: many who hear of one time are one bell then.
	at := next.Truncate(time.Second).Add(time.Second)
	b := Bell{Tenant: tenant, After: time.Until(next), Once: fmt.Sprintf("outbox at %d", at.Unix())}
	if err := r.cfg.Queue.Ring(r.working, b); err != nil {
		return r.failed(err, "tenant", tenant, "what", "outbox")
	}
	return never
}

// bellForPosts rings for messages that have been due for at least age; pending: there are some.
func (r *Runner) bellForPosts(ctx context.Context, tenant string, age time.Duration) (bells []Bell, pending bool, err error) {
	due, pending, err := r.cfg.Outbox.Next(ctx, tenant)
	if err != nil || !pending || time.Since(due) < 0 {
		return nil, pending, err
	}
	now := time.Now()
	return []Bell{{Tenant: tenant, Once: fmt.Sprintf("outbox due %d", now.Unix()/max(1, int64(age/time.Second)))}}, true, nil
}
