package lockwrap

import (
	"context"
	"sync/atomic"
)

// tally counts things that Close waits for. Unlike a WaitGroup's it may rise from zero
// while somebody waits.
type tally struct {
	n       atomic.Int64
	waiting atomic.Bool
	zero    chan struct{} // of capacity 1
}

func newTally() *tally { return &tally{zero: make(chan struct{}, 1)} }

func (t *tally) add() { t.n.Add(1) }

func (t *tally) done() {
	if t.n.Add(-1) == 0 && t.waiting.Load() {
		select {
		case t.zero <- struct{}{}:
		default:
		}
	}
}

// wait returns nil as soon as the tally is zero, or ctx's cause. One caller at a time.
func (t *tally) wait(ctx context.Context) error {
	t.waiting.Store(true)
	for t.n.Load() > 0 {
		select {
		case <-t.zero:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
