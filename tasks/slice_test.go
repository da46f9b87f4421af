package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/store/tenantdb"
)

// A run that ignores its end is left behind: its worker goes on, it is counted, and its late
// end is refused.
func TestARunThatDoesNotEnd(t *testing.T) {
	o := newOffice(t)
	begun, release := make(chan struct{}), make(chan struct{})
	o.run = func(context.Context, engine.Call) (*engine.Result, error) {
		close(begun)
		<-release // whatever its context says
		return &engine.Result{Execution: &engine.Execution{}}, nil
	}
	id := o.order(t, Order{ApiEngineKey: "stuck", MaxAttempts: 1}).ID
	came := make(chan time.Duration, 1)
	go func() { came <- o.turn(t.Context(), "t", id) }()
	<-begun
	late := o.row(t, id)
	o.live.end("t", id, errCanceled)
	<-came
	if n := o.Stuck(); n != 1 {
		t.Errorf("%d runs are stuck, want 1", n)
	}
	got := o.row(t, id)
	if got.State != tenantdb.TaskCanceled {
		t.Errorf("the task is %s", got.State)
	}
	if ours, err := o.db.EndSlice(t.Context(), kept(late)); ours || err != nil {
		t.Errorf("the late end was taken: %v %v", ours, err)
	}
	close(release)
	for o.Stuck() != 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("it is counted for ever")
		case <-time.After(time.Millisecond):
		}
	}
	if _, err := o.locks.Lock(t.Context(), lockOf("t", id).String()); err == nil {
		t.Error("its lock is still held")
	}
}

