package tenantdb_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"apiengine/store/tenantdb"
)

// update is a run of one UPDATE; each client has its own row and lock.
func update(db *tenantdb.DB, client int, guard bool, end func(tx *tenantdb.Tx) error) error {
	ctx := context.Background()
	g := tenantdb.Guard{Until: time.Now().Add(time.Minute)}
	if guard {
		g.Key, g.Token, g.Owner = fmt.Sprintf("tenant:api:%d", client), time.Now().UnixMicro(), "1795983406541592:node-1:0123456789abcdef0123456789abcdef"
	}
	tx, err := db.Begin(ctx, g)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "UPDATE t SET n = n + 1 WHERE id = @id", map[string]any{"id": int64(client)}); err != nil {
		return err
	}
	if end != nil {
		if err := end(tx); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// BenchmarkGuard is a run of one UPDATE with the guard against the same without.
func BenchmarkGuard(b *testing.B) {
	ratios(b, func(_ *testing.B, db *tenantdb.DB) (with, without func(client, n int) error) {
		return func(client, _ int) error { return update(db, client, true, nil) },
			func(client, _ int) error { return update(db, client, false, nil) }
	})
}

// BenchmarkIdempotency is a run of one UPDATE under the guard with an Idempotency-Key, from
// its claim to its end, against the same without a key.
func BenchmarkIdempotency(b *testing.B) {
	ratios(b, func(_ *testing.B, db *tenantdb.DB) (with, without func(client, n int) error) {
		return func(client, n int) error {
			ctx, name := context.Background(), fmt.Sprintf("%064d", client<<32+n)
			a, _, err := db.Claim(ctx, claimOf(name, name[:36]))
			if err != nil {
				return err
			}
			if err := update(db, client, true, func(tx *tenantdb.Tx) error { return tx.Complete(ctx, a, firstAnswer) }); err != nil {
				return err
			}
			return a.End(ctx, true)
		}, func(client, _ int) error { return update(db, client, true, nil) }
	})
}
