package tasks

import (
	"strings"
	"testing"
	"time"

	"apiengine/store/tenantdb"
)

// at is a minute of one Monday, UTC.
func at(clock string) time.Time {
	m, err := time.Parse("2006-01-02 15:04", "2026-03-02 "+clock)
	if err != nil {
		panic(err)
	}
	return m.UTC()
}

// made are the tasks of a schedule that exist, by the time that they are for.
func (o *office) made(t *testing.T) (times []string, open string) {
	t.Helper()
	list, err := o.db.Tasks(t.Context(), tenantdb.TaskFilter{Max: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i := len(list) - 1; i >= 0; i-- {
		times = append(times, scheduledAt(list[i])[11:16])
		if list[i].Open() {
			open = list[i].ID
		}
	}
	return times, open
}

// over ends a task.
func (o *office) over(t *testing.T, id string) {
	t.Helper()
	if _, err := o.db.CancelTask(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func TestAScheduleRunsOnceAtItsTime(t *testing.T) {
	o := newOffice(t)
	o.plans = []Schedule{{Tenant: "t", API: "report", Cron: "30 9 * * *"}}
	for _, clock := range []string{"09:28", "09:29", "09:30", "09:30", "09:31"} {
		o.fire(t.Context(), at(clock))
		o.fire(t.Context(), at(clock)) // another node
	}
	if got, _ := o.made(t); len(got) != 1 || got[0] != "09:30" {
		t.Errorf("tasks for %v, want 09:30", got)
	}
	if st := o.state["report"]; st.Missed != 0 || st.LastTask == "" {
		t.Errorf("%+v", st)
	}
}

// Two nodes fire at once, and the first dies before it has noted that.
func TestAScheduleRunsOnceThoughANodeDies(t *testing.T) {
	o := newOffice(t)
	o.plans = []Schedule{{Tenant: "t", API: "report", Cron: "* * * * *"}}
	o.fire(t.Context(), at("09:29"))
	_, first := o.made(t)
	o.over(t, first)
	before := o.state["report"]
	o.fire(t.Context(), at("09:30"))
	o.state["report"] = before
	o.fire(t.Context(), at("09:30"))
	if got, _ := o.made(t); strings.Join(got, " ") != "09:29 09:30" {
		t.Errorf("tasks for %v", got)
	}
	if st := o.state["report"]; st.Missed != 0 {
		t.Errorf("%+v", st)
	}
}

func TestMissedRunsAreNotedAndNotPiledUp(t *testing.T) {
	o := newOffice(t)
	o.plans = []Schedule{{Tenant: "t", API: "report", Cron: "*/10 * * * *"}}
	o.fire(t.Context(), at("09:01"))
	o.fire(t.Context(), at("09:10"))
	_, running := o.made(t)
	o.fire(t.Context(), at("09:20")) // the run of 09:10 is not over
	st := o.state["report"]
	if got, _ := o.made(t); len(got) != 1 || st.Missed != 1 || !strings.Contains(st.Reason, running) {
		t.Errorf("tasks for %v, %+v", got, st)
	}
	o.over(t, running)
	o.fire(t.Context(), at("10:05")) // no node was there from 09:21 on
	st = o.state["report"]
	if got, _ := o.made(t); len(got) != 1 || st.Missed != 5 || !st.MissedAt.Equal(at("10:00")) || st.Reason != "no node was there to run it" {
		t.Errorf("tasks for %v, %+v", got, st)
	}
	o.fire(t.Context(), at("10:10"))
	if got, _ := o.made(t); strings.Join(got, " ") != "09:10 10:10" || o.state["report"].Missed != 5 {
		t.Errorf("tasks for %v, %+v", got, o.state["report"])
	}
	list, err := o.ListSchedules(t.Context(), "t")
	if err != nil || len(list) != 1 || list[0].Missed != 5 || list[0].NextRunAt == nil {
		t.Errorf("%+v %v", list, err)
	}
}

func TestASchedulesTimeZone(t *testing.T) {
	o := newOffice(t)
	o.plans = []Schedule{{Tenant: "t", API: "report", Cron: "TZ=Asia/Shanghai 30 17 * * MON"}}
	for _, clock := range []string{"09:29", "09:30", "17:30"} {
		o.fire(t.Context(), at(clock))
	}
	if got, _ := o.made(t); len(got) != 1 || got[0] != "09:30" {
		t.Errorf("tasks for %v, want 09:30 UTC", got)
	}
	o.plans = append(o.plans, Schedule{Tenant: "t", API: "gone", Cron: "* * * * *"})
	o.fire(t.Context(), at("17:31")) // its API went away: nothing to run, and nothing that stops the others
}
