package cache

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
)

// marks are the tokens that keys were written with. They are bounded too: when they have
// filled their room, those that are asked for least are forgotten.
type marks struct {
	known *otter.Cache[key, mark]
	seed  maphash.Seed
	locks [64]sync.Mutex // a fenced write compares and writes under its key's
}

// mark is the largest token that wrote a key. keep is how long the write that made it wants
// it kept.
type mark struct {
	token int64
	keep  time.Duration
}

// maxMarks bounds keys and marks, in bytes.
const maxMarks = 64 << 20

func newMarks() (*marks, error) {
	known, err := otter.New(&otter.Options[key, mark]{
		MaximumWeight:    maxMarks,
		Weigher:          func(k key, _ mark) uint32 { return uint32(overhead + len(k.name)) },
		ExpiryCalculator: remembrance{},
		Logger:           &otter.NoopLogger{},
	})
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return &marks{known: known, seed: maphash.MakeSeed()}, nil
}

// remembrance keeps a mark as long as the writes that made it want, the longest of them.
type remembrance struct{}

func (remembrance) ExpireAfterCreate(e otter.Entry[key, mark]) time.Duration { return e.Value.keep }

func (remembrance) ExpireAfterUpdate(e otter.Entry[key, mark], _ mark) time.Duration {
	return max(e.Value.keep, e.ExpiresAfter())
}

func (remembrance) ExpireAfterRead(e otter.Entry[key, mark]) time.Duration { return e.ExpiresAfter() }

func (e *Embedded) fenced(ctx context.Context, o op) (done bool, err error) {
	if o.token == 0 {
		return e.write(ctx, o)
	}
	m := e.marks
	mu := &m.locks[maphash.Comparable(m.seed, o.key)%uint64(len(m.locks))]
	mu.Lock()
	defer mu.Unlock()
	old, marked := m.known.GetIfPresent(o.key)
	switch {
	case old.token <= o.token:
	case o.kind == opSetFenced:
		return false, nil
	default:
		return e.remove(ctx, o.key)
	}
	done, err = e.write(ctx, o)
	if err == nil && (marked || o.keep > 0) {
		m.known.Set(o.key, mark{o.token, o.keep})
	}
	return done, err
}

func (e *Embedded) mark(ctx context.Context, k key) (int64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	m, _ := e.marks.known.GetIfPresent(k)
	return m.token, nil
}

// effects are for a lock in the same process, which runs them under its own mutex.
func (e *Embedded) effects(ops []op) any {
	return func(held bool) (failed int) {
		for _, o := range ops {
			if held {
				if _, err := e.fenced(context.Background(), o); err == nil {
					continue
				}
				failed++
			}
			e.entries.Invalidate(o.key)
		}
		return failed
	}
}
