// Package cache is the cache that scripts see as V8.Cache: one namespace a tenant, in this
// process (Embedded) or in Redis (Redis), and an overlay for effects that wait for a
// commit (Staged).
//
// It behaves as Redis does: a key holds a string or a hash, and an operation on the other
// kind is an error; Set replaces either; a hash without fields is gone.
//
// Errors have a fault.Kind: script_error for what the script got wrong (a key, a value, a
// number that is none), store_unavailable when the cache cannot be reached, timeout or
// canceled when the context ended.
package cache

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"apiengine/fault"
)

// Cache is one tenant's cache. A ttl of 0 means for ever; a positive one counts in whole
// milliseconds, at least one; one over 100 years is for ever; a negative one is an error.
// Without a ttl given, what a key had is kept only by Increment and the hash operations.
type Cache interface {
	Get(ctx context.Context, key string) (value string, found bool, err error)
	// Set replaces whatever the key held, its ttl too.
	Set(ctx context.Context, key, value string, ttl time.Duration) error
	Remove(ctx context.Context, key string) (existed bool, err error)
	Exists(ctx context.Context, key string) (bool, error)
	// Expire gives an existing key a new ttl.
	Expire(ctx context.Context, key string, ttl time.Duration) (existed bool, err error)
	SetIfNotExists(ctx context.Context, key, value string, ttl time.Duration) (stored bool, err error)
	// Increment adds by to a whole number of 64 bits; a missing key counts as 0. ttl is
	// used only when the key is created.
	Increment(ctx context.Context, key string, by int64, ttl time.Duration) (int64, error)
	GetAndRemove(ctx context.Context, key string) (value string, found bool, err error)
	// CompareAndSet is Set when the key holds old. A missing key holds nothing.
	CompareAndSet(ctx context.Context, key, old, value string, ttl time.Duration) (stored bool, err error)
	// SetFenced is Set for the holder of a lock, whose token is positive. It is refused when a
	// larger token has written key; see Keep for how long that is known.
	SetFenced(ctx context.Context, key, value string, ttl time.Duration, token int64) (stored bool, err error)
	// RemoveFenced is Remove for the holder of a lock. It is never refused, and the key keeps
	// the token if that is the largest: what an older holder then sets by SetFenced is refused.
	RemoveFenced(ctx context.Context, key string, token int64) (existed bool, err error)
	HashSet(ctx context.Context, key, field, value string) error
	HashGet(ctx context.Context, key, field string) (value string, found bool, err error)
	HashGetAll(ctx context.Context, key string) (map[string]string, error) // empty, not nil, without the key
	HashDelete(ctx context.Context, key, field string) (existed bool, err error)
	HashIncrement(ctx context.Context, key, field string, by int64) (int64, error)
}

// Limits of one entry, in bytes.
const (
	MaxKey   = 1 << 10 // also of a hash's field
	MaxValue = 8 << 20
)

// forever is where a ttl stops counting.
const forever = 100 * 365 * 24 * time.Hour

// driver is a place where entries live. What it is given has been checked: keys are of one
// tenant, ttls are 0 (for ever) or whole milliseconds.
type driver interface {
	get(ctx context.Context, k key) (string, bool, error)
	set(ctx context.Context, k key, value string, ttl time.Duration) error
	remove(ctx context.Context, k key) (bool, error)
	exists(ctx context.Context, k key) (bool, error)
	expire(ctx context.Context, k key, ttl time.Duration) (bool, error)
	setIfNotExists(ctx context.Context, k key, value string, ttl time.Duration) (bool, error)
	increment(ctx context.Context, k key, by int64, ttl time.Duration) (int64, error)
	getAndRemove(ctx context.Context, k key) (string, bool, error)
	compareAndSet(ctx context.Context, k key, old, value string, ttl time.Duration) (bool, error)
	hashSet(ctx context.Context, k key, field, value string) error
	hashGet(ctx context.Context, k key, field string) (string, bool, error)
	hashGetAll(ctx context.Context, k key) (map[string]string, error)
	hashDelete(ctx context.Context, k key, field string) (bool, error)
	hashIncrement(ctx context.Context, k key, field string, by int64) (int64, error)
	// fenced does an operation that has a token and raises the key's mark. Where the mark is
	// larger an opSetFenced is refused, anything else removes the key. done: it was not
	// refused; of a removal: the key existed.
	fenced(ctx context.Context, o op) (done bool, err error)
	// mark is the largest token known to have written k, 0 without one.
	mark(ctx context.Context, k key) (int64, error)
	// effects are ops for a lock that lives in the same place; see Staged.Effects.
	effects(ops []op) any
	// apply does the operations in order, in as few round trips as it can. After an error
	// some of them are done; all may be applied again.
	apply(ctx context.Context, ops []op) error
}

// op is a write that can wait.
type op struct {
	kind  opKind
	key   key
	field string        // opHashSet, opHashDelete
	value string        // opSet, opSetFenced, opHashSet
	ttl   time.Duration // opSet, opSetFenced, opExpire
	token int64         // of the lock it is done under; 0: it is compared with nothing
	keep  time.Duration // how long the token is kept at least; 0: as long as one is kept already
}

type opKind int

const (
	opSet       opKind = iota
	opSetFenced        // always has a token
	opRemove
	opExpire
	opHashSet
	opHashDelete
)

func errWrongType(k key) error {
	return fault.New(fault.ScriptError, "V8.Cache: the key %.100q holds the other kind of value (a hash or a string)", k.name)
}

func errNotANumber(k key) error {
	return fault.New(fault.ScriptError, "V8.Cache: %.100q does not hold a whole number", k.name)
}

func errOverflow(k key) error {
	return fault.New(fault.ScriptError, "V8.Cache: %.100q would leave the range of 64 bits", k.name)
}

func errUnreachable(err error) error {
	return fault.Wrap(fault.StoreUnavailable, fmt.Errorf("cache: %w", err), "the cache cannot be reached")
}

// add is what Increment does to text, by Redis' rules: only the form that a number is
// printed in counts as one.
func add(k key, text string, by int64) (string, int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return "", 0, errNotANumber(k)
	}
	sum := n + by
	if (by > 0) != (sum > n) && by != 0 {
		return "", 0, errOverflow(k)
	}
	return strconv.FormatInt(sum, 10), sum, nil
}
