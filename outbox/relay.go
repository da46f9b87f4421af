package outbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
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
	Backoff  time.Duration // before the second try, doubled for each further one; default 5 s
	MaxPause time.Duration // between two tries; default 1 h
	Attempts int           // then it is a dead letter; default 20
	Parallel int           // deliveries of one tenant at a time; default 8
	Grace    time.Duration // for deliveries under way when Deliver is told to end; default 10 s
	Keep     time.Duration // of delivered and dropped messages; default 7 days
	KeepSeen time.Duration // of the inbox's notes; default 90 days
}

// Relay delivers messages, of one tenant at a time, when it is asked to. Make it with New.
type Relay struct{ cfg Config }

// New returns a Relay, or an error that names the first unusable field of cfg.
func New(cfg Config) (*Relay, error) {
	switch {
	case cfg.Boxes == nil:
		return nil, errors.New("outbox: Config.Boxes is missing")
	case cfg.Deliverer == nil:
		return nil, errors.New("outbox: Config.Deliverer is missing")
	case min(cfg.Lease, cfg.Backoff, cfg.MaxPause, cfg.Grace, cfg.Keep, cfg.KeepSeen) < 0 || min(cfg.Attempts, cfg.Parallel) < 0:
		return nil, errors.New("outbox: a time or a number of Config is negative")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Instance = cmp.Or(cfg.Instance, "relay")
	cfg.Lease = cmp.Or(cfg.Lease, 30*time.Second)
	cfg.Backoff = cmp.Or(cfg.Backoff, 5*time.Second)
	cfg.MaxPause = cmp.Or(cfg.MaxPause, time.Hour)
	cfg.Attempts = cmp.Or(cfg.Attempts, 20)
	cfg.Parallel = cmp.Or(cfg.Parallel, 8)
	cfg.Grace = cmp.Or(cfg.Grace, 10*time.Second)
	cfg.Keep = cmp.Or(cfg.Keep, 7*24*time.Hour)
	cfg.KeepSeen = cmp.Or(cfg.KeepSeen, 90*24*time.Hour)
	return &Relay{cfg: cfg}, nil
}
