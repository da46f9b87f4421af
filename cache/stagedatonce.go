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
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shadows[k].decides() {
		return s.base.driver.setIfNotExists(ctx, k, value, ttl)
	}
	if exists, err := s.exists(ctx, k); err != nil || exists {
		return false, err
	}
	return true, s.add(op{kind: opSet, key: k, value: value, ttl: ttl})
}

// Increment implements Cache.
func (s *Staged) Increment(ctx context.Context, key string, by int64, ttl time.Duration) (int64, error) {
	k, ttl, err := s.base.timed(key, "", ttl)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.shadows[k]
	if !sh.decides() {
		return s.base.driver.increment(ctx, k, by, ttl)
	}
	text, found, err := s.get(ctx, k)
	if err != nil {
		return 0, err
	}
	if found {
		ttl = sh.ttl // a number that is there keeps its end
	} else {
		text = "0"
	}
	next, sum, err := add(k, text, by)
	if err != nil {
		return 0, err
	}
	return sum, s.add(op{kind: opSet, key: k, value: next, ttl: ttl})
}

// CompareAndSet implements Cache.
func (s *Staged) CompareAndSet(ctx context.Context, key, old, value string, ttl time.Duration) (bool, error) {
	k, ttl, err := s.base.timed(key, value, ttl)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shadows[k].decides() {
		stored, err := s.base.driver.compareAndSet(ctx, k, old, value, ttl)
		if stored {
			s.forget(k) // an Expire, which was of the value before
		}
		return stored, err
	}
	now, found, err := s.get(ctx, k)
	if err != nil || !found || now != old {
		return false, err
	}
	return true, s.add(op{kind: opSet, key: k, value: value, ttl: ttl})
}

// HashIncrement implements Cache.
func (s *Staged) HashIncrement(ctx context.Context, key, field string, by int64) (int64, error) {
	k, err := s.base.hashed(key, field, "")
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.shadows[k]
	if !sh.decides() || !sh.known && !sh.has(field) {
		return s.base.driver.hashIncrement(ctx, k, field, by)
	}
	text, found, err := s.hashGet(ctx, k, field)
	if err != nil {
		return 0, err
	}
	if !found {
		text = "0"
	}
	next, sum, err := add(k, text, by)
	if err != nil {
		return 0, err
	}
	return sum, s.add(op{kind: opHashSet, key: k, field: field, value: next})
}

// GetAndRemove implements Cache.
func (s *Staged) GetAndRemove(ctx context.Context, key string) (value string, found bool, err error) {
	k, err := s.base.key(key)
	if err != nil {
		return "", false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shadows[k].decides() {
		return s.base.driver.getAndRemove(ctx, k)
	}
	if value, found, err = s.get(ctx, k); err != nil || !found {
		return "", false, err
	}
	return value, true, s.add(op{kind: opRemove, key: k})
}
