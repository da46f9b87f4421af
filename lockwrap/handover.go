package lockwrap

import "time"

// A release hands the lock to the head of its node's line in the same step. The head stays
// in the line meanwhile, and may leave it; the one who releases brings the answer.

// turns is how often a node hands a lock over to itself while other nodes wait for it.
const turns = 4

// offer is the end of a hand-over for the one that was to get the lock.
type offer struct {
	lease   *Lease // nil: not handed over
	yielded bool   // another node comes first, and this one stands in line behind it
	doubt   bool   // nobody knows whether it was handed over
	late    bool   // it was, but so long ago that nobody knows whether the lease stands
	sent    time.Time
}

// heir is the head of a line while the lock is on its way to it.
type heir struct {
	m     *Manager
	from  *Lease
	w     *waiter
	claim *Claim
	turn  int // which one in a row this hand-over is
}

// heir returns the head of the line of a lease that is about to be released, or nil.
func (m *Manager) heir(l *Lease) (next *heir) {
	m.lines.with(l.lock, func(ln *line) {
		if ln.held != l || len(ln.queue) == 0 || ln.queue[0].hunt.r.Plan.Wait == 0 {
			return
		}
		next = &heir{m: m, from: l, w: ln.queue[0], turn: ln.turns + 1}
	})
	if next != nil {
		c := next.w.hunt.claim()
		c.Yield = next.turn > turns
		next.claim = &c
	}
	return next
}

// wish is what the release is to carry.
func (n *heir) wish() *Claim {
	if n == nil {
		return nil
	}
	return n.claim
}

// settle gives the heir what the release has brought it.
func (n *heir) settle(r Reply, sent time.Time) {
	if n == nil {
		return
	}
	h := n.w.hunt
	switch {
	case r.Next == 0:
		n.tell(offer{yielded: n.claim.Yield, sent: sent})
	case time.Since(sent) >= h.r.Plan.Lease-h.r.Plan.Margin:
		n.tell(offer{late: true, sent: sent})
	default:
		lease := n.m.newLease(h, n.claim.Holder, r.Next, sent)
		lease.handed = true
		if !n.give(lease) {
			n.sweep(sent)
		}
	}
}

// sweep starts a clean-up behind an heir that has left.
func (n *heir) sweep(sent time.Time) {
	h := n.w.hunt
	n.m.sweep(leftover{key: h.r.Key, lock: h.lock, owner: Owner{Holder: n.claim.Holder}, limit: h.limit, over: sent.Add(h.r.Plan.Lease), doubt: true})
}

// give makes the lease the line's, unless the heir has left; then the lock is on its own.
func (n *heir) give(lease *Lease) (taken bool) {
	n.m.lines.with(n.w.lock, func(l *line) {
		if n.w.gone {
			return
		}
		*l = line{queue: l.queue, held: lease, turns: n.turn}
		l.queue[0] = nil
		l.queue = l.queue[1:]
		n.w.gone, taken = true, true
		lease.begin()
		n.w.put(offer{lease: lease})
	})
	return taken
}

// tell ends a hand-over that brought no lease.
func (n *heir) tell(o offer) {
	if n == nil {
		return
	}
	var left, quit bool
	n.m.lines.with(n.w.lock, func(l *line) {
		left = n.w.gone
		if !left {
			n.w.put(o)
		}
		if !o.yielded {
			return
		}
		if l.held == n.from {
			l.held = nil
		}
		l.queued = n.claim.Queue
		if quit = l.queued && len(l.queue) == 0; left {
			l.wake()
		}
	})
	if left && (o.doubt || o.late) {
		n.sweep(o.sent)
	}
	if quit {
		n.m.quitLine(n.w.lock)
	}
}

// put leaves o for the waiter in place of what it has not heard yet. The line is locked.
func (w *waiter) put(o offer) {
	select {
	case <-w.offer:
	default:
	}
	w.offer <- o
}
