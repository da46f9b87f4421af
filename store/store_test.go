package store_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"apiengine/internal/testserver"
	"apiengine/store"
	"apiengine/store/storetest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Opener {
		return sqliteAt(filepath.Join(t.TempDir(), "new folder", "a ?#%41 é.db"))
	})
}

func TestPostgres(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Opener { return postgresAt(testserver.Database(t)) })
}

func sqliteAt(path string) storetest.Opener {
	return func(t testing.TB, edit ...func(*store.Config)) *store.Store {
		t.Helper()
		return open(t, store.Config{SQLitePath: path, Sync: "normal"}, edit)
	}
}

func postgresAt(url string) storetest.Opener {
	return func(t testing.TB, edit ...func(*store.Config)) *store.Store {
		t.Helper()
		return open(t, store.Config{Pool: pool(t, url)}, edit)
	}
}

func pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// open is called from goroutines too, so it reports and returns nil.
func open(t testing.TB, cfg store.Config, edit []func(*store.Config)) *store.Store {
	t.Helper()
	for _, e := range edit {
		e(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := store.Open(ctx, cfg)
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() { s.Close() })
	return s
}
