// Package redis keeps locks in Redis 6.2 or newer, or Valkey: a single server, one behind
// Sentinel, or a cluster. Every operation is one script and one round trip.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"apiengine/lockwrap"
)

// Config sets up a Backend. URL is required; a zero field takes its default.
type Config struct {
	URL      string        // see ParseURL
	Timeout  time.Duration // of a dial, a read or a write; default 500ms, at least 10ms
	PoolSize int           // connections per server; default 10 per processor, at least 32
}

// Backend is a lockwrap.Backend in Redis. It has a client of its own.
type Backend struct {
	client goredis.UniversalClient
	// alone serves what a lease hangs on: confirms, renewals and the subscription. None of
	// these waits for a free connection or a batch behind a thousand acquires.
	alone goredis.UniversalClient

	composed sync.Map // composition: script
}

// New returns a Backend, or an error that names the first unusable field of cfg. It does
// not connect: a server that is not there yet is a *lockwrap.BackendError of later calls.
func New(cfg Config) (*Backend, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, 500*time.Millisecond)
	cfg.PoolSize = cmp.Or(cfg.PoolSize, max(32, 10*runtime.GOMAXPROCS(0)))
	switch {
	case cfg.Timeout < 10*time.Millisecond:
		return nil, fmt.Errorf("redis: Config.Timeout must be at least 10ms, not %v", cfg.Timeout)
	case cfg.PoolSize < 1:
		return nil, fmt.Errorf("redis: Config.PoolSize must be positive, not %d", cfg.PoolSize)
	}
	o, err := ParseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	forLocks(o, cfg)
	client, err := NewClient(o, batchFrom)
	if err != nil {
		return nil, err
	}
	forAlone(o)
	return &Backend{client: client, alone: goredis.NewUniversalClient(o)}, nil
}

// forAlone sets the size of the client for confirms and renewals: more of them do not get
// through at once than lockwrap sends.
func forAlone(o *goredis.UniversalOptions) {
	o.PoolSize, o.MinIdleConns = min(o.PoolSize, 16), 1
}

// batchFrom is how many commands must be under way before they share writes.
const batchFrom = 8

// forLocks sets what a lock's client must not leave to defaults (lock-protocol.md section 6):
// retries belong to lockwrap, which knows what may be repeated; deadlines of contexts count;
// nothing is read from a replica.
func forLocks(o *goredis.UniversalOptions, cfg Config) {
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = cfg.Timeout, cfg.Timeout, cfg.Timeout
	o.PoolTimeout = cfg.Timeout
	o.DialerRetries = 1
	o.PoolSize = cfg.PoolSize
	o.PipelinePoolSize = -1 // none; see NewClient
	o.Protocol = 2          // nothing is pushed to this client, so no reply is searched for pushes
	o.MinIdleConns = min(2, cfg.PoolSize)
	o.ReadBufferSize, o.WriteBufferSize = 4<<10, 4<<10
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// Acquire is lockwrap.Backend's.
func (b *Backend) Acquire(ctx context.Context, c lockwrap.Claim) (lockwrap.Reply, error) {
	r, info, err := b.run(ctx, call{op: "acquire", script: acquireScript, lock: c.Lock, args: wish(&c)})
	if err == nil && !r.Held {
		r.By = holder(info)
	} else {
		r.Left = c.TTL
	}
	return r, err
}

// Confirm is lockwrap.Backend's.
func (b *Backend) Confirm(ctx context.Context, lock string, o lockwrap.Owner) (lockwrap.Reply, error) {
	r, _, err := b.run(ctx, call{op: "confirm", script: confirmScript, lock: lock, args: []any{o.String()}})
	return mine(r, o), err
}

// Renew is lockwrap.Backend's.
func (b *Backend) Renew(ctx context.Context, lock string, o lockwrap.Owner, ttl time.Duration) (lockwrap.Reply, error) {
	r, _, err := b.run(ctx, call{op: "renew", script: renewScript, lock: lock, args: []any{o.String(), millis(ttl)}})
	return mine(r, o), err
}

// mine gives the answer to an owner its own token, which the scripts do not repeat.
func mine(r lockwrap.Reply, o lockwrap.Owner) lockwrap.Reply {
	if r.Held {
		r.Token = o.Token
	}
	return r
}

// Leave is lockwrap.Backend's.
func (b *Backend) Leave(ctx context.Context, lock, node string) error {
	_, _, err := b.run(ctx, call{op: "leave", script: leaveScript, lock: lock, args: []any{node, grace, lock}})
	return err
}

var grace = millis(lockwrap.Grace)

// wish is a claim as the scripts take it.
func wish(c *lockwrap.Claim) []any {
	return []any{c.Holder, millis(c.TTL), c.Floor, millis(c.Keep), c.API, c.Node, flag(c.Queue)}
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// Ping is lockwrap.Backend's.
func (b *Backend) Ping(ctx context.Context) error {
	if err := b.client.Ping(ctx).Err(); err != nil {
		return &lockwrap.BackendError{Op: "ping", Err: err} // it changes nothing in any case
	}
	return nil
}

// Close is lockwrap.Backend's.
func (b *Backend) Close() error { return errors.Join(b.alone.Close(), b.client.Close()) }

// millis rounds up, so that the server never keeps a lock for less than its holder believes.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// holder reads "<since in unix ms> <api>".
func holder(info string) lockwrap.Holder {
	since, api, _ := strings.Cut(info, " ")
	ms, err := strconv.ParseInt(since, 10, 64)
	if err != nil {
		return lockwrap.Holder{} // somebody else wrote the key
	}
	return lockwrap.Holder{API: api, Since: time.UnixMilli(ms)}
}
