package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Shown is how far people have seen a task come, by what its slices told before their commit.
type Shown struct {
	Task, Run string // Run is the slice that has told Total and Msg
	Current   int64  // the most that was ever told
	Total     int64  // 0: not known
	Best      int    // the most thousandths that were ever shown
	Msg       string
}

// KeepShown keeps what slices of one tenant's tasks have told; Current and Best never go back.
func (s *Store) KeepShown(ctx context.Context, tenant string, list []Shown) error {
	return s.update(ctx, "keep progress", func(tx *tx) error {
		for _, p := range list {
			_, err := tx.exec(`INSERT INTO {task_shown} AS s (tenant, task, run, current, total, best, msg, at) VALUES ($1, $2, $3, $4, $5, $6, $7, `+s.clock+`)
				ON CONFLICT (tenant, task) DO UPDATE SET run = excluded.run, total = excluded.total, msg = excluded.msg, at = excluded.at,
				current = CASE WHEN excluded.current > s.current THEN excluded.current ELSE s.current END,
				best = CASE WHEN excluded.best > s.best THEN excluded.best ELSE s.best END`,
				tenant, p.Task, p.Run, p.Current, p.Total, p.Best, p.Msg)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Shown returns what is kept of those of the tasks that have told anything.
func (s *Store) Shown(ctx context.Context, tenant string, tasks []string) ([]Shown, error) {
	args, marks := []any{tenant}, make([]string, len(tasks))
	for i, task := range tasks {
		args, marks[i] = append(args, task), fmt.Sprintf("$%d", i+2)
	}
	return collect(ctx, scanShown)(s.rows(ctx, "SELECT task, run, current, total, best, msg FROM {task_shown} WHERE tenant = $1 AND task IN ("+strings.Join(marks, ", ")+")", args...))
}

func scanShown(row scanner) (p Shown, err error) {
	err = row.Scan(&p.Task, &p.Run, &p.Current, &p.Total, &p.Best, &p.Msg)
	return p, err
}

// ForgetShown deletes what was told longer ago than age.
func (s *Store) ForgetShown(ctx context.Context, age time.Duration) (n int64, err error) {
	err = s.update(ctx, "forget progress", func(tx *tx) error {
		n, err = tx.exec("DELETE FROM {task_shown} WHERE at < "+s.clock+" - $1", age.Microseconds())
		return err
	})
	return n, err
}
