package tenantdb

import (
	"context"
	"errors"
	"strconv"
)

const (
	// pgMode changes between the platform's tables and the tenant's.
	pgMode = "SELECT set_config('search_path', $1, true), set_config('role', $2, true)"
	// pgEnter changes to the tenant's after a guard, and looks at the floor of the lock's
	// bucket: as a statement after the guard's wait for its row it sees what was cleaned
	// meanwhile.
	pgEnter = pgMode + ", coalesce((SELECT token FROM _apiengine_fence_floor WHERE bucket = $3), 0)::text"
	// The row's clock is the database's; xid lets pg_xact_status tell what became of it.
	pgGuard = "INSERT INTO _apiengine_fence AS f (lock_key, token, owner, sealed_at)" +
		" VALUES ($1, $2, $3, clock_timestamp())" +
		" ON CONFLICT (lock_key) DO UPDATE SET token = excluded.token, owner = excluded.owner, sealed_at = excluded.sealed_at" +
		" WHERE f.token < excluded.token OR f.token = excluded.token AND f.owner = excluded.owner" +
		" RETURNING extract(epoch FROM sealed_at)::text, pg_current_xact_id()::text"
	pgStored = "SELECT token::text, owner, extract(epoch FROM sealed_at)::text FROM _apiengine_fence WHERE lock_key = $1"
)

func (s *pgSession) guard(ctx context.Context, g Guard) error {
	if s.dead != nil {
		return s.dead
	}
	statements := append([]pgStatement{s.b.mode(s.b.own, s.b.self)}, s.b.guard(g)...)
	for i := range statements {
		statements[i].name = "" // only begin can try again on a session that lacks what was prepared
	}
	rows, err := s.flush(ctx, statements...)
	if err != nil {
		s.dead = err // outside the savepoint of a statement: PostgreSQL has aborted the transaction
		return err
	}
	return s.sealed(ctx, g, rows)
}

// mode is the statement that changes to other tables.
func (b *pgBackend) mode(path, role string) pgStatement {
	return pgStatement{sql: pgMode, args: texts(path, role), mute: true}
}

// guard is a guard and the way from the platform's tables to the tenant's.
func (b *pgBackend) guard(g Guard) []pgStatement {
	return []pgStatement{
		{name: "apiengine_guard", sql: pgGuard, args: texts(g.Key, strconv.FormatInt(g.Token, 10), g.Owner)},
		{name: "apiengine_enter", sql: pgEnter, args: texts(b.path, b.role, strconv.Itoa(bucket(g.Key)))},
	}
}

// ours runs statements on the platform's tables and returns the rows of the last of them.
func (s *pgSession) ours(ctx context.Context, statements ...pgStatement) ([][]string, error) {
	all := append([]pgStatement{s.b.mode(s.b.own, s.b.self)}, statements...)
	return s.flush(ctx, append(all, s.b.mode(s.b.path, s.b.role))...)
}

// sealed looks at the rows of a guard and of the statement after it: without the guard's
// own it was refused, and a token that is not above the floor is as stale.
func (s *pgSession) sealed(ctx context.Context, g Guard, rows [][]string) error {
	floor, err := strconv.ParseInt(rows[len(rows)-1][2], 10, 64)
	if err == nil && len(rows) == 2 && g.Token > floor {
		if s.first.guard.Key == "" {
			s.first = pgWitness{guard: g, sealed: rows[0][0], xid: rows[0][1]}
		}
		return nil
	}
	stale := &StaleError{Key: g.Key, Token: g.Token, Stored: floor}
	s.dead = stale
	if len(rows) == 1 && err == nil {
		rows, err = s.ours(ctx, pgStatement{sql: pgStored, args: texts(g.Key)})
		if err == nil && len(rows) == 1 {
			var token int64
			token, err = strconv.ParseInt(rows[0][0], 10, 64)
			stale.Stored = max(stale.Stored, token)
		}
	}
	s.dead = errors.Join(stale, err)
	return s.dead
}
