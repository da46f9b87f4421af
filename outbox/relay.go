package outbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"apiengine/engine"
)

// Message is a claimed event.
type Message struct {
	Row       int64
	Attempts  int  // with this one
	Gap       bool // an earlier message of its key is a dead letter
	CreatedAt time.Time
	engine.Message
}

// Claim asks for messages to deliver.
type Claim struct {
	Name  string        // of the claim, unique
	Lease time.Duration // how long they are kept from others
	Max   int
}

// Verdict is what became of a delivery.
type Verdict struct {
	Outcome Outcome
	After   time.Duration // until the next try, with Retry
	Why     string        // with Retry and Dead; empty with Dead: as the last try that said so
}

// Outcome says how a claim ends.
type Outcome int

// The outcomes.
const (
	Delivered Outcome = iota
	Retry
	Dead
	GivenBack // not tried: as if it had not been claimed
)

// Box is the outbox of one tenant.
type Box interface {
	// Claim returns messages that are due, or how long it is until one is; wait is negative
	// when none is pending.
	Claim(ctx context.Context, c Claim) (messages []Message, wait time.Duration, err error)
	// Extend keeps a claim for another lease; false: it has ended.
	Extend(ctx context.Context, row int64, claim string, lease time.Duration) (bool, error)
	// End ends a claim; false: it has ended before, and another relay has the message.
	End(ctx context.Context, row int64, claim string, v Verdict) (bool, error)
	// Sweep removes what ended, and what the inbox noted, longer ago than these.
	Sweep(ctx context.Context, ended, seen time.Duration) (more bool, err error)
}

// Boxes knows every tenant's outbox.
type Boxes interface {
	Tenants(ctx context.Context) ([]string, error)
	Box(ctx context.Context, tenant string) (Box, error)
}

// Deliverer carries one message to its target. nil: delivered.
type Deliverer interface {
	Deliver(ctx context.Context, tenant string, m Message) error
}

// Config sets up a Relay. Boxes and Deliverer are required; a zero field of the rest takes
// its default.
type Config struct {
	Boxes     Boxes
	Deliverer Deliverer
	Log       *slog.Logger // default discards
	Instance  string       // this node's name in claims; default "relay"

	Lease    time.Duration // of a claim: how long the messages of a node that died wait; default 30 s
	Poll     time.Duration // between looks at a tenant where nothing is pending; default 5 s
	Backoff  time.Duration // before the second try, doubled for each further one; default 5 s
	MaxPause time.Duration // between two tries; default 1 h
	Attempts int           // then it is a dead letter; default 20
	Parallel int           // deliveries of one tenant at a time; default 8
	Grace    time.Duration // for deliveries under way when Run is told to end; default 10 s
	Keep     time.Duration // of delivered and dropped messages; default 7 days
	KeepSeen time.Duration // of the inbox's notes; default 90 days
}

// Relay delivers the messages of all tenants. Make it with New.
type Relay struct {
	cfg   Config
	mu    sync.Mutex
	lines map[string]*line // by tenant
	woken chan struct{}    // a tenant without a line has posted
}

// New returns a Relay, or an error that names the first unusable field of cfg.
func New(cfg Config) (*Relay, error) {
	switch {
	case cfg.Boxes == nil:
		return nil, errors.New("outbox: Config.Boxes is missing")
	case cfg.Deliverer == nil:
		return nil, errors.New("outbox: Config.Deliverer is missing")
	case min(cfg.Lease, cfg.Poll, cfg.Backoff, cfg.MaxPause, cfg.Grace, cfg.Keep, cfg.KeepSeen) < 0 || min(cfg.Attempts, cfg.Parallel) < 0:
		return nil, errors.New("outbox: a time or a number of Config is negative")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Instance = cmp.Or(cfg.Instance, "relay")
	cfg.Lease = cmp.Or(cfg.Lease, 30*time.Second)
	cfg.Poll = cmp.Or(cfg.Poll, 5*time.Second)
	cfg.Backoff = cmp.Or(cfg.Backoff, 5*time.Second)
	cfg.MaxPause = cmp.Or(cfg.MaxPause, time.Hour)
	cfg.Attempts = cmp.Or(cfg.Attempts, 20)
	cfg.Parallel = cmp.Or(cfg.Parallel, 8)
	cfg.Grace = cmp.Or(cfg.Grace, 10*time.Second)
	cfg.Keep = cmp.Or(cfg.Keep, 7*24*time.Hour)
	cfg.KeepSeen = cmp.Or(cfg.KeepSeen, 90*24*time.Hour)
	return &Relay{cfg: cfg, lines: map[string]*line{}, woken: make(chan struct{}, 1)}, nil
}

// Posted says that a tenant's outbox has something new. It does not wait.
func (r *Relay) Posted(tenant string) {
	r.mu.Lock()
	l := r.lines[tenant]
	r.mu.Unlock()
	to := r.woken
	if l != nil {
		to = l.woken
	}
	select {
	case to <- struct{}{}:
	default: // it has not looked since the last time
	}
}

// Run delivers until ctx ends; then it takes nothing new, and returns when the deliveries
// under way are through, or were cut off after the grace. It is called once.
func (r *Relay) Run(ctx context.Context) error {
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(r.cfg.Grace, cut)
		context.AfterFunc(work, func() { t.Stop() })
	})
	defer stop()
	var lines sync.WaitGroup
	defer lines.Wait()
	tick := time.NewTicker(r.cfg.Poll)
	defer tick.Stop()
	for {
		tenants, err := r.cfg.Boxes.Tenants(ctx)
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.Error("the outbox cannot list the tenants", "error", err)
		}
		for _, tenant := range tenants {
			r.mu.Lock()
			known := r.lines[tenant] != nil
			if !known {
				r.lines[tenant] = r.newLine(tenant)
			}
			l := r.lines[tenant]
			r.mu.Unlock()
			if !known {
				lines.Go(func() { l.run(ctx, work) })
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-r.woken:
		}
	}
}
