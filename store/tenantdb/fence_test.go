package tenantdb_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

// A removed row leaves its token behind as a floor: no stale holder gets in because the
// lock was forgotten, and a new one does.
func TestCleanedGuardsStillRefuse(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		const locks = 1500 // more than one batch, and several of each bucket
		tx := begin(t, db, tenantdb.Guard{})
		for i := range locks {
			if err := tx.Guard(ctx, tenantdb.Guard{Key: fmt.Sprint("old", i), Token: int64(1000 + i), Owner: "me"}); err != nil {
				t.Fatal(err)
			}
		}
		commit(t, tx)
		var inUse *tenantdb.Tx
		if db.Dialect() == "postgres" { // SQLite has one writer: the cleaning would wait for it
			inUse = begin(t, db, tenantdb.Guard{Key: "old7", Token: 1_000_000, Owner: "user"})
		}
		if n, err := db.CleanFence(ctx, time.Hour); n != 0 || err != nil {
			t.Fatalf("rows of this hour: %d removed, %v", n, err)
		}
		want := locks
		if db.Dialect() == "postgres" {
			want--
		}
		if n, err := db.CleanFence(ctx, -time.Minute); n != want || err != nil {
			t.Fatalf("%d removed, %v, want %d", n, err, want)
		}
		if inUse != nil {
			inUse.Rollback(ctx)
		}
		for i := 0; i < locks; i += 100 {
			key, token := fmt.Sprint("old", i), int64(1000+i)
			_, err := db.Begin(ctx, tenantdb.Guard{Key: key, Token: token, Owner: "late"})
			wantKind(t, key, err, fault.StaleFence)
			stale := new(tenantdb.StaleError)
			if !errors.As(err, &stale) || stale.Stored < token {
				t.Errorf("%s: the floor is told as %d", key, stale.Stored)
			}
			nested := begin(t, db, tenantdb.Guard{})
			wantKind(t, key+" nested", nested.Guard(ctx, tenantdb.Guard{Key: key, Token: token, Owner: "late"}), fault.StaleFence)
			nested.Rollback(ctx)
			commit(t, begin(t, db, tenantdb.Guard{Key: key, Token: stale.Stored + 1, Owner: "new"}))
		}
	})
}

// The stale holder's guard waits for the very transaction that removes the row it would
// have been refused by: it must see the floor that was raised meanwhile.
func TestAGuardThatWaitsForTheCleaning(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		var wg sync.WaitGroup
		var got sync.Map
		for round := range 30 {
			key := fmt.Sprint("k", round)
			commit(t, begin(t, db, tenantdb.Guard{Key: key, Token: 100, Owner: "gone"}))
			for i := range 4 {
				wg.Go(func() {
					tx, err := db.Begin(ctx, tenantdb.Guard{Key: key, Token: 99, Owner: "stale"})
					got.Store(fmt.Sprint(key, i), fault.Of(err))
					if err == nil {
						tx.Rollback(ctx)
					}
				})
			}
			wg.Go(func() {
				if _, err := db.CleanFence(ctx, -time.Minute); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
		}
		got.Range(func(key, kind any) bool {
			if kind != fault.StaleFence {
				t.Errorf("%v: %v", key, kind)
			}
			return true
		})
	})
}
