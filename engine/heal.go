package engine

import (
	"context"
	"errors"
	"time"

	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/lockwrap"
)

// regressed is the error of a guard that met a token at least as large as its own. When
// the lock is ours all the same, its counter went back: the backend lost its data while its
// clock was behind, or a replica without the last grants was promoted.
type regressed interface {
	error
	Fence() (key string, stored int64)
}

// floors are the tokens that databases were found to hold, by lock.
type floors map[string]int64

// behind looks at the end of a run, after its locks were released. It notes the floor and
// reports true when the guard that refused belonged to a lock that was the tree's own to the
// end.
func (t *tree) behind(err error) (*lockwrap.Lease, bool) {
	var r regressed
	if fault.Of(err) != fault.StaleFence || !errors.As(err, &r) {
		return nil, false
	}
	key, stored := r.Fence()
	for _, l := range t.whole {
		if l.Key().String() == key && stored >= l.Token() && stored <= highestFloor {
			t.floors[key] = max(t.floors[key], stored)
			return l, true
		}
	}
	return nil, false
}

// repeatable reports whether nothing that the tree did is left: its transactions are rolled
// back and its staged writes dropped, so that it may start over.
func (t *tree) repeatable(x *Execution) bool { return !x.Committed && !t.acted.Load() }

// raise lifts a lock's counter above the floor for those who come next. It tries once: if
// somebody holds the lock already, they will find out themselves.
func (t *tree) raise(ctx context.Context, l *lockwrap.Lease, f *frame) {
	plan := f.plan
	plan.Wait = 0
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), raiseLimit)
	defer cancel()
	lease, err := t.e.cfg.Locks.Acquire(ctx, lockwrap.Request{Key: l.Key(), Plan: plan, API: f.api.Definition.ApiEngineKey,
		Floor: t.floors[l.Key().String()]})
	if err == nil {
		err = lease.Release(ctx)
	}
	if err != nil {
		t.e.cfg.Log.Warn("a lock's counter could not be raised to the database's token", "lock", l.Key().String(), "error", err)
	}
}

const (
	raiseLimit = 2 * time.Second
	// highestFloor is the largest floor that package lockwrap takes: a database whose token
	// is above has been tampered with.
	highestFloor = 1<<53 - 1<<20
)

// acting notes that a tree has done what no rollback takes back.
type acting struct {
	jsbridge.Cache
	t      *tree
	staged bool // plain writes wait for the commit
}

func (c acting) now() { c.t.acted.Store(true) }

func (c acting) plain() {
	if !c.staged {
		c.now()
	}
}

func (c acting) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	c.plain()
	return c.Cache.Set(ctx, key, value, ttl)
}

func (c acting) Remove(ctx context.Context, key string) (bool, error) {
	c.plain()
	return c.Cache.Remove(ctx, key)
}

func (c acting) SetFenced(ctx context.Context, key, value string, ttl time.Duration, token int64) (bool, error) {
	c.plain()
	return c.Cache.SetFenced(ctx, key, value, ttl, token)
}

func (c acting) RemoveFenced(ctx context.Context, key string, token int64) (bool, error) {
	c.plain()
	return c.Cache.RemoveFenced(ctx, key, token)
}

func (c acting) Expire(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	c.plain()
	return c.Cache.Expire(ctx, key, ttl)
}

func (c acting) HashSet(ctx context.Context, key, field, value string) error {
	c.plain()
	return c.Cache.HashSet(ctx, key, field, value)
}

func (c acting) HashDelete(ctx context.Context, key, field string) (bool, error) {
	c.plain()
	return c.Cache.HashDelete(ctx, key, field)
}

func (c acting) SetIfNotExists(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	c.now()
	return c.Cache.SetIfNotExists(ctx, key, value, ttl)
}

func (c acting) Increment(ctx context.Context, key string, by int64, ttl time.Duration) (int64, error) {
	c.now()
	return c.Cache.Increment(ctx, key, by, ttl)
}

func (c acting) GetAndRemove(ctx context.Context, key string) (string, bool, error) {
	c.now()
	return c.Cache.GetAndRemove(ctx, key)
}

func (c acting) CompareAndSet(ctx context.Context, key, old, value string, ttl time.Duration) (bool, error) {
	c.now()
	return c.Cache.CompareAndSet(ctx, key, old, value, ttl)
}

func (c acting) HashIncrement(ctx context.Context, key, field string, by int64) (int64, error) {
	c.now()
	return c.Cache.HashIncrement(ctx, key, field, by)
}
