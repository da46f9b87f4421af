// Package embedded keeps locks in the memory of one process. It is for a server that runs
// alone: see LockDir, which keeps a second one out.
package embedded

import (
	"context"
	"errors"
	"hash/maphash"
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
	closed atomic.Bool
}

var _ lockwrap.Backend = (*Backend)(nil)

type shard struct {
	mu    sync.Mutex
	slots map[string]slot
	sweep int // size at which expired slots are looked for
}

// slot is one lock. A free one is kept only while its token is ahead of all others.
type slot struct {
	owner   lockwrap.Owner // no Holder: free
	by      lockwrap.Holder
	expires time.Time // by the monotonic clock
}

func (s slot) alive(now time.Time) bool { return s.owner.Holder != "" && now.Before(s.expires) }

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

// with runs f on the lock's slot, under its shard's mutex, and keeps what f returns.
func (b *Backend) with(op, lock string, f func(s slot, now time.Time) slot) error {
	if b.closed.Load() {
		return &lockwrap.BackendError{Op: op, Err: errClosed}
	}
	sh := &b.shards[maphash.String(b.seed, lock)%uint64(len(b.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := time.Now()
	s := f(sh.slots[lock], now)
	if b.idle(s, now) {
		delete(sh.slots, lock)
		return nil
	}
	sh.slots[lock] = s
	if len(sh.slots) >= sh.sweep {
		b.drop(sh, now)
	}
	return nil
}

// idle reports whether nothing is lost with s: nobody holds it, and the next token of any
// lock is greater than its last.
func (b *Backend) idle(s slot, now time.Time) bool {
	return !s.alive(now) && s.owner.Token <= b.tokens.last()
}

// drop removes what holders left that never came back, at a cost that new slots have paid.
func (b *Backend) drop(sh *shard, now time.Time) {
	for lock, s := range sh.slots {
		if b.idle(s, now) {
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
	err := b.with("acquire", c.Lock, func(s slot, now time.Time) slot {
		switch {
		case s.alive(now) && s.owner.Holder != c.Holder:
			r = lockwrap.Reply{Left: s.expires.Sub(now), By: s.by, Token: s.owner.Token}
			return s
		case !s.alive(now):
			s.owner = lockwrap.Owner{Holder: c.Holder, Token: max(b.tokens.next(), s.owner.Token+1, c.Floor+1)}
			s.by = lockwrap.Holder{API: c.API, Since: now}
		}
		s.expires = now.Add(c.TTL)
		r = lockwrap.Reply{Held: true, Token: s.owner.Token, Left: c.TTL}
		return s
	})
	return r, err
}

// Confirm is lockwrap.Backend's.
func (b *Backend) Confirm(_ context.Context, lock string, o lockwrap.Owner) (lockwrap.Reply, error) {
	return b.own("confirm", lock, o, func(s slot, _ time.Time) slot { return s })
}

// Renew is lockwrap.Backend's.
func (b *Backend) Renew(_ context.Context, lock string, o lockwrap.Owner, ttl time.Duration) (lockwrap.Reply, error) {
	return b.own("renew", lock, o, func(s slot, now time.Time) slot {
		s.expires = now.Add(ttl)
		return s
	})
}

// Release is lockwrap.Backend's.
func (b *Backend) Release(_ context.Context, lock string, o lockwrap.Owner) (lockwrap.Reply, error) {
	return b.own("release", lock, o, func(s slot, _ time.Time) slot {
		return slot{owner: lockwrap.Owner{Token: s.owner.Token}}
	})
}

// own runs f on the slot if it is o's, and answers whether it is.
func (b *Backend) own(op, lock string, o lockwrap.Owner, f func(slot, time.Time) slot) (lockwrap.Reply, error) {
	var r lockwrap.Reply
	err := b.with(op, lock, func(s slot, now time.Time) slot {
		r = lockwrap.Reply{Token: s.owner.Token}
		if !s.alive(now) || s.owner.Holder != o.Holder || o.Token != 0 && s.owner.Token != o.Token {
			return s
		}
		s = f(s, now)
		r.Held, r.Left = true, max(0, s.expires.Sub(now))
		return s
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
