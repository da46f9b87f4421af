package embedded

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// tokens makes the tokens of all locks: max(last + 1, time in us). Before a token is given
// out the mark that is saved is at least as great, so that no later process repeats it.
type tokens struct {
	mark  Mark // nil: nothing is saved
	given atomic.Int64
	saved atomic.Int64

	mu sync.Mutex // one save at a time
}

// What is reserved by one save: a minute of the clock, or a million tokens where the clock
// is behind them; and how early the next save is made.
const (
	aheadOfClock = int64(time.Minute / time.Microsecond)
	aheadOfGiven = 1_000_000
	reserveEarly = 100_000 // far more than the acquires that can be under way at once
)

func (t *tokens) open(ctx context.Context, m Mark) error {
	t.mark = m
	if m == nil {
		t.saved.Store(math.MaxInt64)
		return nil
	}
	v, err := m.Load(ctx)
	if err != nil {
		return fmt.Errorf("embedded: the token mark cannot be read: %w", err)
	}
	t.given.Store(v)
	t.saved.Store(v)
	return nil
}

func (t *tokens) last() int64 { return t.given.Load() }

// next returns the next token. reserve must have succeeded just before; should the caller
// have been paused since, the clock does not carry the token over the mark.
func (t *tokens) next() int64 {
	for {
		last := t.given.Load()
		n := max(last+1, min(time.Now().UnixMicro(), t.saved.Load()))
		if t.given.CompareAndSwap(last, n) {
			return n
		}
	}
}

// reserve makes sure that the tokens of the near future lie below the saved mark.
func (t *tokens) reserve(ctx context.Context) error {
	if t.mark == nil || t.near() < t.saved.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.near() < t.saved.Load() {
		return nil
	}
	v := max(t.given.Load()+aheadOfGiven, time.Now().UnixMicro()+aheadOfClock)
	if err := t.mark.Save(ctx, v); err != nil {
		return fmt.Errorf("the token mark cannot be saved: %w", err)
	}
	t.saved.Store(v)
	return nil
}

// near is a bound for the tokens given out before anybody calls reserve again.
func (t *tokens) near() int64 {
	return max(t.given.Load(), time.Now().UnixMicro()) + reserveEarly
}

// close saves the last token given, so that the next process does not begin ahead of the clock.
func (t *tokens) close(ctx context.Context) error {
	if t.mark == nil || t.given.Load() == t.saved.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.mark.Save(ctx, t.given.Load()); err != nil {
		return fmt.Errorf("embedded: the token mark cannot be saved: %w", err)
	}
	return nil
}
