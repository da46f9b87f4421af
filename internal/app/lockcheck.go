package app

import (
	"context"
	"time"

	lockredis "apiengine/lockwrap/redis"
)

// checkLimit bounds the look at the lock backend before the start.
const checkLimit = 3 * time.Second

// checkRedisLock logs what is unfit for locks about the Redis servers, and refuses the start
// where locks cannot work at all. A server that does not answer is no reason: it may later.
func (a *App) checkRedisLock(ctx context.Context, b *lockredis.Backend) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	found, err := b.Check(ctx, a.Settings.Prefix)
	for _, f := range found {
		if f.Fatal {
			return &SettingError{"redis-url", f.String()}
		}
		a.Log.Warn("Redis as it is set up weakens the locks", "found", f.Msg, "server", f.Server)
	}
	if err != nil {
		a.Log.Warn("Redis could not be checked for its fitness for locks", "error", err)
	}
	return nil
}
