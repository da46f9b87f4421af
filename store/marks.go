package store

import (
	"context"
	"database/sql"
	"time"
)

// A mark says that a tenant may have tasks which are not over. Its times are the database's,
// so that no node's clock matters.

// Mark marks a tenant, or marks it again.
func (s *Store) Mark(ctx context.Context, tenant string) error {
	return s.update(ctx, "mark tenant", func(tx *tx) error {
		_, err := tx.exec(`INSERT INTO {task_marks} (tenant, marked_at, seen_at) VALUES ($1, `+s.clock+`, 0)
			ON CONFLICT (tenant) DO UPDATE SET marked_at = excluded.marked_at`, tenant)
		return err
	})
}

// Marked returns the marked tenants that nobody has looked at for so long, and counts as a
// look: of several nodes that ask at once one gets a tenant.
func (s *Store) Marked(ctx context.Context, unseen time.Duration) ([]string, error) {
	var n int64
	if err := s.one(ctx, "SELECT count(*) FROM {task_marks} WHERE seen_at <= "+s.clock+" - $1", unseen.Microseconds()).Scan(&n); err != nil || n == 0 {
		return nil, classify(ctx, "marked tenants", err)
	}
	var list []string
	err := s.update(ctx, "marked tenants", func(tx *tx) (err error) {
		list, err = collect(ctx, name)(tx.sql.QueryContext(ctx, s.names.Replace(`UPDATE {task_marks} SET seen_at = `+s.clock+`
			WHERE seen_at <= `+s.clock+` - $1 RETURNING tenant`), unseen.Microseconds()))
		return err
	})
	return list, err
}

func name(row scanner) (n string, err error) {
	err = row.Scan(&n)
	return n, err
}

// Unmark forgets a tenant that was not marked again for so long.
func (s *Store) Unmark(ctx context.Context, tenant string, unmarked time.Duration) error {
	return s.update(ctx, "unmark tenant", func(tx *tx) error {
		_, err := tx.exec("DELETE FROM {task_marks} WHERE tenant = $1 AND marked_at <= "+s.clock+" - $2", tenant, unmarked.Microseconds())
		return err
	})
}

// ScheduleState is how far an API's schedule has come.
type ScheduleState struct {
	Tenant, API string
	FiredAt     time.Time // the last time that was run or noted as missed; zero: none yet
	LastTask    string
	Missed      int64
	MissedAt    time.Time // the last one
	Reason      string    // why it was missed
}

// Schedule returns how far a schedule has come.
func (s *Store) Schedule(ctx context.Context, tenant, api string) (ScheduleState, error) {
	st := ScheduleState{Tenant: tenant, API: api}
	var fired, missed sql.NullInt64
	err := s.one(ctx, "SELECT fired_at, last_task, missed, missed_at, reason FROM {schedules} WHERE tenant = $1 AND api = $2", tenant, api).
		Scan(&fired, &st.LastTask, &st.Missed, &missed, &st.Reason)
	if err == sql.ErrNoRows {
		return st, nil
	}
	if fired.Valid {
		st.FiredAt = fromMicros(fired.Int64)
	}
	if missed.Valid {
		st.MissedAt = fromMicros(missed.Int64)
	}
	return st, classify(ctx, "schedule", err)
}

// SaveSchedule moves a schedule on from what it was; false: another node has.
func (s *Store) SaveSchedule(ctx context.Context, from, to ScheduleState) (moved bool, err error) {
	err = s.update(ctx, "save schedule", func(tx *tx) error {
		missed := sql.NullInt64{Int64: to.MissedAt.UnixMicro(), Valid: !to.MissedAt.IsZero()}
		args := []any{to.Tenant, to.API, to.FiredAt.UnixMicro(), to.LastTask, to.Missed, missed, to.Reason}
		text := `INSERT INTO {schedules} (tenant, api, fired_at, last_task, missed, missed_at, reason) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
		if !from.FiredAt.IsZero() {
			text = `UPDATE {schedules} SET fired_at = $3, last_task = $4, missed = $5, missed_at = $6, reason = $7 WHERE tenant = $1 AND api = $2 AND fired_at = $8`
			args = append(args, from.FiredAt.UnixMicro())
		}
		n, err := tx.exec(text, args...)
		moved = n == 1
		return err
	})
	return moved, err
}

// Queue is the writing side of an SQLite database, for the tables of the task queue; nil on
// PostgreSQL, whose pool is the caller's.
func (s *Store) Queue() *sql.DB {
	if s.target.Postgres {
		return nil
	}
	return s.write
}
