package tenantdb

import (
	"context"
	"encoding/json"

	"apiengine/store/tenantdb/internal/sqltext"
)

// Statement runs one statement for an administrator, in a transaction of its own that is
// committed when it succeeds. What a script must not say is refused here too, but for the
// definition of functions, triggers and the like. Values are as in Tx.Query, and so are
// the errors and limits.
func (db *DB) Statement(ctx context.Context, sql string) (columns []string, rows [][]json.RawMessage, affected int64, err error) {
	tx, err := db.Begin(ctx, Guard{})
	if err != nil {
		return nil, nil, 0, err
	}
	defer tx.Rollback(ctx)
	w := db.writer(arrays)
	affected, err = tx.parsed(ctx, sqltext.Rules{Dialect: db.g.dialect, Admin: true}, query{sql: sql}, w)
	if err != nil {
		return nil, nil, 0, err
	}
	if b, ok := tx.s.(binder); ok && tx.defined {
		if err := b.bindRoutines(ctx); err != nil {
			return nil, nil, 0, err
		}
	}
	if err := json.Unmarshal(w.json(), &rows); err != nil {
		return nil, nil, 0, err
	}
	return w.names, rows, affected, tx.Commit(ctx)
}

// binder is a session whose database can define routines.
type binder interface {
	bindRoutines(ctx context.Context) error
}
