package cache

import (
	"context"
	"time"
)

// SetIfNotExists implements Cache.
func (s *Staged) SetIfNotExists(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	k, ttl, err := s.base.timed(key, value, ttl)
	if err != nil {
		return false, err
	}
	return atOnce(ctx, s, k, func(d driver) (bool, error) { return d.setIfNotExists(ctx, k, value, ttl) })
}

// Increment implements Cache.
func (s *Staged) Increment(ctx context.Context, key string, by int64, ttl time.Duration) (int64, error) {
	k, ttl, err := s.base.timed(key, "", ttl)
	if err != nil {
		return 0, err
	}
	return atOnce(ctx, s, k, func(d driver) (int64, error) { return d.increment(ctx, k, by, ttl) })
}

// CompareAndSet implements Cache.
func (s *Staged) CompareAndSet(ctx context.Context, key, old, value string, ttl time.Duration) (bool, error) {
	k, ttl, err := s.base.timed(key, value, ttl)
	if err != nil {
		return false, err
	}
	return atOnce(ctx, s, k, func(d driver) (bool, error) { return d.compareAndSet(ctx, k, old, value, ttl) })
}

// HashIncrement implements Cache.
func (s *Staged) HashIncrement(ctx context.Context, key, field string, by int64) (int64, error) {
	k, err := s.base.hashed(key, field, "")
	if err != nil {
		return 0, err
	}
	return atOnce(ctx, s, k, func(d driver) (int64, error) { return d.hashIncrement(ctx, k, field, by) })
}

// GetAndRemove implements Cache.
func (s *Staged) GetAndRemove(ctx context.Context, key string) (value string, found bool, err error) {
	k, err := s.base.key(key)
	if err != nil {
		return "", false, err
	}
	value, err = atOnce(ctx, s, k, func(d driver) (v string, err error) {
		v, found, err = d.getAndRemove(ctx, k)
		return v, err
	})
	return value, found, err
}
