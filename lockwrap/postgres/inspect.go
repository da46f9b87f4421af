package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"apiengine/lockwrap"
)

var _ lockwrap.Inspector = (*Backend)(nil)

// Locks is lockwrap.Inspector's. It reads the whole table, but stops nobody else.
func (b *Backend) Locks(ctx context.Context, prefix string) ([]lockwrap.Holding, error) {
	return b.inspect(ctx, "locks", b.sql.locks, prefix)
}

// Lock is lockwrap.Inspector's.
func (b *Backend) Lock(ctx context.Context, lock string) (lockwrap.Holding, error) {
	list, err := b.inspect(ctx, "lock", b.sql.lock, lock)
	return append(list, lockwrap.Holding{})[0], err
}

// inspect changes nothing, whatever its error.
func (b *Backend) inspect(ctx context.Context, op, sql, arg string) ([]lockwrap.Holding, error) {
	rows, err := b.pool.Query(ctx, sql, pgx.QueryExecModeExec, arg)
	var list []lockwrap.Holding
	if err == nil {
		list, err = pgx.CollectRows(rows, holding)
	}
	if missing(err) { // nobody has locked anything yet
		return nil, nil
	}
	if err != nil {
		return nil, &lockwrap.BackendError{Op: op, Err: err}
	}
	return list, nil
}

// holding reads one row.
func holding(row pgx.CollectableRow) (h lockwrap.Holding, err error) {
	var since, left int64
	var line []string
	err = row.Scan(&h.Lock, &h.Owner.Token, &h.Owner.Holder, &h.By.API, &since, &left, &line)
	h.By.Since, h.Left = time.UnixMicro(since), time.Duration(left)*time.Microsecond
	for _, place := range line {
		node, micros, _ := strings.Cut(place, " ")
		w := lockwrap.Waiting{Node: node}
		if us, err := strconv.ParseInt(micros, 10, 64); err == nil {
			w.Since = time.UnixMicro(us)
		}
		h.Waiting = append(h.Waiting, w)
	}
	return h, err
}
