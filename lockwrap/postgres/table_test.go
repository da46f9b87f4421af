package postgres_test

import (
	"database/sql"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"apiengine/internal/testserver"
	"apiengine/lockwrap/postgres"
	"apiengine/migrations"
)

const shape = `SELECT (SELECT string_agg(column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(collation_name, ''), ', ' ORDER BY ordinal_position)
	FROM information_schema.columns WHERE table_schema = '_apiengine_platform' AND table_name = 'locks') || c.reloptions::text || c.relpersistence::text
	|| (SELECT string_agg(pg_get_indexdef(indexrelid), ', ') FROM pg_index WHERE indrelid = c.oid)
	FROM pg_class c WHERE c.oid = '_apiengine_platform.locks'::regclass`

func TestTheServersMigrationMakesTheSameTable(t *testing.T) {
	var shapes [2]string
	for i := range shapes {
		url := testserver.Database(t)
		if i == 0 {
			db, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := migrations.Up(t.Context(), migrations.Target{DB: db, Postgres: true}); err != nil {
				t.Fatal(err)
			}
		}
		b := open(t, postgres.Config{URL: url, Schema: migrations.Schema})
		defer b.Close()
		if r, err := b.Acquire(t.Context(), claim("x", "n1:aa", time.Second)); err != nil || !r.Held {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := admin(t, url).QueryRow(t.Context(), shape).Scan(&shapes[i]); err != nil {
			t.Fatal(err)
		}
	}
	if shapes[0] != shapes[1] {
		t.Errorf("the migration's table\n%s\nthe backend's own\n%s", shapes[0], shapes[1])
	}
}
