package cache

import (
	"context"
	"time"
)

// Get implements Cache.
func (s *Staged) Get(ctx context.Context, key string) (string, bool, error) {
	k, err := s.base.key(key)
	if err != nil {
		return "", false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(ctx, k)
}

func (s *Staged) get(ctx context.Context, k key) (string, bool, error) {
	sh := s.shadows[k]
	switch {
	case !sh.decides():
		return s.base.driver.get(ctx, k)
	case sh.known && sh.kind == shadowAbsent:
		return "", false, nil
	case sh.kind == shadowString:
		return sh.value, true, nil
	}
	exists, err := s.exists(ctx, k)
	if exists && err == nil {
		err = errWrongType(k)
	}
	return "", false, err
}

// Exists implements Cache.
func (s *Staged) Exists(ctx context.Context, key string) (bool, error) {
	k, err := s.base.key(key)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exists(ctx, k)
}

func (s *Staged) exists(ctx context.Context, k key) (bool, error) {
	sh := s.shadows[k]
	switch {
	case !sh.decides():
		return s.base.driver.exists(ctx, k)
	case sh.known:
		return sh.kind != shadowAbsent, nil
	}
	for _, value := range sh.fields {
		if value != nil {
			return true, nil
		}
	}
	fields, err := s.hashGetAll(ctx, k) // only deletions: does the base have other fields?
	return len(fields) > 0, err
}

// HashGet implements Cache.
func (s *Staged) HashGet(ctx context.Context, key, field string) (string, bool, error) {
	k, err := s.base.hashed(key, field, "")
	if err != nil {
		return "", false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hashGet(ctx, k, field)
}

func (s *Staged) hashGet(ctx context.Context, k key, field string) (string, bool, error) {
	sh := s.shadows[k]
	if sh == nil {
		return s.base.driver.hashGet(ctx, k, field)
	}
	value, staged := sh.fields[field]
	switch {
	case sh.kind == shadowString:
		return "", false, errWrongType(k)
	case staged && value != nil:
		return *value, true, nil
	case staged || sh.known:
		return "", false, nil
	}
	return s.base.driver.hashGet(ctx, k, field)
}

// HashGetAll implements Cache.
func (s *Staged) HashGetAll(ctx context.Context, key string) (map[string]string, error) {
	k, err := s.base.key(key)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hashGetAll(ctx, k)
}

func (s *Staged) hashGetAll(ctx context.Context, k key) (map[string]string, error) {
	sh := s.shadows[k]
	switch {
	case sh == nil:
		return s.base.driver.hashGetAll(ctx, k)
	case sh.kind == shadowString:
		return nil, errWrongType(k)
	case sh.known:
		return sh.over(map[string]string{}), nil
	}
	fields, err := s.base.driver.hashGetAll(ctx, k)
	if err != nil {
		return nil, err
	}
	return sh.over(fields), nil
}

// Set implements Cache.
func (s *Staged) Set(_ context.Context, key, value string, ttl time.Duration) error {
	k, ttl, err := s.base.timed(key, value, ttl)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(op{kind: opSet, key: k, value: value, ttl: ttl})
}

// Remove implements Cache.
func (s *Staged) Remove(ctx context.Context, key string) (bool, error) {
	k, err := s.base.key(key)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	existed, err := s.exists(ctx, k)
	if err != nil {
		return false, err
	}
	// Staged even when the key is not there now: another run may set it before the flush.
	return existed, s.add(op{kind: opRemove, key: k})
}

// Expire implements Cache.
func (s *Staged) Expire(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	k, ttl, err := s.base.timed(key, "", ttl)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	existed, err := s.exists(ctx, k)
	if err != nil || !existed {
		return false, err
	}
	return true, s.add(op{kind: opExpire, key: k, ttl: ttl})
}

// HashSet implements Cache.
func (s *Staged) HashSet(ctx context.Context, key, field, value string) error {
	k, err := s.base.hashed(key, field, value)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.needHash(ctx, k, field); err != nil {
		return err
	}
	return s.add(op{kind: opHashSet, key: k, field: field, value: value})
}

// needHash returns an error when k holds a string. It asks the base once a key.
func (s *Staged) needHash(ctx context.Context, k key, field string) error {
	if sh := s.shadows[k]; sh != nil && sh.kind == shadowHash {
		return nil
	}
	_, _, err := s.hashGet(ctx, k, field)
	return err
}

// HashDelete implements Cache.
func (s *Staged) HashDelete(ctx context.Context, key, field string) (bool, error) {
	k, err := s.base.hashed(key, field, "")
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, existed, err := s.hashGet(ctx, k, field)
	if err != nil {
		return false, err
	}
	return existed, s.add(op{kind: opHashDelete, key: k, field: field})
}
