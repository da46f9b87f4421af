package app

import (
	"context"
	"time"

	"apiengine/cache"
	"apiengine/engine"
	"apiengine/jsbridge"
	lockredis "apiengine/lockwrap/redis"
)

// caches gives the engine its cache port.
type caches struct {
	of func(tenant string) *cache.View
}

func (c caches) For(tenant string) jsbridge.Cache  { return c.of(tenant) }
func (c caches) Stage(tenant string) engine.Staged { return cache.NewStaged(c.of(tenant)) }

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
		return caches{b.For}, nil
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
	return caches{b.For}, nil
}
