package tenantdb

import (
	"context"
	"errors"
	"strconv"
)

const (
	// pgMode changes between the platform's tables and the tenant's.
	pgMode = "SELECT set_config('search_path', $1, true), set_config('role', $2, true)"
	// The row's clock is the database's; xid lets pg_xact_status tell what became of it.
	pgGuard = "INSERT INTO _apiengine_fence AS f (lock_key, token, owner, sealed_at)" +
		" VALUES ($1, $2, $3, clock_timestamp())" +
		" ON CONFLICT (lock_key) DO UPDATE SET token = excluded.token, owner = excluded.owner, sealed_at = excluded.sealed_at" +
		" WHERE f.token < excluded.token OR f.token = excluded.token AND f.owner = excluded.owner" +
		" RETURNING extract(epoch FROM sealed_at)::text, pg_current_xact_id()::text," +
		// Of a row that was there (xmax) the token has been compared. A new one may stand where
		// the cleaning, which this statement has waited for, removed another: the floor is read
		// by a function, since that sees what was committed until now.
		" (CASE WHEN f.xmax = 0 THEN _apiengine_fence_floor_of($4) ELSE 0 END)::text," +
		" set_config('search_path', $5, true), set_config('role', $6, true)"
	pgStored = "SELECT greatest((SELECT token FROM _apiengine_fence WHERE lock_key = $1), _apiengine_fence_floor_of($2))::text"
)

func (s *pgSession) guard(ctx context.Context, g Guard) error {
	if s.dead != nil {
		return s.dead
	}
	st := s.b.guard(g)
	st.name = "" // only begin can try again on a session that lacks what was prepared
	rows, err := s.flush(ctx, s.b.mode(s.b.own, s.b.self), st)
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

// guard is the guard's statement, run on the platform's tables. Where it succeeds it ends by
// changing to the tenant's.
func (b *pgBackend) guard(g Guard) pgStatement {
	return pgStatement{name: "apiengine_guard", sql: pgGuard, args: texts(g.Key, strconv.FormatInt(g.Token, 10), g.Owner,
		strconv.Itoa(bucket(g.Key)), b.path, b.role)}
}

// ours runs statements on the platform's tables and returns the rows of the last of them.
func (s *pgSession) ours(ctx context.Context, statements ...pgStatement) ([][]string, error) {
	all := append([]pgStatement{s.b.mode(s.b.own, s.b.self)}, statements...)
	return s.flush(ctx, append(all, s.b.mode(s.b.path, s.b.role))...)
}

// sealed looks at the guard's answer: no row, or a floor that is not below the token, says
// that it was refused.
func (s *pgSession) sealed(ctx context.Context, g Guard, rows [][]string) error {
	stale := &StaleError{Key: g.Key, Token: g.Token}
	var err error
	if len(rows) == 1 {
		if stale.Stored, err = strconv.ParseInt(rows[0][2], 10, 64); err == nil && g.Token > stale.Stored {
			if s.first.guard.Key == "" {
				s.first = pgWitness{guard: g, sealed: rows[0][0], xid: rows[0][1]}
			}
			return nil
		}
		s.dead = errors.Join(stale, err)
		return s.dead
	}
	s.dead = stale
	rows, err = s.ours(ctx, pgStatement{sql: pgStored, args: texts(g.Key, strconv.Itoa(bucket(g.Key)))})
	if err == nil && len(rows) == 1 {
		stale.Stored, err = strconv.ParseInt(rows[0][0], 10, 64)
	}
	s.dead = errors.Join(stale, err)
	return s.dead
}
