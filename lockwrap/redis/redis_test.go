package redis_test

import (
	"testing"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/locktest"
	"apiengine/lockwrap/redis"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func open(t testing.TB, cfg redis.Config) *redis.Backend {
	t.Helper()
	b, err := redis.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestContract(t *testing.T) {
	url := testserver.Redis(t).URL()
	locktest.Run(t, func(t testing.TB) lockwrap.Backend { return open(t, redis.Config{URL: url}) })
}
