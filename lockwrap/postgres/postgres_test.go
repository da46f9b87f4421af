package postgres_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"apiengine/budget"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/locktest"
	"apiengine/lockwrap/postgres"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func open(t testing.TB, cfg postgres.Config) *postgres.Backend {
	t.Helper()
	b, err := postgres.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	// Leases of some tests are shorter than a connection's first statements take.
	if _, err := b.Acquire(t.Context(), claim("warm", rand.Text(), time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	return b
}

func claim(lock, holder string, ttl time.Duration) lockwrap.Claim {
	return lockwrap.Claim{Lock: lock, Holder: holder, TTL: ttl, Keep: time.Hour, API: "order_pay", Node: "p:w:" + holder, Queue: true}
}

func node(t *testing.T, name, url string) *lockwrap.Manager {
	t.Helper()
	m, err := lockwrap.New(lockwrap.Config{Backend: open(t, postgres.Config{URL: url, PoolSize: 2}), Instance: name, Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return m
}

const lockName = "p:{acme:OrderId:42}"

func request(lease, wait time.Duration) lockwrap.Request {
	return lockwrap.Request{Key: lockwrap.Key{Tenant: "acme", Scope: "OrderId", Value: "42"}, API: "order_pay",
		Plan: budget.Plan{Lease: lease, Hold: lease, Wait: wait, Run: lease, Margin: budget.Margin(lease)}}
}

func acquire(t *testing.T, m *lockwrap.Manager, r lockwrap.Request) *lockwrap.Lease {
	t.Helper()
	l, err := m.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *lockwrap.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	url := testserver.Database(t)
	locktest.Run(t, func(t testing.TB) lockwrap.Backend { return open(t, postgres.Config{URL: url, PoolSize: 2}) })
}

func TestContractThroughPgBouncer(t *testing.T) {
	bouncer := testserver.NewPgBouncer(t, testserver.Postgres(t))
	direct := testserver.Database(t)
	url := bouncer.URL(direct[strings.LastIndex(direct, "/")+1 : strings.Index(direct, "?")])
	locktest.RunPolling(t, func(t testing.TB) lockwrap.Backend { return open(t, postgres.Config{URL: url, PoolSize: 2}) })
	b := open(t, postgres.Config{URL: url})
	defer b.Close()
	heard := false
	err := b.Notify(t.Context(), "p:w:n1", func(string) { heard = true })
	if err == nil || !strings.Contains(err.Error(), "pooler") || heard {
		t.Errorf("Notify through a pooler: %v, heard %v", err, heard)
	}
}

func TestNewRefuses(t *testing.T) {
	const url = "postgres://me:hunter2@h/db"
	for want, cfg := range map[string]postgres.Config{
		"Config.URL is missing":        {},
		"Config.URL cannot be used":    {URL: "postgres://me:hunter2@h:port/db"},
		"default_query_exec_mode":      {URL: url + "?default_query_exec_mode=slowly"},
		"Config.Timeout":               {URL: url, Timeout: time.Millisecond},
		"Config.PoolSize":              {URL: url, PoolSize: -1},
		"Config.Clean must be positiv": {URL: url, Clean: -1},
	} {
		_, err := postgres.New(cfg)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want an error about %s", cfg, err, want)
		}
	}
}
