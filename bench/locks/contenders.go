package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"apiengine/budget"
	"apiengine/lockwrap"
	"apiengine/lockwrap/redis"
)

// locker is one process's way to take the lock that all workers want.
type locker interface {
	// Lock waits until ctx ends. unlock gives the lock back before it returns.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
	Close() error
}

// contender is a row of the tables: a library with its settings.
type contender struct {
	id    string
	label string
	open  func(addr string) (locker, error)
}

// lease is what every contender asks for; none comes to its end here.
const lease = 30 * time.Second

// contenders are the libraries, each as its own documentation has it and once tuned for
// short critical sections on one server.
var contenders = []contender{
	{"apiengine", "apiengine lockwrap", openOurs},
	{"redsync", "redsync, defaults (50 to 250 ms)", func(addr string) (locker, error) {
		return openRedsync(addr, redsync.WithExpiry(lease)), nil
	}},
	{"redsync-10ms", "redsync, 10 ms", func(addr string) (locker, error) {
		return openRedsync(addr, redsync.WithExpiry(lease), redsync.WithTries(1<<30), redsync.WithRetryDelay(10*time.Millisecond)), nil
	}},
	{"redislock", "redislock, 100 ms (its README)", func(addr string) (locker, error) {
		return openRedislock(addr, func() redislock.RetryStrategy { return redislock.LinearBackoff(100 * time.Millisecond) }), nil
	}},
	{"redislock-50ms", "redislock, 50 ms", func(addr string) (locker, error) {
		return openRedislock(addr, func() redislock.RetryStrategy { return redislock.LinearBackoff(50 * time.Millisecond) }), nil
	}},
	{"rueidislock", "rueidislock, defaults (majority 2)", func(addr string) (locker, error) {
		return openRueidis(rueidislock.LockerOption{ClientOption: rueidis.ClientOption{InitAddress: []string{addr}}})
	}},
	{"rueidislock-1", "rueidislock, majority 1, NOLOOP", func(addr string) (locker, error) {
		return openRueidis(rueidislock.LockerOption{ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
			KeyMajority: 1, NoLoopTracking: true})
	}},
}

type ours struct{ *lockwrap.Manager }

func openOurs(addr string) (locker, error) {
	m, err := newManager(addr, func(b lockwrap.Backend) lockwrap.Backend { return b })
	return ours{m}, err
}

// newManager is a node of ours; around may change how its backend behaves.
func newManager(addr string, around func(lockwrap.Backend) lockwrap.Backend) (*lockwrap.Manager, error) {
	b, err := redis.New(redis.Config{URL: "redis://" + addr})
	if err != nil {
		return nil, err
	}
	return lockwrap.New(lockwrap.Config{Backend: around(b), Instance: "bench-" + strconv.Itoa(os.Getpid())})
}

func (o ours) Lock(ctx context.Context, name string) (func() error, error) {
	l, err := o.Acquire(ctx, lockwrap.Request{Key: lockwrap.Key{Tenant: "bench", Scope: "lock", Value: name},
		Plan: budget.Plan{Lease: lease, Hold: lease, Wait: lease, Run: lease}})
	if err != nil {
		return nil, err
	}
	return func() error { return l.Release(context.Background()) }, nil
}

func (o ours) Close() error { return o.Manager.Close(context.Background()) }

// goRedis is the client of those that bring none: enough connections for every worker.
func goRedis(addr string) *goredislib.Client {
	return goredislib.NewClient(&goredislib.Options{Addr: addr, PoolSize: 128, ContextTimeoutEnabled: true})
}

type redsyncLocker struct {
	client  *goredislib.Client
	rs      *redsync.Redsync
	options []redsync.Option
}

func openRedsync(addr string, options ...redsync.Option) locker {
	c := goRedis(addr)
	return redsyncLocker{c, redsync.New(goredis.NewPool(c)), options}
}

func (r redsyncLocker) Lock(ctx context.Context, name string) (func() error, error) {
	m := r.rs.NewMutex(name, r.options...)
	for {
		err := m.LockContext(ctx)
		var taken *redsync.ErrTaken
		switch {
		case err == nil:
			return func() error { _, err := m.Unlock(); return err }, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, redsync.ErrFailed) && !errors.As(err, &taken):
			return nil, err
		}
	}
}

func (r redsyncLocker) Close() error { return r.client.Close() }

type redislockLocker struct {
	client *goredislib.Client
	locks  *redislock.Client
	retry  func() redislock.RetryStrategy
}

func openRedislock(addr string, retry func() redislock.RetryStrategy) locker {
	c := goRedis(addr)
	return redislockLocker{c, redislock.New(c), retry}
}

func (r redislockLocker) Lock(ctx context.Context, name string) (func() error, error) {
	l, err := r.locks.Obtain(ctx, name, lease, &redislock.Options{RetryStrategy: r.retry()})
	if err != nil {
		return nil, err
	}
	return func() error { return l.Release(context.Background()) }, nil
}

func (r redislockLocker) Close() error { return r.client.Close() }

type rueidisLocker struct{ rueidislock.Locker }

func openRueidis(o rueidislock.LockerOption) (locker, error) {
	o.KeyValidity = lease
	l, err := rueidislock.NewLocker(o)
	return rueidisLocker{l}, err
}

func (r rueidisLocker) Lock(ctx context.Context, name string) (func() error, error) {
	_, cancel, err := r.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { cancel(); return nil }, nil
}

func (r rueidisLocker) Close() error { r.Locker.Close(); return nil }
