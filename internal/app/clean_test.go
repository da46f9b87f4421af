package app

import (
	"context"
	"path/filepath"
	"testing"

	"apiengine/store/tenantdb"
)

// A round of cleaning visits every open tenant, and says so where it removed something.
func TestCleanVisitsEveryTenant(t *testing.T) {
	d := &databases{open: map[string]*tenantdb.DB{}}
	t.Cleanup(d.close)
	for _, tenant := range []string{"a", "b", "unused"} {
		db, err := tenantdb.OpenSQLite(t.Context(), tenantdb.SQLiteConfig{Path: filepath.Join(t.TempDir(), "t.db"), Sync: "normal"})
		if err != nil {
			t.Fatal(err)
		}
		d.open[tenant] = db
		if tenant == "unused" {
			continue
		}
		tx, err := db.Begin(t.Context(), tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	removed := map[string]int{}
	note := func(tenant string, n int, err error) {
		if err != nil {
			t.Errorf("%s: %v", tenant, err)
		}
		removed[tenant] += n
	}
	d.clean(t.Context(), fenceAge, note)
	if len(removed) != 0 {
		t.Errorf("rows of this minute: %v", removed)
	}
	d.clean(t.Context(), -fenceAge, note)
	if len(removed) != 2 || removed["a"] != 1 || removed["b"] != 1 {
		t.Errorf("removed %v", removed)
	}
}
