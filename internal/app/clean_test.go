package app

import (
	"context"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"apiengine/store/tenantdb"
)

// A round of cleaning visits every open tenant, in a named database its guard rows, and says so where it removed something.
func TestCleanVisitsEveryTenant(t *testing.T) {
	d := &databases{open: map[place]*tenantdb.DB{}}
	t.Cleanup(d.close)
	for _, at := range []place{{tenant: "a"}, {tenant: "b"}, {tenant: "unused"}, {"unused", "named"}} {
		db, err := tenantdb.OpenSQLite(t.Context(), tenantdb.SQLiteConfig{Path: filepath.Join(t.TempDir(), "t.db"), Sync: "normal"})
		if err != nil {
			t.Fatal(err)
		}
		d.open[at] = db
		if at.tenant == "unused" && at.name == "" {
			continue
		}
		tx, err := db.Begin(t.Context(), tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
		if err != nil {
			t.Fatal(err)
		}
		attempt, _, err := db.Claim(t.Context(), tenantdb.Claim{ID: "k", Fingerprint: "f", Execution: "x", Keep: 1}) // over at once
		if err == nil {
			err = tx.Complete(t.Context(), attempt, tenantdb.Answer{})
		}
		if err == nil {
			err = tx.Commit(context.Background())
		}
		if err == nil {
			_, _, err = db.AddTask(t.Context(), tenantdb.NewTask{ID: "t", API: "a", Param: []byte("{}"), Principal: []byte("{}"), Source: "api"})
		}
		if err == nil {
			_, err = db.CancelTask(t.Context(), "t")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	removed := map[string]int{}
	swept := 0
	sweep := func(context.Context, string) error { swept++; return nil }
	note := func(tenant, what string, n int64, err error) {
		if err != nil {
			t.Errorf("%s, %s: %v", tenant, what, err)
		}
		removed[tenant+" "+what] += int(n)
	}
	d.clean(t.Context(), ages{fenceAge, time.Hour}, sweep, note)
	if want := map[string]int{"a kept answers": 1, "b kept answers": 1}; !maps.Equal(removed, want) {
		t.Errorf("guard rows of this minute stay, answers that are over go: %v", removed)
	}
	clear(removed)
	d.clean(t.Context(), ages{-fenceAge, -time.Hour}, sweep, note)
	if want := map[string]int{"a guard rows": 1, "b guard rows": 1, "a tasks": 1, "b tasks": 1, "unused guard rows": 1}; !maps.Equal(removed, want) {
		t.Errorf("removed %v", removed)
	}
	if swept != 6 {
		t.Errorf("%d outboxes were swept, want three twice", swept)
	}
}
