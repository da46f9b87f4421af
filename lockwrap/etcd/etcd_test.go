package etcd_test

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/etcd"
	"apiengine/lockwrap/locktest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func open(t testing.TB, cfg etcd.Config) *etcd.Backend {
	t.Helper()
	b, err := etcd.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	// Leases of some tests are shorter than a connection takes to be made.
	if _, err := b.Acquire(t.Context(), claim(rand.Text(), "n0:aa", time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	return b
}

func claim(lock, holder string, ttl time.Duration) lockwrap.Claim {
	return lockwrap.Claim{Lock: lock, Holder: holder, TTL: ttl, Keep: time.Hour, API: "order_pay", Node: "p:w:" + holder, Queue: true}
}

func TestContract(t *testing.T) {
	url := testserver.Etcd(t).URL()
	locktest.Run(t, func(t testing.TB) lockwrap.Backend { return open(t, etcd.Config{Endpoints: url}) })
}

func TestNewRefuses(t *testing.T) {
	for _, endpoints := range []string{"", "h:2379", "http://me:hunter2@h", "ftp://me:hunter2@h:1", "http://h:1,,http://h:2",
		"http://h:1,http://me:hunter2@h:2", "http://me:hunter2@h:1/path", "http://me:hunter2@h:1?x=y", "http://me:hunter2@h:port"} {
		_, err := etcd.New(etcd.Config{Endpoints: endpoints})
		if err == nil || !strings.Contains(err.Error(), "Config.Endpoints") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", endpoints, err)
		}
	}
	if _, err := etcd.New(etcd.Config{Endpoints: "http://h:1", Timeout: 1}); err == nil || !strings.Contains(err.Error(), "Config.Timeout") {
		t.Errorf("got %v", err)
	}
}

func decode(t *testing.T, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}
