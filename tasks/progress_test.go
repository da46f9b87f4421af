package tasks

import (
	"context"
	"errors"
	"testing"

	"apiengine/jsbridge"
	"apiengine/store/tenantdb"
)

// What a slice has told is put over its row; of a slice that is gone only what may not go back.
func TestToldOverTheRow(t *testing.T) {
	row := tenantdb.Task{Run: "r2", State: tenantdb.TaskRunning, Current: 20, Total: 100, Best: 200, Msg: "row"}
	for name, c := range map[string]struct {
		change         func(*tenantdb.Task)
		told           Shown
		current, total int64
		progress       float64
		msg            string
	}{
		"nothing told":             {nil, Shown{}, 20, 100, 20, "row"},
		"by this slice":            {nil, Shown{Run: "r2", Current: 30, Total: 200, Best: 200, Msg: "told"}, 30, 200, 20, "told"},
		"more than before":         {nil, Shown{Run: "r2", Current: 60, Total: 200, Best: 300}, 60, 200, 30, "row"},
		"by a slice that is gone":  {nil, Shown{Run: "r1", Current: 30, Total: 40, Best: 750, Msg: "told"}, 30, 100, 75, "row"},
		"by the last one, waiting": {func(r *tenantdb.Task) { r.State, r.Run = tenantdb.TaskRetrying, "" }, Shown{Run: "", Current: 30, Total: 40, Best: 750, Msg: "told"}, 30, 100, 75, "row"},
		"a total only told":        {func(r *tenantdb.Task) { r.Total, r.Best = 0, 0 }, Shown{Run: "r1", Current: 30, Total: 40, Best: 750}, 30, 40, 75, "row"},
		"beyond the total":         {nil, Shown{Run: "r2", Current: 300, Total: 200, Best: 999}, 300, 300, 99.9, "row"},
		"at its end":               {func(r *tenantdb.Task) { r.State, r.Run = tenantdb.TaskSucceeded, "" }, Shown{Run: "r2", Current: 30, Total: 200, Best: 150, Msg: "told"}, 30, 100, 100, "row"},
	} {
		r := row
		if c.change != nil {
			c.change(&r)
		}
		got := shown(c.told.over(r))
		if got.Current != c.current || got.Total != c.total || got.Progress == nil || *got.Progress != c.progress || got.Msg != c.msg {
			t.Errorf("%s: %d of %d, %v, %q", name, got.Current, got.Total, *got.Progress, got.Msg)
		}
	}
}

// What could not be kept is news at the next look, and the slice's end knows the best of it.
func TestToldIsKept(t *testing.T) {
	o := newOffice(t)
	row := tenantdb.Task{ID: "a", Run: "r", State: tenantdb.TaskRunning, Current: 2, Total: 10}
	run := o.live.begin("t", row)
	told := func(current, total int64) { run.report(jsbridge.Progress{Current: &current, Total: &total}) }
	told(7, 10)
	told(8, 100)
	o.untold = errors.New("no database")
	o.lookHere(context.Background())
	if len(o.told) != 0 {
		t.Fatalf("%+v", o.told)
	}
	o.untold = nil
	o.lookHere(context.Background())
	if got, want := o.told["a"], (Shown{Task: "a", Run: "r", Current: 8, Total: 100, Best: 700}); got != want {
		t.Errorf("kept %+v, want %+v", got, want)
	}
	e := kept(row)
	if run.into(&e); e.Current != 8 || e.Total != 100 || e.Best != 700 {
		t.Errorf("the end is at %d of %d, %d", e.Current, e.Total, e.Best)
	}
}
