package cache

import (
	"cmp"
	"context"
	"maps"
	"sync"

	"github.com/maypok86/otter/v2"
)

// hash is the value of a hash entry. It is changed only inside its key's compute, so only
// readers need the lock.
type hash struct {
	mu     sync.RWMutex
	fields map[string]string
	size   int // bytes of fields and values
}

// fieldOverhead is about what a Go map keeps for a field, in bytes.
const fieldOverhead = 50

func (h *hash) bytes() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.size
}

func (h *hash) get(field string) (string, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	v, ok := h.fields[field]
	return v, ok
}

func (h *hash) all() map[string]string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return maps.Clone(h.fields)
}

func (h *hash) set(field, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, ok := h.fields[field]; ok {
		h.size += len(value) - len(old)
	} else {
		h.size += fieldOverhead + len(field) + len(value)
	}
	h.fields[own(field)] = own(value)
}

// delete reports whether the field was there.
func (h *hash) delete(field string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, existed := h.fields[field]
	if existed {
		h.size -= fieldOverhead + len(field) + len(old)
		delete(h.fields, field)
	}
	return existed
}

// onHash runs f on the hash of k, alone for its key. Without the key f gets an empty hash
// when create is set, else is not run. An empty hash is removed.
func (e *Embedded) onHash(ctx context.Context, k key, create bool, f func(*hash) error) error {
	var bad error
	err := e.compute(ctx, k, func(old entry, found bool) (entry, otter.ComputeOp) {
		next := entry{hash: old.hash, keep: true}
		switch {
		case found && old.hash == nil:
			bad = errWrongType(k)
		case !found && !create:
			return old, otter.CancelOp
		case !found:
			next = entry{hash: &hash{fields: map[string]string{}}}
		}
		if bad == nil {
			bad = f(next.hash)
		}
		if bad != nil {
			return old, otter.CancelOp
		}
		if len(next.hash.fields) == 0 {
			return old, otter.InvalidateOp
		}
		return next, otter.WriteOp
	})
	return cmp.Or(err, bad)
}

// readHash returns nil without the key.
func (e *Embedded) readHash(ctx context.Context, k key) (*hash, error) {
	found, ok, err := e.read(ctx, k)
	if ok && found.hash == nil {
		return nil, errWrongType(k)
	}
	return found.hash, err
}

func (e *Embedded) hashSet(ctx context.Context, k key, field, value string) error {
	return e.onHash(ctx, k, true, func(h *hash) error {
		h.set(field, value)
		return nil
	})
}

func (e *Embedded) hashGet(ctx context.Context, k key, field string) (string, bool, error) {
	h, err := e.readHash(ctx, k)
	if h == nil {
		return "", false, err
	}
	value, found := h.get(field)
	return value, found, nil
}

func (e *Embedded) hashGetAll(ctx context.Context, k key) (map[string]string, error) {
	h, err := e.readHash(ctx, k)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return map[string]string{}, nil
	}
	return h.all(), nil
}

func (e *Embedded) hashDelete(ctx context.Context, k key, field string) (existed bool, err error) {
	err = e.onHash(ctx, k, false, func(h *hash) error {
		existed = h.delete(field)
		return nil
	})
	return existed, err
}

func (e *Embedded) hashIncrement(ctx context.Context, k key, field string, by int64) (sum int64, err error) {
	err = e.onHash(ctx, k, true, func(h *hash) error {
		text, ok := h.get(field)
		if !ok {
			text = "0"
		}
		next, n, err := add(k, text, by)
		if err != nil {
			return err
		}
		sum = n
		h.set(field, next)
		return nil
	})
	return sum, err
}
