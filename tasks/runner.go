package tasks

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/lockwrap"
	"apiengine/store/tenantdb"
)

// Invoker runs calls; *engine.Engine is one.
type Invoker interface {
	Invoke(ctx context.Context, c engine.Call) (*engine.Result, error)
	// Describe returns the live definition of an API.
	Describe(tenant, key, path string) (apis.Definition, bool)
	// MayCall is nil when somebody may call the API of a definition, else why not.
	MayCall(c engine.Caller, d *apis.Definition) error
}

// Databases opens a tenant's own database.
type Databases interface {
	Tenant(ctx context.Context, tenant string) (*tenantdb.DB, error)
}

// Marks remembers, in the platform's database, which tenants may have tasks that are not over.
type Marks interface {
	// Mark says that the tenant is going to have one.
	Mark(ctx context.Context, tenant string) error
	// Marked returns the tenants that nobody has looked at for so long, and counts as a look.
	Marked(ctx context.Context, unseen time.Duration) ([]string, error)
	// Unmark forgets a tenant unless it was marked again since so long.
	Unmark(ctx context.Context, tenant string, unmarked time.Duration) error
}

// Principals says who somebody is by now.
type Principals interface {
	// Reload returns the caller with today's rights; unauthenticated or forbidden: none any more.
	Reload(ctx context.Context, tenant string, c engine.Caller) (engine.Caller, error)
}

// Outbox delivers tenants' messages; *outbox.Relay is one.
type Outbox interface {
	// Deliver delivers what is due, and returns when the next message is; zero: none is pending.
	Deliver(ctx context.Context, tenant string) (next time.Time, err error)
	// Next says when a message is due, and reports whether one is pending at all.
	Next(ctx context.Context, tenant string) (due time.Time, pending bool, err error)
}

// Config sets up a Runner. The fields up to Outbox are required; a zero field of the rest
// takes its default.
type Config struct {
	Calls      Invoker
	Locks      *lockwrap.Manager
	Databases  Databases
	Marks      Marks
	Progress   Progress
	Principals Principals
	Queue      Queue
	Schedules  Schedules
	Outbox     Outbox

	Log         *slog.Logger  // default discards
	Workers     int           // slices at a time on this node; default twice the processors, at least 4
	MaxAttempts int           // tries of a slice unless the task says otherwise; default 10
	MaxSlices   int64         // of one task; default 100000
	Backoff     time.Duration // before the second try, doubled up to 60 times; default 5 s
	Look        time.Duration // between two looks for tasks that nobody was told of; default 5 s
	Report      time.Duration // between two looks at running slices: progress, cancel; default 500 ms
	Turn        time.Duration // how long a worker stays with one task while others wait; default 2 s
	Keep        time.Duration // how long tasks that are over are kept; default 30 days
	Overrun     time.Duration // how long a run may ignore its end before its worker goes on without it; default 5 s
	Grace       time.Duration // that Run lets running slices finish in; default 10 s
}

// Runner runs tasks on one node, and takes orders for tasks. It is safe for concurrent use.
type Runner struct {
	cfg      Config
	born     int64 // tells its bells from those of a process that died with them in hand
	live     *live
	draining atomic.Bool
	stuck    atomic.Int64
	marked   marked
	ordered  chan Bell // by scripts, whose commit does not wait for the queue
	posts    posts
	working  context.Context // ends when the drain begins
	rest     context.CancelFunc
}

// New returns a Runner, or an error that names the first unusable field of cfg.
func New(cfg Config) (*Runner, error) {
	for _, f := range []struct {
		name    string
		missing bool
	}{
		{"Calls", cfg.Calls == nil}, {"Locks", cfg.Locks == nil}, {"Databases", cfg.Databases == nil},
		{"Marks", cfg.Marks == nil}, {"Progress", cfg.Progress == nil}, {"Principals", cfg.Principals == nil}, {"Queue", cfg.Queue == nil}, {"Schedules", cfg.Schedules == nil}, {"Outbox", cfg.Outbox == nil},
	} {
		if f.missing {
			return nil, errors.New("tasks: Config." + f.name + " is missing")
		}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Workers = cmp.Or(cfg.Workers, max(4, 2*runtime.GOMAXPROCS(0)))
	cfg.MaxAttempts = cmp.Or(cfg.MaxAttempts, 10)
	cfg.MaxSlices = cmp.Or(cfg.MaxSlices, 100_000)
	cfg.Backoff = cmp.Or(cfg.Backoff, 5*time.Second)
	cfg.Look = cmp.Or(cfg.Look, 5*time.Second)
	cfg.Report = cmp.Or(cfg.Report, 500*time.Millisecond)
	cfg.Keep = cmp.Or(cfg.Keep, 30*24*time.Hour)
	cfg.Turn = cmp.Or(cfg.Turn, 2*time.Second)
	cfg.Overrun = cmp.Or(cfg.Overrun, 5*time.Second)
	cfg.Grace = cmp.Or(cfg.Grace, 10*time.Second)
	return &Runner{cfg: cfg, born: time.Now().UnixNano(), live: newLive(), marked: newMarked(cfg.Marks), ordered: make(chan Bell, 1000)}, nil
}

// Stuck is how many runs went on after their end, and still do.
func (r *Runner) Stuck() int { return int(r.stuck.Load()) }

// Run works until ctx ends. Then it takes no more slices, and gives those that do not end
// within Config.Grace back: they are rolled back and cost no attempt.
func (r *Runner) Run(ctx context.Context) error {
	r.draining.Store(false)
	r.working, r.rest = context.WithCancel(context.WithoutCancel(ctx))
	defer r.rest()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { r.watch(watching) })
	beside.Go(func() { r.ringOrdered(watching) })
	beside.Go(func() { r.keepTime(watching) })
	return r.cfg.Queue.Work(ctx, Work{Workers: r.cfg.Workers, Turn: r.turn, Drain: r.drain})
}

// drain is called when the queue takes no more; it returns when no slice is under way.
func (r *Runner) drain(ctx context.Context) {
	r.draining.Store(true)
	r.rest()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Grace)
	defer cancel()
	if r.live.wait(ctx) {
		return
	}
	r.live.endAll(errDraining)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Overrun)
	defer cancel()
	r.live.wait(last)
}
