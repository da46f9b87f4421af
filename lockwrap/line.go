package lockwrap

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// lines holds, for every lock that this node holds or waits for, who stands in line. It is
// split so that calls for different locks rarely meet.
type lines struct {
	seed   maphash.Seed
	shards [64]shard
}

type shard struct {
	mu    sync.Mutex
	byKey map[string]*line
}

// line is one lock's: first come, first served, and only the head talks to the backend.
type line struct {
	queue   []*waiter // [0] is the head
	held    *Lease    // this node's own lease on the lock, while it counts
	by      Holder    // what the head last heard of a holder elsewhere
	until   time.Time // end of that holder's lease as far as known
	failing time.Time // since when the backend fails the heads; zero: it serves them
	err     error     // how it failed them last
	turns   int       // hand-overs on this node, one after the other
	queued  bool      // this node stands in the backend's line
}

// waiter is one Acquire in a line.
type waiter struct {
	lock   string
	hunt   *hunt         // read by others only while the waiter is offered the lock
	signal chan struct{} // of capacity 1: you may be the head now, or the lock be free
	offer  chan offer    // of capacity 1: the end of a hand-over
	gone   bool          // out of the line
}

func newLines() *lines {
	ls := &lines{seed: maphash.MakeSeed()}
	for i := range ls.shards {
		ls.shards[i].byKey = map[string]*line{}
	}
	return ls
}

// with runs f on the lock's line, which is made when it is missing and dropped when it is
// of no more use.
func (ls *lines) with(lock string, f func(*line)) {
	s := &ls.shards[maphash.String(ls.seed, lock)%uint64(len(ls.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byKey[lock]
	if l == nil {
		l = &line{}
		s.byKey[lock] = l
	}
	f(l)
	if len(l.queue) == 0 && l.held == nil {
		delete(s.byKey, lock)
	}
}

// seen is what a waiter may know of its lock without asking the backend.
type seen struct {
	by   Holder
	left time.Duration
	err  error // how the backend failed the last who asked; nil: it did not
	// since is when it began to fail.
	since time.Time
}

func (l *line) seen() seen {
	now := time.Now()
	if l.held != nil {
		return seen{by: l.held.by(), left: max(0, l.held.end().Sub(now))}
	}
	return seen{by: l.by, left: max(0, l.until.Sub(now)), err: l.err, since: l.failing}
}

// join puts a new waiter at the line's end. It returns false when the line has most
// waiters already (-1: no limit); one who tries an unheld lock is not counted as waiting.
func (ls *lines) join(h *hunt, most int) (w *waiter, ok bool) {
	ls.with(h.lock, func(l *line) {
		if l.held == nil && most >= 0 {
			most++
		}
		if ok = most < 0 || len(l.queue) < most; ok {
			w = &waiter{lock: h.lock, hunt: h, signal: make(chan struct{}, 1), offer: make(chan offer, 1)}
			l.queue = append(l.queue, w)
		}
	})
	return w, ok
}

// place says whether it is w's turn to ask: it is the head, and this node does not hold the
// lock. gone means that w has been given the lock.
func (ls *lines) place(w *waiter) (turn, gone bool) {
	ls.with(w.lock, func(l *line) {
		if gone = w.gone; !gone {
			turn = l.queue[0] == w && l.held == nil
		}
	})
	return turn, gone
}

// look says what is known of a lock on this node.
func (ls *lines) look(lock string) (s seen) {
	ls.with(lock, func(l *line) { s = l.seen() })
	return s
}

// leave takes w out of its line. Whoever becomes the head is told. It returns the lease
// that w was given unawares, and whether nobody of this node waits any more though it
// stands in the backend's line.
func (ls *lines) leave(w *waiter) (given *Lease, quit bool) {
	ls.with(w.lock, func(l *line) {
		if w.gone {
			given = (<-w.offer).lease
			return
		}
		l.remove(w)
		if quit = l.queued && len(l.queue) == 0; quit {
			l.queued = false
		}
	})
	return given, quit
}

// enter takes w out of its line because it has got the lock as lease.
func (ls *lines) enter(w *waiter, lease *Lease) {
	ls.with(w.lock, func(l *line) {
		*l = line{queue: l.queue, held: lease}
		l.remove(w)
	})
}

// free notes that lease no longer keeps others out, and wakes the head.
func (ls *lines) free(lock string, lease *Lease) {
	ls.with(lock, func(l *line) {
		if l.held != lease {
			return
		}
		l.held = nil
		l.wake()
	})
}

// taken notes what the head heard of a holder elsewhere, and whether the node stands in line.
func (ls *lines) taken(lock string, r Reply, now time.Time, queue bool) {
	ls.with(lock, func(l *line) {
		*l = line{queue: l.queue, by: r.By.apart(), until: now.Add(r.Left), queued: l.queued || queue}
	})
}

// wake tells the head of the lock's line, or of every line, that it may be its turn.
func (ls *lines) wake(lock string) {
	if lock != "" {
		ls.with(lock, (*line).wake)
		return
	}
	for i := range ls.shards {
		s := &ls.shards[i]
		s.mu.Lock()
		for _, l := range s.byKey {
			l.wake()
		}
		s.mu.Unlock()
	}
}

// failed notes that the backend did not serve what the head sent, and returns since when it
// is so.
func (ls *lines) failed(lock string, err error, sent time.Time) (since time.Time) {
	ls.with(lock, func(l *line) {
		l.err = err
		if l.failing.IsZero() {
			l.failing = sent
		}
		since = l.failing
	})
	return since
}

func (l *line) remove(w *waiter) {
	w.gone = true
	i := slices.Index(l.queue, w)
	if i == 0 {
		l.queue[0] = nil
		l.queue = l.queue[1:] // the usual case, without moving the rest
		l.wake()
		return
	}
	l.queue = slices.Delete(l.queue, i, i+1)
}

func (l *line) wake() {
	if len(l.queue) == 0 {
		return
	}
	select {
	case l.queue[0].signal <- struct{}{}:
	default: // it has been told already
	}
}
