package tenantdb

import (
	"context"
	"errors"
	"fmt"

	"apiengine/store/tenantdb/internal/litedb"
)

// LimitPages makes the SQLite database full at n pages.
func LimitPages(db *DB, n int) error {
	b, ok := db.b.(*liteBackend)
	if !ok {
		return errors.New("no SQLite database")
	}
	c, err := b.writers.get(context.Background())
	if err != nil {
		return err
	}
	defer b.writers.put(c)
	_, err = c.Run(context.Background(), litedb.Call{SQL: fmt.Sprintf("PRAGMA max_page_count = %d", n)})
	return err
}

// QueryBare is Query without what protects the transaction from a statement that fails.
func (tx *Tx) QueryBare(ctx context.Context, sql string, args ...any) error {
	return tx.platform(ctx, sql, args, new(any))
}
