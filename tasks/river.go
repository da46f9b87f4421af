package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"

	"apiengine/budget"
)

// RiverConfig sets up a River. A zero field takes its default.
type RiverConfig struct {
	Schema string        // of the queue's tables; empty: the connection's own
	Log    *slog.Logger  // default discards
	ID     string        // this node's name in the queue; default made up
	Poll   time.Duration // between two looks into the queue when nobody was told; default 1 s
}

func (c RiverConfig) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(quiet{c.Log.Handler()})
}

// River is the Queue: on PostgreSQL nodes are told by a notification, on SQLite within the
// process.
type River[Tx any] struct {
	driver riverdriver.Driver[Tx]
	cfg    RiverConfig
	client atomic.Pointer[river.Client[Tx]] // the one that works, else one that only rings
}

// outboxQueue is apart from the tasks', so that no long slice keeps a message waiting.
const outboxQueue = "outbox"

// bellArgs are a job.
type bellArgs struct {
	Tenant string `json:"tenant" river:"unique"`
	Task   string `json:"task" river:"unique"`
	Once   string `json:"once,omitempty" river:"unique"`
}

// Kind implements river.JobArgs.
func (bellArgs) Kind() string { return "apiengine_task" }

// NewRiver returns the Queue on a database whose tables Migrate has made.
func NewRiver[Tx any](driver riverdriver.Driver[Tx], cfg RiverConfig) (*River[Tx], error) {
	cfg.Log = cfg.log()
	if cfg.Poll == 0 {
		cfg.Poll = time.Second
	}
	q := &River[Tx]{driver: driver, cfg: cfg}
	client, err := river.NewClient(driver, &river.Config{Schema: cfg.Schema, Logger: cfg.Log, SkipUnknownJobCheck: true})
	if err != nil {
		return nil, fmt.Errorf("tasks: %w", err)
	}
	q.client.Store(client)
	return q, nil
}

// Migrate makes the queue's tables, or brings them up to date. Only one process may at a time.
func Migrate[Tx any](ctx context.Context, driver riverdriver.Driver[Tx], cfg RiverConfig) error {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: cfg.Schema, Logger: cfg.log()})
	if err != nil {
		return fmt.Errorf("tasks: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("tasks: the queue's tables: %w", err)
	}
	return nil
}

// Ring implements Queue.
func (q *River[Tx]) Ring(ctx context.Context, bells ...Bell) error {
	if len(bells) == 0 {
		return nil
	}
	params := make([]river.InsertManyParams, len(bells))
	for i, b := range bells {
		// One try: what a job has to do stands in the task's row, and the watch rings again.
		opts := &river.InsertOpts{MaxAttempts: 1, Priority: min(max(b.Priority, 1), 4)}
		if b.Priority == 0 {
			opts.Priority = 2
		}
		if b.After > 0 {
			opts.ScheduledAt = time.Now().Add(b.After)
		}
		if b.Task == "" {
			opts.Queue = outboxQueue
		}
		if b.Once != "" {
			opts.UniqueOpts = river.UniqueOpts{ByArgs: true}
		}
		params[i] = river.InsertManyParams{Args: bellArgs{b.Tenant, b.Task, b.Once}, InsertOpts: opts}
	}
	_, err := q.client.Load().InsertMany(ctx, params)
	return err
}

// worker turns a job into a turn.
type worker struct {
	river.WorkerDefaults[bellArgs]
	work Work
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, job *river.Job[bellArgs]) error {
	if again := w.work.Turn(ctx, job.Args.Tenant, job.Args.Task); again >= 0 {
		return river.JobSnooze(again)
	}
	return nil
}

// What ends a slice is its budget, not the queue: a job that is older than any slice can be
// was left by a node that died, and is dropped.
const (
	jobLimit  = budget.MaxTaskTimeout + time.Hour
	jobRescue = jobLimit + time.Hour
	// jobKeep is how long jobs that are done stay, for a look by people.
	jobKeep = time.Hour
)

// Work implements Queue.
func (q *River[Tx]) Work(ctx context.Context, w Work) error {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{work: w}); err != nil {
		return fmt.Errorf("tasks: %w", err)
	}
	client, err := q.start(ctx, w, workers)
	if client == nil {
		return err
	}
	rings := q.client.Swap(client) // the one that works tells its own workers at once
	defer q.client.Store(rings)
	<-ctx.Done()
	return q.stop(context.WithoutCancel(ctx), client, w)
}

// startPause is the time between two tries to start on a database that does not answer.
const startPause = time.Second

// start starts a client. A database that is away then is waited for, as it is later: nil
// without an error when ctx ends first.
func (q *River[Tx]) start(ctx context.Context, w Work, workers *river.Workers) (*river.Client[Tx], error) {
	for {
		client, err := river.NewClient(q.driver, &river.Config{Schema: q.cfg.Schema, Logger: q.cfg.Log, ID: q.cfg.ID, Workers: workers,
			Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: w.Workers}, outboxQueue: {MaxWorkers: w.Workers}},
			FetchCooldown: 20 * time.Millisecond, FetchPollInterval: q.cfg.Poll,
			JobTimeout: jobLimit, RescueStuckJobsAfter: jobRescue,
			CompletedJobRetentionPeriod: jobKeep, CancelledJobRetentionPeriod: jobKeep, DiscardedJobRetentionPeriod: 24 * jobKeep})
		if err != nil {
			return nil, fmt.Errorf("tasks: %w", err)
		}
		if err = client.Start(context.WithoutCancel(ctx)); err == nil {
			return client, nil
		}
		q.cfg.Log.Error("the queue of tasks cannot start yet", "error", err)
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(startPause):
		}
	}
}

// stopLimit is how long the queue may take to note what its last jobs have done.
const stopLimit = 10 * time.Second

func (q *River[Tx]) stop(ctx context.Context, client *river.Client[Tx], w Work) error {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		w.Drain(ctx)
	}()
	stopping, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-drained
		select {
		case <-time.After(stopLimit):
			cancel()
		case <-stopping.Done():
		}
	}()
	err := client.Stop(stopping) // no new jobs from here on
	<-drained
	if errors.Is(err, context.Canceled) {
		ending, cancel := context.WithTimeout(ctx, stopLimit)
		defer cancel()
		err = client.StopAndCancel(ending)
	}
	return err
}

// quiet keeps what the queue says of its daily work out of the log.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

func (q quiet) WithAttrs(as []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(as)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
