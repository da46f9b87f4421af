package app

import (
	"context"
	"time"

	"apiengine/cache"
	"apiengine/engine"
	"apiengine/jsbridge"
	"apiengine/lockwrap"
	lockredis "apiengine/lockwrap/redis"
)

// caches gives the engine its cache port.
type caches struct {
	of func(tenant string) *cache.View
	// carry gives staged writes the form in which the lock's release takes them along; nil
	// when the lock lives elsewhere.
	carry func(any) lockwrap.Effects
}

func (c caches) For(tenant string) jsbridge.Cache { return c.of(tenant) }

func (c caches) Stage(tenant string) engine.Staged {
	return staged{cache.NewStaged(c.of(tenant)), c.carry}
}

type staged struct {
	*cache.Staged
	carry func(any) lockwrap.Effects
}

// Effects implements engine.Staged.
func (s staged) Effects(token int64) lockwrap.Effects {
	if s.carry == nil {
		return nil
	}
	return s.carry(s.Staged.Effects(token))
}

// asTheyAre is for an embedded lock and an embedded cache.
func asTheyAre(e any) lockwrap.Effects { return e }

// inRedis is for a lock and a cache in one Redis.
func inRedis(e any) lockwrap.Effects {
	if e, ok := e.(cache.RedisEffects); ok {
		return lockredis.Effects(e)
	}
	return nil
}

// cacheBatchFrom is how many cache commands must be under way before they share writes.
const cacheBatchFrom = 8

// openCache starts the cache where the settings put it: in Redis, else in this process.
func (a *App) openCache() (engine.Caches, error) {
	if a.Settings.RedisURL == "" {
		b, err := cache.NewEmbedded(cache.EmbeddedConfig{})
		if err != nil {
			return nil, err
		}
		a.onClose(func(context.Context) error { b.Close(); return nil })
		return caches{of: b.For, carry: asTheyAre}, nil
	}
	opt, err := lockredis.ParseURL(a.Settings.RedisURL)
	if err != nil {
		return nil, &SettingError{"redis-url", err.Error()}
	}
	opt.ContextTimeoutEnabled = true // else a call outlives its run's deadline by the read timeout
	opt.MaxRetries = -1              // a repeated INCR whose answer was lost would count twice
	opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = time.Second, time.Second, time.Second
	opt.PoolSize = max(opt.PoolSize, 64) // a run waits in its cache call with a connection of its own
	opt.Protocol = 2                     // nothing is pushed to this client
	client, err := lockredis.NewClient(opt, cacheBatchFrom)
	if err != nil {
		return nil, err
	}
	a.onClose(func(context.Context) error { return client.Close() })
	b, err := cache.NewRedis(cache.RedisConfig{Client: client, Prefix: a.Settings.Prefix})
	if err != nil {
		return nil, err
	}
	c := caches{of: b.For}
	if a.Settings.lockKind() == "redis" && !opt.IsClusterMode { // in a cluster the keys are in other slots
		c.carry = inRedis
	}
	return c, nil
}
