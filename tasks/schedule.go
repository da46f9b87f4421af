package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/store/tenantdb"
)

// Schedule is a definition's Schedule.
type Schedule struct {
	Tenant, API string
	Cron        string // 5 fields, may begin with TZ=
}

// Compare orders schedules by tenant and API.
func (s Schedule) Compare(o Schedule) int {
	return cmp.Or(cmp.Compare(s.Tenant, o.Tenant), cmp.Compare(s.API, o.API))
}

// ScheduleState is how far a schedule has come.
type ScheduleState struct {
	Tenant, API string
	FiredAt     time.Time // the last time that was run or noted as missed; zero: none yet
	LastTask    string
	Missed      int64
	MissedAt    time.Time // the last one
	Reason      string    // why it was missed
}

// Schedules are those of all tenants, with how far they have come.
type Schedules interface {
	All() []Schedule
	State(ctx context.Context, tenant, api string) (ScheduleState, error)
	// Save moves a schedule on from what it was; false: another node has.
	Save(ctx context.Context, from, to ScheduleState) (moved bool, err error)
}

// SourceSchedule begins the Source of a task that a schedule has made.
const SourceSchedule = "schedule:"

var cronForm = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// keepTime runs schedules until ctx ends. Every node does: the task's IdempotencyKey, made of
// the API and the time, lets one of them win.
func (r *Runner) keepTime(ctx context.Context) {
	for {
		now := time.Now()
		if !r.draining.Load() {
			r.fire(ctx, now.Truncate(time.Minute))
		}
		wait := time.NewTimer(time.Until(now.Truncate(time.Minute).Add(time.Minute)))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// fire runs what is due at a minute, and notes what was due before and has not been run.
func (r *Runner) fire(ctx context.Context, minute time.Time) {
	for _, s := range r.cfg.Schedules.All() {
		if err := r.fireOne(ctx, s, minute); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn("a schedule could not be looked at; the next minute tries again", "tenant", s.Tenant, "api", s.API, "error", err)
		}
	}
}

// longAgo bounds the search for missed runs.
const longAgo = 31 * 24 * time.Hour

func (r *Runner) fireOne(ctx context.Context, s Schedule, minute time.Time) error {
	plan, err := cronForm.Parse(s.Cron)
	if err != nil {
		return err
	}
	from, err := r.cfg.Schedules.State(ctx, s.Tenant, s.API)
	if err != nil || !from.FiredAt.Before(minute) {
		return err
	}
	to := from
	to.Tenant, to.API = s.Tenant, s.API
	if to.FiredAt = minute; from.FiredAt.IsZero() { // a new one: it begins with the next time
		if !plan.Next(minute.Add(-time.Second)).Equal(minute) {
			_, err := r.cfg.Schedules.Save(ctx, from, to)
			return err
		}
		from.FiredAt, to.FiredAt = minute.Add(-time.Minute), minute
		if _, err := r.cfg.Schedules.Save(ctx, ScheduleState{}, ScheduleState{Tenant: s.Tenant, API: s.API, FiredAt: from.FiredAt}); err != nil {
			return err
		}
	}
	if missed, last := between(plan, later(from.FiredAt, minute.Add(-longAgo)), minute); missed > 0 {
		to.Missed, to.MissedAt, to.Reason = to.Missed+missed, last, "no node was there to run it"
	}
	if plan.Next(minute.Add(-time.Second)).Equal(minute) {
		if err := r.fireAt(ctx, s, minute, &to); err != nil {
			return err
		}
	}
	moved, err := r.cfg.Schedules.Save(ctx, from, to)
	if moved && to.Missed > from.Missed {
		r.cfg.Log.Warn("runs of a schedule were missed", "tenant", s.Tenant, "api", s.API, "missed", to.Missed-from.Missed, "last", to.MissedAt, "why", to.Reason)
	}
	return err
}

// between counts a schedule's times after from and before until.
func between(plan cron.Schedule, from, until time.Time) (n int64, last time.Time) {
	for at := plan.Next(from); !at.IsZero() && at.Before(until); at = plan.Next(at) {
		n, last = n+1, at.UTC()
	}
	return n, last
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// fireAt orders the task of one time, unless that of an earlier one is not over.
func (r *Runner) fireAt(ctx context.Context, s Schedule, minute time.Time, to *ScheduleState) error {
	at := minute.UTC().Format(time.RFC3339)
	db, err := r.cfg.Databases.Tenant(ctx, s.Tenant)
	if err != nil {
		return err
	}
	source := SourceSchedule + s.API
	newest, err := db.Tasks(ctx, tenantdb.TaskFilter{Source: source, Max: 1})
	if err != nil {
		return err
	}
	if len(newest) == 1 && newest[0].Open() && scheduledAt(newest[0]) != at {
		to.Missed, to.MissedAt = to.Missed+1, minute.UTC()
		to.Reason = fmt.Sprintf("the run of %s was not over (task %s)", scheduledAt(newest[0]), newest[0].ID)
		return nil
	}
	t, err := r.submit(ctx, s.Tenant, engine.Caller{}, source, Order{ApiEngineKey: s.API, IdempotencyKey: "schedule " + at,
		Param: json.RawMessage(`{"_ScheduledAt":"` + at + `"}`)})
	if fault.Of(err) == fault.NotFound { // gone since the list was made
		return nil
	}
	to.LastTask = t.ID
	return err
}

func scheduledAt(t tenantdb.Task) string {
	var p struct {
		At string `json:"_ScheduledAt"`
	}
	_ = json.Unmarshal(t.Param, &p) // a task of a schedule has it
	return p.At
}

// ScheduleStatus is a schedule as it is shown.
type ScheduleStatus struct {
	ApiEngineKey string
	Schedule     string
	NextRunAt    *time.Time
	LastTask     string     `json:",omitempty"`
	Missed       int64      // times that were not run
	MissedAt     *time.Time `json:",omitempty"` // the last one
	Reason       string     `json:",omitempty"` // why
}

// ListSchedules returns a tenant's schedules, by API.
func (r *Runner) ListSchedules(ctx context.Context, tenant string) ([]ScheduleStatus, error) {
	out := []ScheduleStatus{}
	for _, s := range r.cfg.Schedules.All() {
		if s.Tenant != tenant {
			continue
		}
		st, err := r.cfg.Schedules.State(ctx, tenant, s.API)
		if err != nil {
			return nil, err
		}
		one := ScheduleStatus{ApiEngineKey: s.API, Schedule: s.Cron, LastTask: st.LastTask, Missed: st.Missed, MissedAt: optional(st.MissedAt), Reason: st.Reason}
		if plan, err := cronForm.Parse(s.Cron); err == nil {
			one.NextRunAt = optional(plan.Next(time.Now()).UTC())
		}
		out = append(out, one)
	}
	return out, nil
}
