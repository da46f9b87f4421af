package engine_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"apiengine/internal/app"
	"apiengine/internal/testserver"
)

// pair is a lock and cache backend with a database.
type pair struct {
	name            string
	redis, postgres bool
}

var backendPairs = []pair{
	{"embedded lock, SQLite", false, false},
	{"Redis, SQLite", true, false},
	{"embedded lock, PostgreSQL", false, true},
	{"Redis, PostgreSQL", true, true},
}

// house is a whole node inside the test process.
type house struct {
	app     *app.App
	handler http.Handler
	log     *syncBuffer
}

var prefixes atomic.Int64

// newHouse opens an App on the pair's backends.
func newHouse(t testing.TB, p pair, change ...func(*app.Settings)) *house {
	t.Helper()
	s := app.Defaults()
	s.DataDir, s.AdminToken, s.SqliteSync = t.TempDir(), adminToken, "normal"
	s.Prefix = fmt.Sprintf("t%d", prefixes.Add(1))
	if p.redis {
		s.RedisURL = testserver.Redis(t).URL()
	}
	if p.postgres {
		s.DatabaseURL = testserver.Database(t)
	}
	if p.postgres && !p.redis {
		s.LockBackend = "embedded"
	}
	for _, c := range change {
		c(&s)
	}
	log := &syncBuffer{}
	a, err := app.Open(t.Context(), s, app.NewLog(s, log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", log.tail(8000))
		}
	})
	return &house{app: a, handler: a.Handler(), log: log}
}

// tenant makes a tenant for one test, so that tests of a house share nothing.
func (h *house) tenant(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("t%d", prefixes.Add(1))
	if _, err := h.app.Store.CreateTenant(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return name
}

// load brings definition and schema files into a tenant, all of which must be good.
func (h *house) load(t testing.TB, tenant string, files fs.FS) {
	t.Helper()
	if err := h.app.LoadFolder(t.Context(), tenant, files); err != nil {
		t.Fatal(strings.ReplaceAll(err.Error(), "\n", "\n\t"))
	}
}