// A task of which nobody was told is found; one whose runner lives is left alone.
func TestTheWatch(t *testing.T) {
	o := newOffice(t)
	waits, runs, left := o.order(t, Order{ApiEngineKey: "a"}).ID, o.order(t, Order{ApiEngineKey: "a"}).ID, o.order(t, Order{ApiEngineKey: "a"}).ID
	begun, release := make(chan struct{}), make(chan struct{})
	o.run = func(context.Context, engine.Call) (*engine.Result, error) {
		close(begun)
		<-release
		return nil, fault.New(fault.ScriptError, "x")
	}
	done := make(chan struct{})
	go func() { defer close(done); o.turn(t.Context(), "t", runs) }()
	<-begun
	if _, started, err := o.db.StartSlice(t.Context(), o.row(t, left), "gone", 1); !started || err != nil { // and its node died
		t.Fatal(started, err)
	}
	o.rung = nil
	o.lookAt(t.Context(), 0, 0)
	rung := map[string]string{}
	for _, b := range o.rung {
		rung[b.Task] = b.Once
	}
	if len(rung) != 2 || !strings.HasPrefix(rung[waits], "due ") || !strings.HasPrefix(rung[left], "left by 1,") {
		t.Errorf("rang %v for waits %s, runs %s, left %s", rung, waits, runs, left)
	}
	close(release)
	<-done
	for _, id := range []string{waits, runs, left} {
		if _, err := o.db.CancelTask(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := o.row(t, id); got.Open() { // the one that was left
			lease := got.Fence + 1
			if _, err := o.db.BuryTask(t.Context(), id, lease); err != nil {
				t.Fatal(err)
			}
		}
	}
	o.lookAt(t.Context(), 0, 0)
	if len(o.marks) != 0 {
		t.Error("a tenant without tasks is watched on")
	}
}

// A task that is to be ended, and whose node died, is ended by the next who looks.
func TestACanceledTaskWhoseNodeDied(t *testing.T) {
	o := newOffice(t)
	id := o.order(t, Order{ApiEngineKey: "a", ConcurrencyKey: "k"}).ID
	next := o.order(t, Order{ApiEngineKey: "a", ConcurrencyKey: "k"}).ID
	if _, started, err := o.db.StartSlice(t.Context(), o.row(t, id), "gone", 1); !started || err != nil {
		t.Fatal(started, err)
	}
	if _, err := o.Cancel(t.Context(), "t", id); err != nil {
		t.Fatal(err)
	}
	o.rung = nil
	if again := o.turn(t.Context(), "t", id); again != never {
		t.Errorf("it rings again after %v", again)
	}
	if got := o.row(t, id); got.State != tenantdb.TaskCanceled {
		t.Errorf("the task is %s", got.State)
	}
	if len(o.rung) != 1 || o.rung[0].Task != next {
		t.Errorf("rang %v, want the next of the key, %s", o.rung, next)
	}
}

func TestWhatAFailureMeans(t *testing.T) {
	o := newOffice(t)
	row := tenantdb.Task{State: tenantdb.TaskRunning, Attempt: 2, MaxAttempts: 3, Error: "old"}
	for name, c := range map[string]struct {
		err     error
		attempt int // before
		state   string
		left    int // attempts counted
		delay   time.Duration
	}{
		"the first try":      {fault.New(fault.ScriptError, "x"), 1, tenantdb.TaskRetrying, 1, 5 * time.Second},
		"the second try":     {fault.New(fault.Timeout, "x"), 2, tenantdb.TaskRetrying, 2, 10 * time.Second},
		"the last try":       {fault.New(fault.ScriptError, "x"), 3, tenantdb.TaskDead, 3, 0},
		"a lease that ended": {fault.New(fault.LeaseLost, "x"), 2, tenantdb.TaskRetrying, 2, 10 * time.Second},
		"a lock of others":   {fault.New(fault.LockBusy, "x"), 3, tenantdb.TaskRetrying, 2, 5 * time.Second},
		"no database":        {fault.New(fault.StoreUnavailable, "x"), 3, tenantdb.TaskRetrying, 2, 5 * time.Second},
		"a shutdown":         {errDraining, 3, tenantdb.TaskPending, 2, 0},
		"somebody's wish":    {errCanceled, 1, tenantdb.TaskCanceled, 1, 0},
		"no right":           {fault.New(fault.Forbidden, "x"), 1, tenantdb.TaskFailed, 1, 0},
		"no API yet":         {fault.New(fault.NotFound, "x"), 1, tenantdb.TaskRetrying, 1, 5 * time.Second},
	} {
		row.Attempt = c.attempt
		e := o.after(row, c.err)
		if e.State != c.state || e.Attempt != c.left || e.Delay != c.delay || e.Slice != row.Slice {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if o.pause(100) != 300*time.Second || o.pause(7) != 300*time.Second || o.pause(6) != 160*time.Second {
		t.Errorf("pauses of %v, %v, %v", o.pause(6), o.pause(7), o.pause(100))
	}
}

// What the end of a slice makes of progress and of the time that is left.
func TestProgress(t *testing.T) {
	o := newOffice(t, func(c *Config) { c.MaxSlices = 5 })
	now := time.Now().UTC()
	row := tenantdb.Task{State: tenantdb.TaskRunning, Slice: 3, Attempt: 1, Current: 50, Total: 200, Rate: 10, Checkpoint: json.RawMessage(`{"a": 1}`), Stuck: 1,
		Param: json.RawMessage(`{}`), NextAt: now.Add(-2 * time.Second), SliceAt: now.Add(-time.Second), Now: now}
	end := func(said string) tenantdb.SliceEnd {
		t.Helper()
		e, err := o.end(row, jsbridge.Outcome{IsObject: true, Result: json.RawMessage(`{"Code":1,"Data":{"BackgroundTask":` + said + `}}`)})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := end(`{"HasMore":true,"Checkpoint":2,"Current":90}`) // 40 units in 2 s
	if e.Current != 90 || e.Rate < 12 || e.Rate > 13.1 {
		t.Errorf("%+v", e)
	}
	if e := end(`{"HasMore":true,"Checkpoint":2,"Current":20}`); e.Current != 50 || e.Rate != 10 {
		t.Errorf("progress went back: %+v", e)
	}
	if e := end(`{"HasMore":true,"Checkpoint":2,"Current":300}`); e.Total != 300 {
		t.Errorf("more than all: %+v", e)
	}
	if e := end(`{"HasMore":true,"Checkpoint":{"a":1}}`); e.Stuck != 2 || e.State != tenantdb.TaskPending {
		t.Errorf("the same checkpoint: %+v", e)
	}
	if row.Slice = 4; end(`{"HasMore":true,"Checkpoint":2}`).State != tenantdb.TaskFailed {
		t.Error("the cap of slices was passed")
	}
	for total, want := range map[int64]float64{200: 25, 50: 99.9, 0: -1} {
		row.Total = total
		p := percent(row)
		if (p == nil) != (want < 0) || p != nil && *p != want {
			t.Errorf("of %d: %v", total, p)
		}
	}
	row.Total = 200
	if s := shown(row); s.Eta == nil || s.Eta.Sub(now) < 14*time.Second || s.Eta.Sub(now) > 16*time.Second {
		t.Errorf("150 units at 10 a second end at %v, now is %v", s.Eta, now)
	}
}

func FuzzHear(f *testing.F) {
	for _, seed := range []string{`{"Code":1}`, `{"Code":1,"Data":{"BackgroundTask":{"HasMore":true,"Checkpoint":[1],"Current":1e3,"Total":null,"ParamPatch":{"a":null}}}}`,
		`{"Data":{"BackgroundTask":[]}}`, `{"Data":{"BackgroundTask":{"Current":-0.0}}}`, `{"Data":{"BackgroundTask":{"NextDelaySeconds":1e300}}}`, `{"Data":"x"}`} {
		f.Add(seed)
	}
	o := &Runner{cfg: Config{MaxSlices: 10}}
	f.Fuzz(func(t *testing.T, result string) {
		if !json.Valid([]byte(result)) || !strings.HasPrefix(result, "{") {
			return
		}
		e, err := o.end(tenantdb.Task{Param: json.RawMessage(`{"a":1}`), Checkpoint: json.RawMessage("null"), Result: json.RawMessage("null")}, jsbridge.Outcome{IsObject: true, Result: json.RawMessage(result)})
		if err != nil {
			if fault.Of(err) != fault.ResultInvalid {
				t.Errorf("%v", err)
			}
			return
		}
		if e.Slice != 1 || e.Current < 0 || e.Delay < 0 || !json.Valid(e.Param) || !json.Valid(e.Checkpoint) || !json.Valid(e.Result) {
			t.Errorf("%+v", e)
		}
	})
}

// A task whose API this node has not heard of yet waits, at no attempt's cost; one whose API
// is gone does not.
func TestATaskThatComesBeforeItsAPI(t *testing.T) {
	o := newOffice(t)
	id := o.order(t, Order{ApiEngineKey: "a", MaxAttempts: 1}).ID
	known := o.cfg.Calls
	o.cfg.Calls = deaf{known}
	if again := o.turn(t.Context(), "t", id); again != unheardPause || o.row(t, id).Attempt != 0 {
		t.Errorf("again in %v, %+v", again, o.row(t, id))
	}
	old := o.row(t, id)
	old.Now = old.CreatedAt.Add(unheardLimit + time.Second)
	if o.unheard("t", old) {
		t.Error("an API that is gone is waited for")
	}
	o.cfg.Calls = known
	if o.unheard("t", o.row(t, id)) {
		t.Error("an API that is live is waited for")
	}
}

// deaf has heard of no API.
type deaf struct{ Invoker }

func (deaf) Describe(_, _, _ string) (apis.Definition, bool) { return apis.Definition{}, false }

// A slice whose nodes die has as many tries as one that throws, and the same pauses.
func TestNodesThatDie(t *testing.T) {
	o := newOffice(t, func(c *Config) { c.Backoff = time.Microsecond })
	id := o.order(t, Order{ApiEngineKey: "a", MaxAttempts: 3, ConcurrencyKey: "k"}).ID
	o.run = func(context.Context, engine.Call) (*engine.Result, error) { panic("a fourth try") }
	for n := range int64(3) {
		if _, started, err := o.db.StartSlice(t.Context(), o.row(t, id), "dies", n+1); !started || err != nil {
			t.Fatal(n, started, err)
		}
	}
	for o.turn(t.Context(), "t", id) > 0 { // until the pause is over
	}
	if got := o.row(t, id); got.State != tenantdb.TaskDead || got.Attempt != 3 || !strings.Contains(got.Error, "node") || got.Open() {
		t.Errorf("%+v", got)
	}
	o.cfg.Backoff = 5 * time.Second
	died := tenantdb.Task{State: tenantdb.TaskRunning, Attempt: 3, SliceAt: time.Unix(100, 0), NextAt: time.Unix(50, 0)}
	if due := o.due(died); due != time.Unix(110, 0) {
		t.Errorf("after the third death it is due at %v", due)
	}
	if died.Attempt = 1; o.due(died) != time.Unix(50, 0) {
		t.Error("the first death costs a pause")
	}
}

// What scripts say is kept on every database: no NUL, a bounded length, the last lines.
func TestWhatASliceSaysIsKept(t *testing.T) {
	o := newOffice(t)
	id := o.order(t, Order{ApiEngineKey: "a", MaxAttempts: 1}).ID
	o.run = func(context.Context, engine.Call) (*engine.Result, error) {
		for i := range 2 * maxLines {
			o.live.all()["t"][0].report(jsbridge.Progress{Msg: "m\x00" + strings.Repeat("长", 2*maxMsg), Log: []string{strconv.Itoa(i) + "\x00"}})
		}
		return nil, fault.New(fault.ScriptError, "%s", "e\x00"+strings.Repeat("长", 2*maxError))
	}
	o.turn(t.Context(), "t", id)
	got, err := o.Get(t.Context(), "t", id, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Error, "e\uFFFD") || utf8.RuneCountInString(got.Error) != maxError || !strings.HasPrefix(got.Msg, "m\uFFFD") || utf8.RuneCountInString(got.Msg) != maxMsg {
		t.Errorf("%d, %d runes: %.10q %.10q", utf8.RuneCountInString(got.Error), utf8.RuneCountInString(got.Msg), got.Error, got.Msg)
	}
	if n := len(got.Log); n != maxLines || got.Log[0].Text != strconv.Itoa(maxLines)+"\uFFFD" || got.Log[n-1].Text != strconv.Itoa(2*maxLines-1)+"\uFFFD" {
		t.Errorf("%d lines from %q", n, got.Log[0].Text)
	}
}

// An order that cannot be kept is refused by the name of its field.
func TestOrdersThatAreRefused(t *testing.T) {
	o := newOffice(t)
	at := time.Now().Add(time.Hour)
	for field, ord := range map[string]Order{
		"ApiEngineKey":   {},
		"Param":          {ApiEngineKey: "a", Param: json.RawMessage("[]")},
		"IdempotencyKey": {ApiEngineKey: "a", IdempotencyKey: "\x00"},
		"ConcurrencyKey": {ApiEngineKey: "a", ConcurrencyKey: "k\x00"},
		"Delay":          {ApiEngineKey: "a", Delay: -1},
		"RunAt":          {ApiEngineKey: "a", Delay: 1, RunAt: &at},
		"Priority":       {ApiEngineKey: "a", Priority: 5},
		"MaxAttempts":    {ApiEngineKey: "a", MaxAttempts: 1001},
	} {
		var e *fault.Error
		if _, err := o.Submit(t.Context(), "t", engine.Caller{}, ord); !errors.As(err, &e) || e.K != fault.BadRequest || e.Fields["Field"] != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for key, kind := range map[string]fault.Kind{"gone": fault.NotFound, "off": fault.Disabled} {
		if _, err := o.Submit(t.Context(), "t", engine.Caller{}, Order{ApiEngineKey: key}); fault.Of(err) != kind {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestWhatASliceAnswers(t *testing.T) {
	if _, _, err := hear(jsbridge.Outcome{IsObject: true, Result: json.RawMessage(`{"Code":1,"BackgroundTask":{"HasMore":true}}`)}); fault.Of(err) != fault.ResultInvalid {
		t.Errorf("a BackgroundTask beside Data: %v", err)
	}
	for body, want := range map[string]string{`{"Code":7}`: "it answered with Code 7", `{}`: "it answered with an object without Code", `{"Code":0,"Msg":"no"}`: "no"} {
		if err := refused([]byte(body)); fault.Public(err) != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}
