package cache

import (
	"context"
	"time"

	"apiengine/fault"
)

// A key that was written under a lock has a mark: the largest token that wrote it. The mark
// stands beside the value, so reading costs nothing more, a plain write replaces the value
// and leaves the mark alone, and a removal leaves the mark as a tombstone.
//
// Tokens of different locks are compared as well, though only their times say something
// then: keys that are written by SetFenced belong to one lock.
const (
	// Keep is how long a key's mark is kept at least after a SetFenced: a holder that was
	// stopped for longer is no longer refused by it.
	Keep = 24 * time.Hour
	// KeepFlushed is the same after a Flush under a lock, and after a RemoveFenced.
	KeepFlushed = time.Hour
)

// MaxEffects is how much a release takes along: it must be back within a fraction of its
// lease, and nothing else is done in Redis meanwhile.
const MaxEffects = 256 << 10

func checkToken(token int64) error {
	if token <= 0 {
		return fault.New(fault.ScriptError, "V8.Cache.SetFenced: only the holder of a lock has a token; give the API Lock: true")
	}
	return nil
}

// SetFenced implements Cache.
func (v *View) SetFenced(ctx context.Context, key, value string, ttl time.Duration, token int64) (bool, error) {
	o, err := v.fencedSet(key, value, ttl, token)
	if err != nil {
		return false, err
	}
	return v.driver.fenced(ctx, o)
}

func (v *View) fencedSet(key, value string, ttl time.Duration, token int64) (op, error) {
	k, ttl, err := v.timed(key, value, ttl)
	if err == nil {
		err = checkToken(token)
	}
	return op{kind: opSetFenced, key: k, value: value, ttl: ttl, token: token, keep: Keep}, err
}

// RemoveFenced implements Cache.
func (v *View) RemoveFenced(ctx context.Context, key string, token int64) (bool, error) {
	k, err := v.key(key)
	if err == nil {
		err = checkToken(token)
	}
	if err != nil {
		return false, err
	}
	return v.driver.fenced(ctx, op{kind: opRemove, key: k, token: token, keep: KeepFlushed})
}

// SetFenced implements Cache. It is refused here when a larger token has written the key
// already; the flush compares once more.
func (s *Staged) SetFenced(ctx context.Context, key, value string, ttl time.Duration, token int64) (bool, error) {
	o, err := s.base.fencedSet(key, value, ttl, token)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newest, err := s.base.driver.mark(ctx, o.key)
	if err != nil || newest > token {
		return false, err
	}
	return true, s.add(o)
}

// RemoveFenced implements Cache; what waits gets its token with the flush.
func (s *Staged) RemoveFenced(ctx context.Context, key string, _ int64) (bool, error) {
	return s.Remove(ctx, key)
}

// fencedBy is what waits, each write with the token it is compared by; those of SetFenced
// have their own.
func (s *Staged) fencedBy(token int64, keep time.Duration) []op {
	list := s.pending()
	for i := range list {
		if o := &list[i]; o.token == 0 && token > 0 {
			o.token, o.keep = token, keep
		}
	}
	return list
}

// Effects are what waits, for a lock that lives in the same place as the cache, to be applied
// in the very step that gives the lock back: a func(held bool) (failed int) for an Embedded,
// RedisEffects for a Redis. Applied with held they do what Flush does, else what Invalidate
// does; failed counts writes that could not be done, whose keys were removed instead.
//
// They are nil when they have more than MaxEffects bytes.
//
// What waits goes on waiting: once the effects are known to be applied, Drop it.
func (s *Staged) Effects(token int64) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes > MaxEffects {
		return nil
	}
	// The lock itself keeps older holders out, so no mark is left behind for that.
	return s.base.driver.effects(s.fencedBy(token, 0))
}
