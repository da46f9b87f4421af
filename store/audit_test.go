package store_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"apiengine/internal/testserver"
	"apiengine/store"
	"apiengine/store/storetest"
)

// Not even who reaches the platform's database by accident of a statement changes the trail.
func TestAuditRowsStay(t *testing.T) {
	path, url := filepath.Join(t.TempDir(), "a.db"), testserver.Database(t)
	file, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		name, table string
		open        storetest.Opener
		db          *sql.DB
		removals    []string
	}{
		{"sqlite", "audit", sqliteAt(path), file, []string{"DELETE FROM audit"}},
		{"postgres", "_apiengine_platform.audit", postgresAt(url), stdlib.OpenDBFromPool(pool(t, url)),
			[]string{"DELETE FROM _apiengine_platform.audit", "TRUNCATE _apiengine_platform.audit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.open(t)
			if err := s.AddAudit(t.Context(), store.AuditEntry{Actor: "a", Action: "x"}); err != nil {
				t.Fatal(err)
			}
			for _, text := range append(c.removals, "UPDATE "+c.table+" SET actor = 'b'") {
				if _, err := c.db.ExecContext(t.Context(), text); err == nil {
					t.Errorf("%s was accepted", text)
				}
			}
			list, err := s.Audit(t.Context(), store.AuditQuery{Limit: 10})
			if err != nil || len(list) != 1 || list[0].Actor != "a" {
				t.Errorf("left: %+v, %v", list, err)
			}
		})
	}
}
