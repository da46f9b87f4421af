// Package embedded keeps locks in the memory of one process. It is for a server that runs
// alone: see LockDir, which keeps a second one out.
package embedded

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"apiengine/lockwrap"
)

// Config sets up a Backend. Every field may be zero.
type Config struct {
	// Mark remembers how far tokens have risen, so that they still rise after a restart with
	// a clock that was set back. Without one they rise with the clock alone.
	Mark Mark
}

// Mark keeps one number beyond the life of the process.
type Mark interface {
	Load(ctx context.Context) (int64, error) // 0 when nothing was saved
	Save(ctx context.Context, v int64) error
}

// Backend is a lockwrap.Backend in memory.
type Backend struct {
	seed   maphash.Seed
	shards [64]shard
	tokens tokens
	ears   ears
	closed atomic.Bool
}

var _ interface {
	lockwrap.Backend
	lockwrap.Applier
} = (*Backend)(nil)

type shard struct {
	mu    sync.Mutex
	slots map[string]slot
	sweep int // size at which expired slots are looked for
}

// slot is one lock. A free one is kept only while nodes stand in line, or its token is ahead
// of all others.
type slot struct {
	owner   lockwrap.Owner // no Holder: free, or kept
	by      lockwrap.Holder
	expires time.Time          // by the monotonic clock; of the lease, or of the keeping
	kept    string             // the node that it is kept for
	line    []lockwrap.Waiting // nodes that wait, the longest first
}

func (s *slot) alive(now time.Time) bool { return s.owner.Holder != "" && now.Before(s.expires) }

// taken reports whether others than node must wait.
func (s *slot) taken(node string, now time.Time) bool {
	return now.Before(s.expires) && (s.owner.Holder != "" || s.kept != "" && s.kept != node)
}

func (s *slot) join(node string, now time.Time) {
	if !slices.ContainsFunc(s.line, func(w lockwrap.Waiting) bool { return w.Node == node }) {
		s.line = append(s.line, lockwrap.Waiting{Node: node, Since: now})
	}
}

func (s *slot) leave(node string) {
	s.line = slices.DeleteFunc(s.line, func(w lockwrap.Waiting) bool { return w.Node == node })
}

// pass keeps a lock that nobody holds any more for the first in line, and returns that one.
func (s *slot) pass(now time.Time) (node string) {
	*s = slot{owner: lockwrap.Owner{Token: s.owner.Token}, line: s.line}
	if len(s.line) > 0 {
		s.kept, s.line, s.expires = s.line[0].Node, s.line[1:], now.Add(lockwrap.Grace)
	}
	return s.kept
}

// New returns a Backend whose first token is greater than the one that cfg.Mark knows, or
// the error of cfg.Mark.
func New(ctx context.Context, cfg Config) (*Backend, error) {
	b := &Backend{seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i] = shard{slots: map[string]slot{}, sweep: minSweep}
	}
	return b, b.tokens.open(ctx, cfg.Mark)
}

const minSweep = 64

var errClosed = errors.New("the embedded lock is closed")

// with runs f on the lock's slot, under its shard's mutex.
func (b *Backend) with(op, lock string, f func(s *slot, now time.Time)) error {
	if b.closed.Load() {
		return &lockwrap.BackendError{Op: op, Err: errClosed}
	}
	sh := &b.shards[maphash.String(b.seed, lock)%uint64(len(b.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := time.Now()
	s := sh.slots[lock]
	f(&s, now)
	if b.idle(&s, now) {
		delete(sh.slots, lock)
		return nil
	}
	sh.slots[lock] = s
	if len(sh.slots) >= sh.sweep {
		b.drop(sh, now)
	}
	return nil
}

// idle reports whether nothing is lost with s: nobody holds it or waits, and the next token
// of any lock is greater than its last.
func (b *Backend) idle(s *slot, now time.Time) bool {
	return !now.Before(s.expires) && len(s.line) == 0 && s.owner.Token <= b.tokens.last()
}

// drop removes what holders left that never came back, at a cost that new slots have paid.
func (b *Backend) drop(sh *shard, now time.Time) {
	for lock, s := range sh.slots {
		if b.idle(&s, now) {
			delete(sh.slots, lock)
		}
	}
	sh.sweep = max(minSweep, 2*len(sh.slots))
}

// Acquire is lockwrap.Backend's.
func (b *Backend) Acquire(ctx context.Context, c lockwrap.Claim) (lockwrap.Reply, error) {
	if err := b.tokens.reserve(ctx); err != nil { // outside the shard: it may be a write to a database
		return lockwrap.Reply{}, &lockwrap.BackendError{Op: "acquire", Err: err}
	}
	var r lockwrap.Reply
	err := b.with("acquire", c.Lock, func(s *slot, now time.Time) {
		switch {
		case s.alive(now) && s.owner.Holder == c.Holder:
			s.expires = now.Add(c.TTL)
		case s.taken(c.Node, now):
			r = lockwrap.Reply{Left: s.expires.Sub(now), By: s.by, Token: s.owner.Token}
			if c.Queue {
				s.join(c.Node, now)
			}
			return
		default:
			b.grant(s, &c, now)
		}
		r = lockwrap.Reply{Held: true, Token: s.owner.Token, Left: c.TTL}
	})
	return r, err
}

func (b *Backend) grant(s *slot, c *lockwrap.Claim, now time.Time) {
	s.owner = lockwrap.Owner{Holder: c.Holder, Token: max(b.tokens.next(), s.owner.Token+1, c.Floor+1)}
	s.by, s.kept, s.expires = lockwrap.Holder{API: c.API, Since: now}, "", now.Add(c.TTL)
	s.leave(c.Node)
}

// Confirm is lockwrap.Backend's.
func (b *Backend) Confirm(_ context.Context, lock string, o lockwrap.Owner) (lockwrap.Reply, error) {
	return b.own("confirm", lock, o, func(*slot, time.Time) {})
}

// Renew is lockwrap.Backend's.
func (b *Backend) Renew(_ context.Context, lock string, o lockwrap.Owner, ttl time.Duration) (lockwrap.Reply, error) {
	return b.own("renew", lock, o, func(s *slot, now time.Time) { s.expires = now.Add(ttl) })
}

// Leave is lockwrap.Backend's.
func (b *Backend) Leave(_ context.Context, lock, node string) error {
	var told string
	err := b.with("leave", lock, func(s *slot, now time.Time) {
		s.leave(node)
		if s.kept == node && now.Before(s.expires) {
			told = s.pass(now)
		}
	})
	b.ears.tell(told, lock)
	return err
}

func (s *slot) owns(o lockwrap.Owner, now time.Time) bool {
	return s.alive(now) && s.owner.Holder == o.Holder && (o.Token == 0 || s.owner.Token == o.Token)
}

// own runs f on the slot if it is o's, and answers whether it is.
func (b *Backend) own(op, lock string, o lockwrap.Owner, f func(*slot, time.Time)) (lockwrap.Reply, error) {
	var r lockwrap.Reply
	err := b.with(op, lock, func(s *slot, now time.Time) {
		r = lockwrap.Reply{Token: s.owner.Token}
		if s.owns(o, now) {
			r.Held = true
			f(s, now)
			r.Left = max(0, s.expires.Sub(now))
		}
	})
	return r, err
}

// Ping is lockwrap.Backend's.
func (b *Backend) Ping(context.Context) error {
	if b.closed.Load() {
		return &lockwrap.BackendError{Op: "ping", Err: errClosed}
	}
	return nil
}

// Close is lockwrap.Backend's. It gives back what was reserved of the Mark and not used.
func (b *Backend) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return b.tokens.close(ctx)
}
