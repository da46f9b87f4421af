package outbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"apiengine/fault"
)

// line is the delivery of one tenant's messages by one caller.
type line struct {
	r      *Relay
	tenant string
	done   chan struct{} // one delivery has ended
	busy   int           // deliveries under way; only the caller touches it
}

// othersPause is the most until the next look where messages were due and others took them.
const othersPause = 100 * time.Millisecond

// take claims what is due and begins to deliver it, under work. Where there is nothing to
// begin with, wait is as of Box.Claim.
func (l *line) take(ctx, work context.Context, deliveries *sync.WaitGroup) (began int, wait time.Duration, err error) {
	cfg := &l.r.cfg
	claim := Claim{Name: cfg.Instance + "/" + uuid.NewString(), Lease: cfg.Lease, Max: cfg.Parallel - l.busy}
	since := time.Now() // before the claim: the lease ends no later than we think
	box, err := cfg.Boxes.Box(ctx, l.tenant)
	if err != nil {
		return 0, 0, err
	}
	messages, wait, err := box.Claim(ctx, claim)
	for _, m := range messages {
		l.busy++
		deliveries.Go(func() {
			d := delivery{line: l, box: box, claim: claim.Name, m: m}
			d.run(work, since)
			l.done <- struct{}{} // as many places as deliveries: never waits
		})
	}
	return len(messages), wait, err
}

// jitter is a random time from half of d to d, so that nodes do not look in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// delivery is one message on its way.
type delivery struct {
	*line
	box   Box
	claim string
	m     Message
}

// run delivers the message and ends its claim.
func (d delivery) run(ctx context.Context, since time.Time) {
	held, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	var v Verdict
	if d.m.Attempts > d.r.cfg.Attempts { // the last try ended with its node, or another node allows more of them
		d.r.cfg.Log.Error("message not delivered, its tries are used up", "tenant", d.tenant, "event", d.m.EventID, "target", d.m.Target, "attempt", d.m.Attempts)
		v = Verdict{Outcome: Dead}
	} else {
		stopKeeping := d.keep(held, lose, since)
		err := d.r.cfg.Deliverer.Deliver(held, d.tenant, d.m)
		stopKeeping()
		v = d.verdict(ctx, err)
	}
	d.end(v)
}

// keep extends the claim every third of the lease until stop is called; where that fails
// until its end, the delivery is called off: somebody else may have the message.
func (d delivery) keep(ctx context.Context, lose context.CancelCauseFunc, since time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	lease := d.r.cfg.Lease
	keeper.Go(func() {
		tick := time.NewTicker(lease / 3)
		defer tick.Stop()
		end := time.AfterFunc(time.Until(since.Add(lease)), func() { lose(errClaimEnded) })
		defer end.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			sent := time.Now()
			try, done := context.WithTimeout(ctx, lease/3)
			kept, err := d.box.Extend(try, d.m.Row, d.claim, lease)
			done()
			switch {
			case err != nil: // again at the next tick, as long as the claim lasts
			case !kept:
				lose(errClaimEnded)
				return
			default:
				end.Reset(time.Until(sent.Add(lease)))
			}
		}
	})
	return func() { cancel(); keeper.Wait() }
}

var errClaimEnded = fault.New(fault.Canceled, "the claim on the message has ended")

// verdict says what a delivery's end means. One that was cut off by the node's own
// shutdown does not count; one whose claim has ended is not ours to judge.
func (d delivery) verdict(ctx context.Context, err error) Verdict {
	cfg := &d.r.cfg
	attrs := []any{"tenant", d.tenant, "event", d.m.EventID, "target", d.m.Target, "attempt", d.m.Attempts}
	switch {
	case err == nil:
		cfg.Log.Debug("message delivered", attrs...)
		return Verdict{}
	case ctx.Err() != nil:
		return Verdict{Outcome: GivenBack}
	case d.m.Attempts >= cfg.Attempts:
		cfg.Log.Error("message not delivered, it is a dead letter now", append(attrs, "error", err)...)
		return Verdict{Outcome: Dead, Why: reason(err)}
	}
	pause := jitter(cfg.pause(d.m.Attempts))
	cfg.Log.Warn("message not delivered, it is tried again", append(attrs, "after", pause.String(), "error", err)...)
	return Verdict{Outcome: Retry, After: pause, Why: reason(err)}
}

// pause is the longest one after a number of tries.
func (c *Config) pause(tries int) time.Duration {
	return time.Duration(min(float64(c.MaxPause), float64(c.Backoff)*math.Pow(2, float64(tries-1))))
}

// reason is what an administrator reads of a failure.
func reason(err error) string {
	if r := new(RefusedError); errors.As(err, &r) {
		return r.Error()
	}
	return fmt.Sprintf("%s: %s", fault.Of(err), fault.Public(err))
}

// endTries and endLimit bound the marking of a message whose delivery has ended. Where it
// cannot be marked its claim runs out, and it is delivered again.
const (
	endTries = 3
	endLimit = 5 * time.Second
)

func (d delivery) end(v Verdict) {
	var err error
	for range endTries {
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		_, err = d.box.End(ctx, d.m.Row, d.claim, v)
		cancel()
		if err == nil {
			return
		}
	}
	d.r.cfg.Log.Error("a delivered message cannot be marked, it will be delivered again", "tenant", d.tenant, "event", d.m.EventID, "error", err)
}
