package lockwrap

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// renewals keeps the renewed leases of a node alive: one goroutine that knows which is due
// next, and a few at a time that ask, so that ten thousand leases cost ten thousand entries.
type renewals struct {
	m     *Manager
	slots chan struct{} // of the requests under way

	mu   sync.Mutex
	due  dueHeap
	wake chan struct{} // of capacity 1: an earlier one has come
	runs bool
}

// renewing is how many renewals are under way at once at most. A backend that takes a
// millisecond for each then serves some ten thousand a second.
const renewing = 16

// renewal is one lease's place in the schedule.
type renewal struct {
	lease *Lease
	at    time.Time
	index int           // in the heap; -1: not there
	done  chan struct{} // of the request under way; nil: none is
	over  bool
}

func newRenewals(m *Manager) *renewals {
	return &renewals{m: m, slots: make(chan struct{}, renewing), wake: make(chan struct{}, 1)}
}

// keep renews l every Plan.Renew from now until the renewal ends. One that fails is tried
// again every twelfth of the lease until the Deadline; then the lease is lost by its timer.
func (rs *renewals) keep(l *Lease) *renewal {
	r := &renewal{lease: l, index: -1}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.put(r, time.Now().Add(l.plan.Renew))
	if !rs.runs {
		rs.runs = true
		rs.m.spawn(rs.run)
	}
	return r
}

// put schedules r. The schedule is locked.
func (rs *renewals) put(r *renewal, at time.Time) {
	if r.over {
		return
	}
	r.at = at
	heap.Push(&rs.due, r)
	if r.index == 0 {
		select {
		case rs.wake <- struct{}{}:
		default:
		}
	}
}

// end takes r out of the schedule and waits for its request under way.
func (rs *renewals) end(r *renewal) {
	if done := rs.drop(r); done != nil {
		<-done
	}
}

// drop takes r out of the schedule. It returns what tells of the end of its request under
// way, or nil.
func (rs *renewals) drop(r *renewal) (done <-chan struct{}) {
	if r == nil {
		return nil
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.over = true
	if r.index >= 0 {
		heap.Remove(&rs.due, r.index)
	}
	return r.done
}

// run serves the schedule until the Manager ends.
func (rs *renewals) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r, pause := rs.next()
		if r != nil {
			rs.serve(r)
			continue
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-rs.wake:
		case <-rs.m.work.Done():
			return
		}
	}
}

// next takes the lease that is due, or says how long none will be.
func (rs *renewals) next() (r *renewal, pause time.Duration) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.due) == 0 {
		return nil, time.Hour
	}
	if pause = time.Until(rs.due[0].at); pause > 0 {
		return nil, pause
	}
	r = heap.Pop(&rs.due).(*renewal)
	r.done = make(chan struct{})
	return r, 0
}

// serve renews r in a goroutine of its own, as soon as a slot is free.
func (rs *renewals) serve(r *renewal) {
	select {
	case rs.slots <- struct{}{}:
	case <-rs.m.work.Done():
		close(r.done)
		return
	}
	rs.m.spawn(func() {
		pause := r.lease.renew()
		<-rs.slots
		rs.mu.Lock()
		defer rs.mu.Unlock()
		close(r.done)
		r.done = nil
		rs.put(r, time.Now().Add(pause))
	})
}

// renew makes one attempt and returns the pause before the next.
func (l *Lease) renew() time.Duration {
	sent := time.Now()
	ttl := min(l.plan.Lease, l.sent.Add(l.plan.Hold).Sub(sent)) // the hold limit is absolute
	if ttl < time.Millisecond {
		return l.plan.Renew // the timer is about to end the lease
	}
	a := l.m.ask(context.Background(), l.m.attempt(l.plan.Lease), func(ctx context.Context, b Backend) (Reply, error) {
		return b.Renew(ctx, l.lock, l.owner, ttl)
	})
	switch {
	case a.err != nil: // whatever happened to it, the old deadline stands
		l.mu.Lock()
		l.trouble = a.err
		l.mu.Unlock()
		l.m.note(Event{What: RenewalFailed, Key: l.key, Err: a.err})
		return l.plan.Lease / 12
	case !a.reply.Held:
		_ = l.fail(l.notMine(a.reply, time.Now())) // Lost tells
	default:
		l.mu.Lock()
		l.good, l.trouble = sent, nil
		l.mu.Unlock()
	}
	return l.plan.Renew
}

// dueHeap orders renewals by when they are due.
type dueHeap []*renewal

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	r := x.(*renewal)
	r.index = len(*h)
	*h = append(*h, r)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	r.index = -1
	return r
}
