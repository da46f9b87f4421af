package embedded

import (
	"context"
	"slices"
	"strings"
	"time"

	"apiengine/lockwrap"
)

var _ lockwrap.Inspector = (*Backend)(nil)

// Locks is lockwrap.Inspector's.
func (b *Backend) Locks(_ context.Context, prefix string) ([]lockwrap.Holding, error) {
	if b.closed.Load() {
		return nil, &lockwrap.BackendError{Op: "locks", Err: errClosed}
	}
	var list []lockwrap.Holding
	for i := range b.shards {
		sh := &b.shards[i]
		sh.mu.Lock()
		now := time.Now()
		for lock, s := range sh.slots {
			if s.alive(now) && strings.HasPrefix(lock, prefix) {
				list = append(list, s.holding(lock, now))
			}
		}
		sh.mu.Unlock()
	}
	return list, nil
}

// Lock is lockwrap.Inspector's.
func (b *Backend) Lock(_ context.Context, lock string) (h lockwrap.Holding, err error) {
	err = b.with("lock", lock, func(s *slot, now time.Time) {
		if s.alive(now) {
			h = s.holding(lock, now)
		}
	})
	return h, err
}

func (s *slot) holding(lock string, now time.Time) lockwrap.Holding {
	return lockwrap.Holding{Lock: lock, Owner: s.owner, By: s.by, Left: s.expires.Sub(now),
		Waiting: slices.Clone(s.line)}
}
