package tenantdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

// wish is a task to be kept; change may alter it.
func wish(id string, change ...func(*tenantdb.NewTask)) tenantdb.NewTask {
	n := tenantdb.NewTask{ID: id, API: "import", Param: json.RawMessage(`{"File":"a.csv"}`), Principal: json.RawMessage(`{"ID":"u1"}`),
		Source: "api", Fingerprint: "f", Priority: 2, MaxAttempts: 3}
	for _, c := range change {
		c(&n)
	}
	return n
}

func keyed(key string) func(*tenantdb.NewTask) { return func(n *tenantdb.NewTask) { n.Key = key } }

func add(t *testing.T, db *tenantdb.DB, n tenantdb.NewTask) tenantdb.Task {
	t.Helper()
	id, created, err := db.AddTask(context.Background(), n)
	if err != nil || !created || id != n.ID {
		t.Fatalf("add %s: %s, %v, %v", n.ID, id, created, err)
	}
	return task(t, db, id)
}

func task(t *testing.T, db *tenantdb.DB, id string) tenantdb.Task {
	t.Helper()
	got, err := db.Task(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func start(t *testing.T, db *tenantdb.DB, id string, token int64) (tenantdb.Task, bool) {
	t.Helper()
	got, ok, err := db.StartSlice(context.Background(), task(t, db, id), fmt.Sprint("run", token), token)
	if err != nil {
		t.Fatal(err)
	}
	return got, ok
}

// ending is the end of the slice that got has begun; the task goes on unless change says more.
func ending(got tenantdb.Task, change func(*tenantdb.SliceEnd)) tenantdb.SliceEnd {
	e := tenantdb.SliceEnd{ID: got.ID, Run: got.Run, Fence: got.Fence, State: tenantdb.TaskPending, Slice: got.Slice + 1, Param: got.Param,
		Checkpoint: json.RawMessage(`{"At":10}`), Current: 10, Total: 1 << 40, Result: json.RawMessage("null")}
	if change != nil {
		change(&e)
	}
	return e
}

func TestATaskFromItsWishToItsEnd(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		got := add(t, db, wish("t1"))
		if got.State != tenantdb.TaskPending || !got.Due() || got.API != "import" || string(got.Param) != `{"File":"a.csv"}` || got.MaxAttempts != 3 {
			t.Fatalf("kept: %+v", got)
		}
		got, ok := start(t, db, "t1", 7)
		if !ok || got.State != tenantdb.TaskRunning || got.Attempt != 1 || got.Fence != 7 || got.StartedAt.IsZero() {
			t.Fatalf("started: %v %+v", ok, got)
		}
		tx := begin(t, db, tenantdb.Guard{})
		if ours, err := tx.EndSlice(ctx, ending(got, nil)); err != nil || !ours {
			t.Fatal(ours, err)
		}
		commit(t, tx)
		got = task(t, db, "t1")
		if got.State != tenantdb.TaskPending || got.Slice != 1 || got.Attempt != 0 || string(got.Checkpoint) != `{"At":10}` || got.Total != 1<<40 {
			t.Fatalf("after a slice: %+v", got)
		}
		if n, next, err := db.OpenTasks(ctx); n != 1 || next.IsZero() || err != nil {
			t.Fatal(n, next, err)
		}
		got, _ = start(t, db, "t1", 8)
		if ours, err := db.EndSlice(ctx, ending(got, func(e *tenantdb.SliceEnd) { e.State, e.Result = tenantdb.TaskSucceeded, json.RawMessage(`[1]`) })); !ours || err != nil {
			t.Fatal(ours, err)
		}
		got = task(t, db, "t1")
		if got.Open() || got.State != tenantdb.TaskSucceeded || string(got.Result) != "[1]" || got.Slice != 2 {
			t.Fatalf("at its end: %+v", got)
		}
		if _, ok := start(t, db, "t1", 9); ok {
			t.Fatal("a task that is over was started")
		}
		if n, _, err := db.OpenTasks(ctx); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	})
}

func TestASliceOfAnotherRunLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		add(t, db, wish("t1"))
		old, _ := start(t, db, "t1", 7)
		if _, ok := start(t, db, "t1", 7); ok {
			t.Fatal("the same token started twice")
		}
		if _, ok := start(t, db, "t1", 6); ok {
			t.Fatal("a smaller token took the task over")
		}
		taken, ok := start(t, db, "t1", 8) // the node of 7 is taken for dead
		if !ok || taken.Attempt != 2 {
			t.Fatalf("taken over: %v %+v", ok, taken)
		}
		tx := begin(t, db, tenantdb.Guard{})
		if ours, err := tx.EndSlice(ctx, ending(old, nil)); ours || err != nil {
			t.Fatalf("the stale slice's end was taken: %v %v", ours, err)
		}
		if err := tx.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
		if ours, err := db.EndSlice(ctx, ending(taken, nil)); !ours || err != nil {
			t.Fatal(ours, err)
		}
		if ours, err := db.EndSlice(ctx, ending(taken, nil)); ours || err != nil {
			t.Fatalf("a slice ended twice: %v %v", ours, err)
		}
	})
}

