package tenantdb

import (
	"context"
	"sync"

	"apiengine/store/tenantdb/internal/litedb"
)

// Times are milliseconds since 1970.
const liteIdempotency = `CREATE TABLE IF NOT EXISTS _apiengine_idempotency (
	id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, fingerprint TEXT NOT NULL, execution TEXT NOT NULL, head TEXT NOT NULL, body BLOB
) STRICT, WITHOUT ROWID`

const (
	liteNow      = `CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)`
	liteAnswered = `SELECT fingerprint, execution, head, body FROM _apiengine_idempotency WHERE id = ?1 AND expires_at > ` + liteNow
	liteComplete = `INSERT INTO _apiengine_idempotency AS i (id, fingerprint, execution, expires_at, head, body)
VALUES (?1, ?2, ?3, ` + liteNow + ` + ?4, ?5, CAST(?6 AS BLOB))
ON CONFLICT (id) DO UPDATE SET fingerprint = excluded.fingerprint, execution = excluded.execution,
	expires_at = excluded.expires_at, head = excluded.head, body = excluded.body
WHERE i.expires_at <= ` + liteNow
	liteForget = `DELETE FROM _apiengine_idempotency WHERE id IN
(SELECT id FROM _apiengine_idempotency WHERE expires_at <= ` + liteNow + ` LIMIT 10000)`
)

// liteClaims are the claims of this process, which are all that there are.
type liteClaims struct {
	mu   sync.Mutex
	n    int64 // the last attempt's number
	live map[string]*Claim
}

// enter claims the key, or returns the claim that has it.
func (l *liteClaims) enter(c *Claim) (number int64, other *Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.live[c.ID]; other != nil {
		return 0, other
	}
	if l.live == nil {
		l.live = map[string]*Claim{}
	}
	l.live[c.ID] = c
	l.n++
	return l.n, nil
}

func (l *liteClaims) leave(id, execution string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.live[id]; c != nil && c.Execution == execution {
		delete(l.live, id)
	}
}

func (l *liteClaims) has(id, execution string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.live[id]
	return c != nil && c.Execution == execution
}

// claim enters the claim first and looks for an answer then: a run that ends in between
// has committed its answer before it left.
func (b *liteBackend) claim(ctx context.Context, c Claim) (number int64, row *claimRow, err error) {
	number, other := b.claims.enter(&c)
	if other != nil {
		return 0, &claimRow{fingerprint: other.Fingerprint, execution: other.Execution}, nil
	}
	if row, err = b.answer(ctx, c.ID); row != nil || err != nil {
		b.claims.leave(c.ID, c.Execution)
	}
	return number, row, err
}

// answer is the answer that is kept, or nil.
func (b *liteBackend) answer(ctx context.Context, id string) (row *claimRow, err error) {
	c, err := b.readers.get(ctx)
	if err != nil {
		return nil, err
	}
	defer b.readers.put(c)
	_, err = c.Run(ctx, litedb.Call{SQL: liteAnswered, Args: []any{id}, Row: func(r *litedb.Stmt) error {
		row = &claimRow{string(r.Bytes(0)), string(r.Bytes(1)), string(r.Bytes(2)), append([]byte(nil), r.Bytes(3)...)}
		return nil
	}})
	if err != nil {
		return nil, liteError(ctx, err)
	}
	return row, nil
}

func (b *liteBackend) renew(_ context.Context, a *Attempt) (bool, error) {
	return b.claims.has(a.ID, a.Execution), nil
}

func (b *liteBackend) end(_ context.Context, a *Attempt, _ bool) error {
	b.claims.leave(a.ID, a.Execution)
	return nil
}

func (b *liteBackend) forget(ctx context.Context) (all int64, err error) {
	for {
		n, err := b.forgetSome(ctx)
		if all += n; err != nil || n == 0 {
			return all, err
		}
	}
}

func (b *liteBackend) forgetSome(ctx context.Context) (int64, error) {
	c, err := b.writers.get(ctx)
	if err != nil {
		return 0, err
	}
	defer b.writers.put(c)
	n, err := c.Run(ctx, litedb.Call{SQL: liteForget})
	if err != nil {
		return 0, liteError(ctx, err)
	}
	return n, nil
}

func (s *liteSession) complete(ctx context.Context, a *Attempt, head string, body []byte) (bool, error) {
	if s.dead != nil {
		return false, s.dead
	}
	if !s.b.claims.has(a.ID, a.Execution) {
		return false, nil
	}
	if err := s.write(ctx); err != nil {
		return false, err
	}
	n, err := s.w.Run(ctx, litedb.Call{SQL: liteComplete,
		Args: []any{a.ID, a.Fingerprint, a.Execution, a.Keep.Milliseconds(), head, string(body)}})
	if err != nil {
		return false, s.failed(ctx, err)
	}
	if n == 1 {
		s.completed = a
	}
	return n == 1, nil
}
