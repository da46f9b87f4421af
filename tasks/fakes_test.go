package tasks

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/lockwrap"
	"apiengine/lockwrap/embedded"
	"apiengine/store/tenantdb"
)

// office is what a Runner works with: a real lock and a real database, and a program in the
// place of the engine.
type office struct {
	*Runner
	db     *tenantdb.DB
	locks  *lockwrap.Manager
	rung   []Bell
	marks  []string
	told   map[string]Shown
	untold error // why nothing can be kept
	plans  []Schedule
	state  map[string]ScheduleState

	next      time.Time // when the outbox's next message is due; zero: none is pending
	delivered int

	mu  sync.Mutex
	run func(ctx context.Context, c engine.Call) (*engine.Result, error)
}

func newOffice(t *testing.T, change ...func(*Config)) *office {
	t.Helper()
	backend, err := embedded.New(t.Context(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	o := &office{state: map[string]ScheduleState{}}
	if o.locks, err = lockwrap.New(lockwrap.Config{Backend: backend, Instance: "test"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.locks.Close(context.Background()) })
	if o.db, err = tenantdb.OpenSQLite(t.Context(), tenantdb.SQLiteConfig{Path: filepath.Join(t.TempDir(), "t.db"), Sync: "normal"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.db.Close() })
	cfg := Config{Calls: o, Locks: o.locks, Databases: o, Marks: o, Progress: o, Principals: o, Queue: o, Schedules: o, Outbox: o, Overrun: 50 * time.Millisecond}
	for _, c := range change {
		c(&cfg)
	}
	if o.Runner, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) Invoke(ctx context.Context, c engine.Call) (*engine.Result, error) {
	return o.run(ctx, c)
}

func (o *office) Describe(_, key, _ string) (apis.Definition, bool) {
	on := key != "off"
	d, err := apis.Definition{ApiEngineKey: key, Timeout: 1, AllowAnonymous: true, IsEnable: &on, ApiV8Code: "return 1;"}.Validate()
	return d, err == nil && key != "gone"
}

func (o *office) MayCall(engine.Caller, *apis.Definition) error { return nil }

func (o *office) Tenant(context.Context, string) (*tenantdb.DB, error) { return o.db, nil }

func (o *office) Mark(_ context.Context, tenant string) error {
	o.marks = append(o.marks, tenant)
	return nil
}
func (o *office) Marked(context.Context, time.Duration) ([]string, error) { return o.marks, nil }
func (o *office) Unmark(_ context.Context, tenant string, _ time.Duration) error {
	o.marks = nil
	return nil
}

func (o *office) KeepShown(_ context.Context, _ string, list []Shown) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.untold != nil {
		return o.untold
	}
	if o.told == nil {
		o.told = map[string]Shown{}
	}
	for _, s := range list {
		was := o.told[s.Task]
		s.Current, s.Best = max(s.Current, was.Current), max(s.Best, was.Best)
		o.told[s.Task] = s
	}
	return nil
}

func (o *office) Shown(_ context.Context, _ string, ids []string) (out []Shown, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range ids {
		if s, ok := o.told[id]; ok {
			out = append(out, s)
		}
	}
	return out, nil
}

func (o *office) ForgetShown(context.Context, time.Duration) (int64, error) { return 0, nil }

func (o *office) Reload(_ context.Context, _ string, c engine.Caller) (engine.Caller, error) {
	return c, nil
}

func (o *office) Ring(_ context.Context, bells ...Bell) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rung = append(o.rung, bells...)
	return nil
}

func (o *office) Work(ctx context.Context, w Work) error { <-ctx.Done(); return nil }

func (o *office) All() []Schedule { return o.plans }

func (o *office) State(_ context.Context, _, api string) (ScheduleState, error) {
	return o.state[api], nil
}

func (o *office) Save(_ context.Context, from, to ScheduleState) (bool, error) {
	if !o.state[to.API].FiredAt.Equal(from.FiredAt) {
		return false, nil
	}
	o.state[to.API] = to
	return true, nil
}

func (o *office) order(t *testing.T, ord Order) Task {
	t.Helper()
	got, err := o.Submit(t.Context(), "t", engine.Caller{}, ord)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (o *office) row(t *testing.T, id string) tenantdb.Task {
	t.Helper()
	got, err := o.db.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (o *office) Deliver(context.Context, string) (time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.delivered++
	return o.next, nil
}

func (o *office) Next(context.Context, string) (time.Time, bool, error) {
	return o.next, !o.next.IsZero(), nil
}