func TestOneWishIsOneTask(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		named := func(n *tenantdb.NewTask) { n.Idempotency = "k" }
		var wg sync.WaitGroup
		ids, created := make([]string, 20), make([]bool, 20)
		for i := range ids {
			wg.Go(func() {
				var err error
				if ids[i], created[i], err = db.AddTask(ctx, wish(fmt.Sprint("t", i), named)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		n := 0
		for i := range ids {
			if created[i] {
				n++
			}
			if ids[i] != ids[0] {
				t.Errorf("wish %d got %s, another %s", i, ids[i], ids[0])
			}
		}
		if n != 1 {
			t.Errorf("%d tasks were kept", n)
		}
		_, _, err := db.AddTask(ctx, wish("other", named, func(n *tenantdb.NewTask) { n.Fingerprint = "g" }))
		if fault.Of(err) != fault.IdempotencyMismatch {
			t.Errorf("another wish under the same name: %v", err)
		}
		tx := begin(t, db, tenantdb.Guard{})
		if _, _, err := tx.AddTask(ctx, wish("rolled")); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Task(ctx, "rolled"); fault.Of(err) != fault.NotFound {
			t.Errorf("a task of a transaction that was rolled back: %v", err)
		}
	})
}

func TestTasksOfOneKeyTakeTurns(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		for _, id := range []string{"t1", "t2", "t3"} {
			add(t, db, wish(id, keyed("k")))
		}
		add(t, db, wish("t4", keyed("other")))
		add(t, db, wish("t5", keyed("k"), func(n *tenantdb.NewTask) { n.Priority = 1 }))
		add(t, db, wish("t0", keyed("k"), func(n *tenantdb.NewTask) { n.Priority, n.Delay = 1, time.Hour }))
		for _, id := range []string{"t1", "t2", "t3", "t0"} {
			if _, ok := start(t, db, id, 1); ok {
				t.Fatalf("%s started before the more urgent t5", id)
			}
		}
		urgent, ok := start(t, db, "t5", 2)
		if !ok || !urgent.Holds {
			t.Fatalf("t5: %v %+v", ok, urgent)
		}
		if _, ok := start(t, db, "t4", 2); !ok {
			t.Fatal("a task of another key had to wait")
		}
		if holder, found, err := db.HolderOfKey(ctx, task(t, db, "t2")); err != nil || !found || holder.ID != "t5" {
			t.Fatalf("t2 waits for %s, %v, %v", holder.ID, found, err)
		}
		// It keeps its turn while it waits for a retry.
		if ours, err := db.EndSlice(ctx, ending(urgent, func(e *tenantdb.SliceEnd) { e.State, e.Delay = tenantdb.TaskRetrying, time.Hour })); !ours || err != nil {
			t.Fatal(ours, err)
		}
		if _, found, err := db.NextOfKey(ctx, "k"); found || err != nil {
			t.Fatal("another one's turn while the holder waits for its retry", err)
		}
		if got, err := db.CancelTask(ctx, "t5"); err != nil || got.State != tenantdb.TaskCanceled {
			t.Fatal(got.State, err)
		}
		for i, id := range []string{"t1", "t2", "t3"} {
			next, found, err := db.NextOfKey(ctx, "k")
			if err != nil || !found || next.ID != id {
				t.Fatalf("next is %s, %v, %v, want %s", next.ID, found, err, id)
			}
			got, ok := start(t, db, id, int64(10+i))
			if !ok {
				t.Fatalf("%s did not get its turn", id)
			}
			if ours, err := db.EndSlice(ctx, ending(got, func(e *tenantdb.SliceEnd) { e.State = tenantdb.TaskSucceeded })); !ours || err != nil {
				t.Fatal(ours, err)
			}
		}
	})
}

func TestOfOneKeyNeverTwoStart(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		for round := range 5 {
			key := fmt.Sprint("k", round)
			var list []tenantdb.Task
			for i := range 6 {
				list = append(list, add(t, db, wish(fmt.Sprintf("r%d-%d", round, i), keyed(key))))
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			started := 0
			for i, one := range list {
				wg.Go(func() {
					_, ok, err := db.StartSlice(context.Background(), one, fmt.Sprint("run", i), int64(i+1))
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					if ok {
						started++
					}
				})
			}
			wg.Wait()
			if started != 1 {
				t.Fatalf("%d tasks of one key started", started)
			}
		}
	})
}

