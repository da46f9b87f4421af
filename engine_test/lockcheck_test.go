package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"apiengine/internal/app"
	"apiengine/internal/testserver"
)

// A start says what is wrong with Redis: it is refused where locks cannot work, warned of
// where they are weaker than they look, and not kept from a Redis that is down.
func TestStartChecksTheLockBackend(t *testing.T) {
	evicts := testserver.NewRedis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	admin := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(evicts.URL(), "redis://")})
	defer admin.Close()
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">pw", "~*", "&*", "+@read", "+@connection").Err(); err != nil {
		t.Fatal(err)
	}
	with := func(url string) func(*app.Settings) { return func(s *app.Settings) { s.RedisURL = url } }

	h := newHouse(t, backendPairs[0], with(evicts.URL()))
	if log := h.log.String(); !strings.Contains(log, "maxmemory-policy is allkeys-lru") {
		t.Errorf("no warning of eviction:\n%s", log)
	}

	s := app.Defaults()
	s.DataDir, s.AdminToken, s.RedisURL = t.TempDir(), adminToken, strings.Replace(evicts.URL(), "redis://", "redis://reader:pw@", 1)
	a, err := app.Open(t.Context(), s, app.NewLog(s, &syncBuffer{}))
	if err == nil {
		a.Close(context.Background())
		t.Fatal("started with a user that may not take locks")
	}
	if text := err.Error(); !strings.Contains(text, "redis-url") || !strings.Contains(text, "may not take a lock") || strings.Contains(text, "pw") {
		t.Errorf("refused with %q", text)
	}

	down := testserver.NewRedis(t)
	down.Kill()
	if h := newHouse(t, backendPairs[0], with(down.URL())); !strings.Contains(h.log.String(), "could not be checked") {
		t.Errorf("a Redis that is down:\n%s", h.log.String())
	}
}
