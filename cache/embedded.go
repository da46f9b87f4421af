package cache

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
)

// EmbeddedConfig sets up an Embedded; a zero field takes its default.
type EmbeddedConfig struct {
	// MaxBytes bounds keys and values of all tenants together; default 256 MiB. Entries are
	// dropped a moment after the write that was too much, so a burst may go over it.
	MaxBytes uint64
}

// Embedded is a cache in this process. When it is full it drops the entries that are used
// least, as Redis does under maxmemory with an LFU policy.
type Embedded struct {
	entries *otter.Cache[key, entry]
	marks   *marks
}

// entry is one stored value. It is never changed; a hash has its own lock.
type entry struct {
	value string
	hash  *hash // nil for a string
	// keep and ttl tell the expiry calculator what this write does to the entry's life.
	keep bool
	ttl  time.Duration
}

// NewEmbedded returns an empty cache. Close it.
func NewEmbedded(cfg EmbeddedConfig) (*Embedded, error) {
	entries, err := otter.New(&otter.Options[key, entry]{
		MaximumWeight:    cmp.Or(cfg.MaxBytes, 256<<20),
		Weigher:          weigh,
		ExpiryCalculator: lifetime{},
		Logger:           &otter.NoopLogger{},
	})
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	m, err := newMarks()
	if err != nil {
		entries.StopAllGoroutines()
		return nil, err
	}
	return &Embedded{entries: entries, marks: m}, nil
}

// Close stops the goroutines that remove expired entries and waits for them.
func (e *Embedded) Close() {
	e.entries.StopAllGoroutines()
	e.marks.known.StopAllGoroutines()
}

// For returns the part of tenant, a checked tenant name.
func (e *Embedded) For(tenant string) *View { return &View{tenant: tenant, driver: e} }

// overhead is about what the cache itself keeps for an entry, in bytes.
const overhead = 150

func weigh(k key, e entry) uint32 {
	size := overhead + len(k.name) + len(e.value)
	if e.hash != nil {
		size += e.hash.bytes()
	}
	return uint32(min(size, math.MaxUint32))
}

// lifetime is otter's expiry calculator: the write itself says how long.
type lifetime struct{}

func (lifetime) ExpireAfterCreate(e otter.Entry[key, entry]) time.Duration {
	if e.Value.ttl == 0 {
		return forever
	}
	return e.Value.ttl
}

func (l lifetime) ExpireAfterUpdate(e otter.Entry[key, entry], _ entry) time.Duration {
	if e.Value.keep {
		return e.ExpiresAfter()
	}
	return l.ExpireAfterCreate(e)
}

func (lifetime) ExpireAfterRead(e otter.Entry[key, entry]) time.Duration { return e.ExpiresAfter() }

// change is one step of compute: what the key holds becomes what it shall hold.
type change func(old entry, found bool) (entry, otter.ComputeOp)

// compute runs f alone for its key.
func (e *Embedded) compute(ctx context.Context, k key, f change) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	e.entries.Compute(k, f)
	return nil
}

// read returns the entry of k.
func (e *Embedded) read(ctx context.Context, k key) (entry, bool, error) {
	if ctx.Err() != nil {
		return entry{}, false, context.Cause(ctx)
	}
	found, ok := e.entries.GetIfPresent(k)
	return found, ok, nil
}

func (e *Embedded) get(ctx context.Context, k key) (string, bool, error) {
	found, ok, err := e.read(ctx, k)
	if ok && found.hash != nil {
		return "", false, errWrongType(k)
	}
	return found.value, ok, err
}

func (e *Embedded) set(ctx context.Context, k key, value string, ttl time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.entries.Set(k, entry{value: own(value), ttl: ttl})
	return nil
}

func (e *Embedded) remove(ctx context.Context, k key) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	_, existed := e.entries.Invalidate(k)
	return existed, nil
}

func (e *Embedded) exists(ctx context.Context, k key) (bool, error) {
	_, ok, err := e.read(ctx, k)
	return ok, err
}

func (e *Embedded) expire(ctx context.Context, k key, ttl time.Duration) (existed bool, err error) {
	err = e.compute(ctx, k, func(old entry, found bool) (entry, otter.ComputeOp) {
		if existed = found; !found {
			return old, otter.CancelOp
		}
		old.keep, old.ttl = false, ttl
		return old, otter.WriteOp
	})
	return existed, err
}

func (e *Embedded) setIfNotExists(ctx context.Context, k key, value string, ttl time.Duration) (stored bool, err error) {
	err = e.compute(ctx, k, func(old entry, found bool) (entry, otter.ComputeOp) {
		if stored = !found; found {
			return old, otter.CancelOp
		}
		return entry{value: own(value), ttl: ttl}, otter.WriteOp
	})
	return stored, err
}

func (e *Embedded) increment(ctx context.Context, k key, by int64, ttl time.Duration) (sum int64, err error) {
	var bad error
	err = e.compute(ctx, k, func(old entry, found bool) (entry, otter.ComputeOp) {
		next := entry{value: old.value, keep: true}
		if !found {
			next = entry{value: "0", ttl: ttl}
		}
		if old.hash != nil {
			bad = errWrongType(k)
		} else {
			next.value, sum, bad = add(k, next.value, by)
		}
		if bad != nil {
			return old, otter.CancelOp
		}
		return next, otter.WriteOp
	})
	return sum, cmp.Or(err, bad)
}

func (e *Embedded) getAndRemove(ctx context.Context, k key) (value string, found bool, err error) {
	var bad error
	err = e.compute(ctx, k, func(old entry, ok bool) (entry, otter.ComputeOp) {
		if old.hash != nil {
			bad = errWrongType(k)
			return old, otter.CancelOp
		}
		value, found = old.value, ok
		return old, otter.InvalidateOp
	})
	return value, found, cmp.Or(err, bad)
}

func (e *Embedded) compareAndSet(ctx context.Context, k key, old, value string, ttl time.Duration) (stored bool, err error) {
	var bad error
	err = e.compute(ctx, k, func(now entry, found bool) (entry, otter.ComputeOp) {
		if now.hash != nil {
			bad = errWrongType(k)
		} else {
			stored = found && now.value == old
		}
		if !stored {
			return now, otter.CancelOp
		}
		return entry{value: own(value), ttl: ttl}, otter.WriteOp
	})
	return stored, cmp.Or(err, bad)
}

func (e *Embedded) apply(ctx context.Context, ops []op) error {
	for _, o := range ops {
		if _, err := e.fenced(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// write does o without looking at tokens. existed tells of a removal whether the key did.
func (e *Embedded) write(ctx context.Context, o op) (existed bool, err error) {
	switch o.kind {
	case opSet, opSetFenced:
		err = e.set(ctx, o.key, o.value, o.ttl)
	case opRemove:
		return e.remove(ctx, o.key)
	case opExpire:
		_, err = e.expire(ctx, o.key, o.ttl)
	case opHashSet:
		err = e.hashSet(ctx, o.key, o.field, o.value)
	case opHashDelete:
		_, err = e.hashDelete(ctx, o.key, o.field)
	}
	return err == nil, err
}

// own copies a string that may be a small piece of a large one.
func own(s string) string { return strings.Clone(s) }
