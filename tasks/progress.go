package tasks

import (
	"context"
	"time"

	"apiengine/store/tenantdb"
)

// Shown is how far people have seen a task come, by what its slices told before their commit.
type Shown struct {
	Task, Run string // Run is the slice that has told Total and Msg
	Current   int64  // the most that was ever told
	Total     int64  // 0: not known
	Best      int    // the most thousandths that were ever shown
	Msg       string
}

// Progress keeps, in the platform's database, what running slices tell. Nothing is shown that
// is not kept, so that nothing goes back when a node dies.
type Progress interface {
	// KeepShown keeps what was told; Current and Best never go back.
	KeepShown(ctx context.Context, tenant string, list []Shown) error
	// Shown returns what is kept of those of the tasks that have told anything.
	Shown(ctx context.Context, tenant string, tasks []string) ([]Shown, error)
	// ForgetShown deletes what was told longer ago than age.
	ForgetShown(ctx context.Context, age time.Duration) (int64, error)
}

// show makes of rows what people see of them.
func (r *Runner) show(ctx context.Context, tenant string, rows ...tenantdb.Task) ([]Task, error) {
	var begun []string
	for _, t := range rows {
		if !t.StartedAt.IsZero() {
			begun = append(begun, t.ID)
		}
	}
	seen := map[string]Shown{}
	if len(begun) > 0 {
		list, err := r.cfg.Progress.Shown(ctx, tenant, begun)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			seen[s.Task] = s
		}
	}
	out := make([]Task, len(rows))
	for i, t := range rows {
		out[i] = shown(seen[t.ID].over(t))
	}
	return out, nil
}

// showOne is show for one row.
func (r *Runner) showOne(ctx context.Context, tenant string, t tenantdb.Task) (Task, error) {
	list, err := r.show(ctx, tenant, t)
	if err != nil {
		return Task{}, err
	}
	return list[0], nil
}

// over is the row with what its slices told. A slice that is gone may have told more than
// was ever committed; that stays, its Total and Msg do not.
func (s Shown) over(t tenantdb.Task) tenantdb.Task {
	t.Current, t.Best = max(t.Current, s.Current), max(t.Best, s.Best)
	told := s.Run != "" && s.Run == t.Run && t.State == tenantdb.TaskRunning
	if s.Total > 0 && (told || t.Total == 0) {
		t.Total = s.Total
	}
	if t.Total > 0 {
		t.Total = max(t.Total, t.Current)
	}
	if told && s.Msg != "" {
		t.Msg = s.Msg
	}
	return t
}

// keepShown keeps what slices of a tenant have told since the last look.
func (r *Runner) keepShown(ctx context.Context, tenant string, runs []*running) {
	var list []Shown
	var told []*running
	for _, run := range runs {
		if s, news := run.news(); news {
			list, told = append(list, s), append(told, run)
		}
	}
	if len(list) == 0 {
		return
	}
	err := r.cfg.Progress.KeepShown(ctx, tenant, list)
	if err == nil {
		return
	}
	for _, run := range told {
		run.toldAgain()
	}
	if ctx.Err() == nil {
		r.cfg.Log.Debug("what tasks have told could not be kept", "tenant", tenant, "error", err)
	}
}

// forgetShown deletes what nobody can ask for any more.
func (r *Runner) forgetShown(ctx context.Context) {
	if _, err := r.cfg.Progress.ForgetShown(ctx, r.cfg.Keep+r.cfg.Keep/8); err != nil && ctx.Err() == nil {
		r.cfg.Log.Warn("what tasks have told could not be cleaned", "error", err)
	}
}

// perMille is how many thousandths are done, never all of them: that is success.
func perMille(current, total int64) int {
	if total <= 0 {
		return 0
	}
	return min(999, int(float64(current)/float64(total)*1000))
}
