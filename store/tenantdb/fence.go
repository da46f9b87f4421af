package tenantdb

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"apiengine/store/tenantdb/internal/litedb"
)

// The guard's rows are kept for as long as a holder might come back late. When one is
// removed, the floor of its lock's bucket is raised to its token in the same transaction: no
// token up to that passes the guard of any lock of the bucket, so forgetting a lock never
// lets a stale holder in. Tokens are times in microseconds, so living holders are far above.

const (
	fenceBuckets = 256
	cleanBatch   = 1000 // rows of one transaction
)

func bucket(key string) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % fenceBuckets)
}

// fenceFloors are the largest tokens of rows, by bucket.
func fenceFloors(keys []string, tokens []int64) map[int]int64 {
	floors := map[int]int64{}
	for i, key := range keys {
		b := bucket(key)
		floors[b] = max(floors[b], tokens[i])
	}
	return floors
}

// CleanFence removes the guard rows of locks that nobody has used for age, which must be
// longer than any holder can be late, and returns how many. Rows in use are passed over;
// several nodes may do it at once. The error is store_unavailable or ctx's cause; what was
// removed until then stays removed.
func (db *DB) CleanFence(ctx context.Context, age time.Duration) (removed int, err error) {
	for {
		n, err := db.b.cleanFence(ctx, age)
		removed += n
		if err != nil || n < cleanBatch {
			return removed, err
		}
	}
}

const (
	pgOldRows = "SELECT lock_key, token FROM _apiengine_fence WHERE sealed_at < clock_timestamp() - make_interval(secs => $1)" +
		" LIMIT $2 FOR UPDATE SKIP LOCKED"
	pgRaise = "INSERT INTO _apiengine_fence_floor AS f (bucket, token) SELECT * FROM unnest($1::int[], $2::bigint[])" +
		" ON CONFLICT (bucket) DO UPDATE SET token = greatest(f.token, excluded.token)"
	pgRemove = "DELETE FROM _apiengine_fence WHERE lock_key = ANY ($1)"
)

func (b *pgBackend) cleanFence(ctx context.Context, age time.Duration) (removed int, err error) {
	err = pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT set_config('search_path', $1, true)", b.own); err != nil {
			return err
		}
		var keys []string
		var tokens []int64
		rows, err := tx.Query(ctx, pgOldRows, pgx.QueryExecModeExec, age.Seconds(), cleanBatch)
		if err != nil {
			return err
		}
		var key string
		var token int64
		if _, err := pgx.ForEachRow(rows, []any{&key, &token}, func() error {
			keys, tokens = append(keys, key), append(tokens, token)
			return nil
		}); err != nil || len(keys) == 0 {
			return err
		}
		floors := fenceFloors(keys, tokens)
		buckets := slices.Sorted(maps.Keys(floors)) // in order, so that two cleaners don't wait for each other
		raised := make([]int64, len(buckets))
		for i, n := range buckets {
			raised[i] = floors[n]
		}
		if _, err := tx.Exec(ctx, pgRaise, pgx.QueryExecModeExec, buckets, raised); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, pgRemove, pgx.QueryExecModeExec, keys)
		removed = len(keys)
		return err
	})
	if err != nil {
		return 0, pgError(ctx, time.Time{}, err)
	}
	return removed, nil
}

const (
	liteOldRows = `SELECT lock_key, token FROM _apiengine_fence
		WHERE sealed_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?1) LIMIT ?2`
	liteRaise = `INSERT INTO _apiengine_fence_floor AS f (bucket, token) VALUES (?1, ?2)
		ON CONFLICT (bucket) DO UPDATE SET token = max(f.token, excluded.token)`
	liteRemove = `DELETE FROM _apiengine_fence WHERE lock_key = ?1`
)

func (b *liteBackend) cleanFence(ctx context.Context, age time.Duration) (removed int, err error) {
	s := &liteSession{b: b}
	defer s.rollback()
	if err := s.write(ctx); err != nil {
		return 0, err
	}
	var keys []string
	var tokens []int64
	seconds := strconv.FormatFloat(-age.Seconds(), 'f', 3, 64) + " seconds"
	if _, err := s.w.Run(ctx, litedb.Call{SQL: liteOldRows, Args: []any{seconds, int64(cleanBatch)}, Row: func(r *litedb.Stmt) error {
		keys, tokens = append(keys, string(r.Bytes(0))), append(tokens, r.Int(1))
		return nil
	}}); err != nil {
		return 0, liteError(ctx, err)
	}
	calls := make([]litedb.Call, 0, 2*len(keys))
	for b, token := range fenceFloors(keys, tokens) {
		calls = append(calls, litedb.Call{SQL: liteRaise, Args: []any{int64(b), token}})
	}
	for _, key := range keys {
		calls = append(calls, litedb.Call{SQL: liteRemove, Args: []any{key}})
	}
	for _, c := range calls {
		if _, err := s.w.Run(ctx, c); err != nil {
			return 0, liteError(ctx, err)
		}
	}
	return len(keys), s.commit(ctx)
}
