package postgres_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/locktest"
	"apiengine/lockwrap/postgres"
)

// What the tests of all backends share.
var (
	request = locktest.Request
	acquire = locktest.Acquire
	release = locktest.Release
)

func node(t *testing.T, name, url string) *lockwrap.Manager {
	t.Helper()
	return locktest.Node(t, lockwrap.Config{Backend: open(t, postgres.Config{URL: url, PoolSize: 2}), Instance: name, Prefix: "p"})
}

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

const lockName = "p:{acme:OrderId:42}"

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