func TestCancelAndRetry(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		add(t, db, wish("t1"))
		got, _ := start(t, db, "t1", 1)
		marked, err := db.CancelTask(ctx, "t1")
		if err != nil || marked.State != tenantdb.TaskRunning || !marked.Cancel {
			t.Fatalf("cancel of a running one: %+v %v", marked, err)
		}
		if ids, err := db.ToBeEnded(ctx, []string{"t0", "t1"}); err != nil || len(ids) != 1 || ids[0] != "t1" {
			t.Fatal(ids, err)
		}
		if ours, err := db.EndSlice(ctx, ending(got, nil)); ours || err != nil {
			t.Fatal("a slice of a task that is to be ended went on", err)
		}
		if _, ok := start(t, db, "t1", 2); ok {
			t.Fatal("a task that is to be ended started again")
		}
		buried, err := db.BuryTask(ctx, "t1", 2)
		if err != nil || buried.State != tenantdb.TaskCanceled {
			t.Fatalf("%+v %v", buried, err)
		}
		if ours, err := db.EndSlice(ctx, ending(got, func(e *tenantdb.SliceEnd) { e.State = tenantdb.TaskSucceeded })); ours || err != nil {
			t.Fatal("a run without its task ended it", err)
		}
		if _, err := db.CancelTask(ctx, "t1"); fault.Of(err) != fault.VersionConflict {
			t.Fatalf("cancel of a canceled one: %v", err)
		}
		again, err := db.RetryTask(ctx, "t1")
		if err != nil || again.State != tenantdb.TaskPending || again.Cancel || !again.Due() {
			t.Fatalf("%+v %v", again, err)
		}
		if _, ok := start(t, db, "t1", 3); !ok {
			t.Fatal("it did not start again")
		}
		if _, err := db.RetryTask(ctx, "t1"); fault.Of(err) != fault.VersionConflict {
			t.Fatalf("retry of a running one: %v", err)
		}
		if _, err := db.CancelTask(ctx, "none"); fault.Of(err) != fault.NotFound {
			t.Fatal(err)
		}
	})
}

func TestWhichTasksAreDue(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		add(t, db, wish("now"))
		add(t, db, wish("later", func(n *tenantdb.NewTask) { n.Delay = time.Hour }))
		add(t, db, wish("past", func(n *tenantdb.NewTask) { n.At = time.Now().Add(-time.Hour) }))
		add(t, db, wish("future", func(n *tenantdb.NewTask) { n.At = time.Now().Add(time.Hour) }))
		add(t, db, wish("k1", keyed("k")))
		add(t, db, wish("k2", keyed("k")))
		if _, ok := start(t, db, "later", 1); ok {
			t.Fatal("started before its time")
		}
		due, err := db.DueTasks(ctx, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, d := range due {
			got[d.ID] = true
		}
		if want := map[string]bool{"now": true, "past": true, "k1": true}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("due are %v, want %v", got, want)
		}
		if due, err = db.DueTasks(ctx, time.Minute, 100); err != nil || len(due) != 1 || due[0].ID != "past" {
			t.Errorf("due for a minute: %v %v", due, err)
		}
	})
}

func TestTasksOfOneOwner(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		for i, owner := range []string{"ann", "", "ben", "ann"} {
			add(t, db, wish(fmt.Sprint("t", i), func(n *tenantdb.NewTask) { n.Owner = owner }))
		}
		list, err := db.Tasks(context.Background(), tenantdb.TaskFilter{Owner: "ann", Max: 10})
		if err != nil || len(list) != 2 || list[0].ID != "t3" || list[1].ID != "t0" {
			t.Errorf("%v, %v", list, err)
		}
	})
}

func TestATasksLogAndItsEnd(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		add(t, db, wish("t1"))
		at := time.Now().UTC().Truncate(time.Microsecond)
		var lines []tenantdb.TaskLine
		for i := range 510 {
			lines = append(lines, tenantdb.TaskLine{At: at.Add(time.Duration(i) * time.Millisecond), Text: fmt.Sprint("line ", i)})
		}
		for range 2 { // lines that are sent again are not kept again
			if err := db.LogTask(ctx, "t1", lines); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := db.TaskLog(ctx, "t1", time.Time{})
		if err != nil || len(kept) != 500 || kept[0].Text != "line 10" || kept[499].Text != "line 509" {
			t.Fatalf("%d lines, %v", len(kept), err)
		}
		if rest, err := db.TaskLog(ctx, "t1", kept[498].At); err != nil || len(rest) != 1 {
			t.Fatalf("%d lines after the last but one, %v", len(rest), err)
		}
		got, _ := start(t, db, "t1", 1)
		if _, err := db.EndSlice(ctx, ending(got, func(e *tenantdb.SliceEnd) { e.State = tenantdb.TaskDead })); err != nil {
			t.Fatal(err)
		}
		if n, _, err := db.ForgetTasks(ctx, time.Hour); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		add(t, db, wish("open"))
		if n, more, err := db.ForgetTasks(ctx, -time.Second); n != 1 || more || err != nil {
			t.Fatal(n, more, err)
		}
		if kept, err := db.TaskLog(ctx, "t1", time.Time{}); err != nil || len(kept) != 0 {
			t.Fatal(len(kept), err)
		}
		list, err := db.Tasks(ctx, tenantdb.TaskFilter{API: "IMPORT", State: "pending", Max: 10})
		if err != nil || len(list) != 1 || list[0].ID != "open" {
			t.Fatal(list, err)
		}
	})
}
