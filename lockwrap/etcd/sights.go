package etcd

import (
	"sync"
	"time"

	"apiengine/lockwrap"
)

// sights measures how long locks have been held or kept as they are, by this node's clock and
// from when it first saw it so. Whoever holds a lock counts its life from before it was
// written, thus from before it was seen: a lock that has been seen unchanged for its whole
// life is over, and no two clocks need to agree on that. etcd itself ends a lease later: it
// counts whole seconds, gives two at least, and gives all leases their whole life anew when
// its leader changes. It has none as short as Grace.
type sights struct {
	mu    sync.Mutex
	seen  map[string]sight
	sweep int // how many make it look for old ones
}

type sight struct {
	turn, token, held int64 // what changes when a lock is kept, granted or renewed
	since             time.Time
	life              time.Duration
}

const (
	minSweep = 1000
	// overdue is the pause for who waits for a lock whose end, by the clock of its holder, has
	// passed: etcd is about to end it.
	overdue = 50 * time.Millisecond
)

// see returns what is left of the lock's life. It is 0 from then on until the lock changes.
func (k *sights) see(lock string, s *state) time.Duration {
	life := lockwrap.Grace
	if s.alive {
		life = s.life()
	}
	x := sight{turn: s.Turn, token: s.Token, held: s.held, since: time.Now(), life: life}
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, ok := k.seen[lock]; ok && old.turn == x.turn && old.token == x.token && old.held == x.held {
		return max(0, life-x.since.Sub(old.since))
	}
	if k.seen == nil {
		k.seen, k.sweep = map[string]sight{}, minSweep
	}
	if len(k.seen) >= k.sweep {
		k.drop(x.since)
	}
	k.seen[lock] = x
	return life
}

// drop forgets what is over. A lock that still stands then counts as seen for the first time.
func (k *sights) drop(now time.Time) {
	for lock, x := range k.seen {
		if now.Sub(x.since) >= x.life {
			delete(k.seen, lock)
		}
	}
	k.sweep = max(minSweep, 2*len(k.seen))
}

// taken reports whether a lock is held by, or kept for, others than node, and about how long.
func (k *sights) taken(lock string, s *state, node string) (left time.Duration, taken bool) {
	if !s.alive && (s.Kept == "" || s.Kept == node) {
		return 0, false
	}
	left = k.see(lock, s)
	if s.alive {
		left = min(left, max(s.left(), overdue))
	}
	return left, left > 0
}
