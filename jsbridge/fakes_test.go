package jsbridge

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"
)

// memCache is the Cache port over a map; ttls are only remembered.
type memCache struct {
	mu      sync.Mutex
	strings map[string]string
	hashes  map[string]map[string]string
	ttl     map[string]time.Duration
	err     error // every call fails with it
	token   int64 // of the last fenced call
}

func (m *memCache) Get(_ context.Context, key string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.strings[key]
	return v, ok, m.err
}

func (m *memCache) Set(_ context.Context, key, value string, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.strings == nil {
		m.strings, m.ttl = map[string]string{}, map[string]time.Duration{}
	}
	m.strings[key] = value
	if m.ttl != nil {
		m.ttl[key] = ttl
	}
	return m.err
}

func (m *memCache) Remove(ctx context.Context, key string) (bool, error) {
	_, ok, err := m.GetAndRemove(ctx, key)
	return ok, err
}

func (m *memCache) Exists(ctx context.Context, key string) (bool, error) {
	_, ok, err := m.Get(ctx, key)
	return ok, err
}

func (m *memCache) Expire(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	v, ok, _ := m.Get(ctx, key)
	if ok {
		_ = m.Set(ctx, key, v, ttl)
	}
	return ok, m.err
}

func (m *memCache) SetIfNotExists(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	if _, ok, _ := m.Get(ctx, key); ok {
		return false, m.err
	}
	return true, m.Set(ctx, key, value, ttl)
}

func (m *memCache) Increment(ctx context.Context, key string, by int64, ttl time.Duration) (int64, error) {
	v, _, _ := m.Get(ctx, key)
	n, _ := strconv.ParseInt(v, 10, 64)
	return n + by, m.Set(ctx, key, strconv.FormatInt(n+by, 10), ttl)
}

func (m *memCache) GetAndRemove(_ context.Context, key string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.strings[key]
	delete(m.strings, key)
	return v, ok, m.err
}

func (m *memCache) CompareAndSet(ctx context.Context, key, old, value string, ttl time.Duration) (bool, error) {
	if v, ok, _ := m.Get(ctx, key); !ok || v != old {
		return false, m.err
	}
	return true, m.Set(ctx, key, value, ttl)
}

func (m *memCache) SetFenced(ctx context.Context, key, value string, ttl time.Duration, token int64) (bool, error) {
	m.token = token
	return token > 41, m.Set(ctx, key, value, ttl)
}

func (m *memCache) RemoveFenced(ctx context.Context, key string, token int64) (bool, error) {
	m.token = token
	return m.Remove(ctx, key)
}

func (m *memCache) HashSet(_ context.Context, key, field, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hashes == nil {
		m.hashes = map[string]map[string]string{}
	}
	if m.hashes[key] == nil {
		m.hashes[key] = map[string]string{}
	}
	m.hashes[key][field] = value
	return m.err
}

func (m *memCache) HashGet(_ context.Context, key, field string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.hashes[key][field]
	return v, ok, m.err
}

func (m *memCache) HashGetAll(_ context.Context, key string) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hashes[key], m.err
}

func (m *memCache) HashDelete(_ context.Context, key, field string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.hashes[key][field]
	delete(m.hashes[key], field)
	return ok, m.err
}

func (m *memCache) HashIncrement(ctx context.Context, key, field string, by int64) (int64, error) {
	v, _, _ := m.HashGet(ctx, key, field)
	n, _ := strconv.ParseInt(v, 10, 64)
	return n + by, m.HashSet(ctx, key, field, strconv.FormatInt(n+by, 10))
}

// fakeDB records what it is asked and answers as told.
type fakeDB struct {
	sql    string
	params map[string]any
	rows   string
	n      int
	op     string
	table  string
	opts   string
	form   FormResult
	err    error
}

func (d *fakeDB) Query(_ context.Context, sql string, params map[string]any) (json.RawMessage, int, error) {
	d.sql, d.params = sql, params
	return json.RawMessage(d.rows), d.n, d.err
}

func (d *fakeDB) Scalar(_ context.Context, sql string, params map[string]any) (json.RawMessage, error) {
	d.sql, d.params = sql, params
	return json.RawMessage(d.rows), d.err
}

func (d *fakeDB) Exec(_ context.Context, sql string, params map[string]any) (int64, error) {
	d.sql, d.params = sql, params
	return int64(d.n), d.err
}

func (d *fakeDB) Form(_ context.Context, op, table string, options json.RawMessage) (FormResult, error) {
	d.op, d.table, d.opts = op, table, string(options)
	return d.form, d.err
}

type fakeLock struct{ confirm error }

func (l *fakeLock) Key() string                   { return "ae:{t1:OrderId:7}" }
func (l *fakeLock) Token() int64                  { return 42 }
func (l *fakeLock) Remaining() time.Duration      { return 3 * time.Second }
func (l *fakeLock) Held() bool                    { return true }
func (l *fakeLock) Confirm(context.Context) error { return l.confirm }
