package app

import (
	"context"
	"errors"
	"fmt"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/lockwrap"
	"apiengine/lockwrap/embedded"
	locketcd "apiengine/lockwrap/etcd"
	lockpostgres "apiengine/lockwrap/postgres"
	lockredis "apiengine/lockwrap/redis"
	"apiengine/migrations"
)

// openLocks starts the lock manager on the backend that the settings mean.
func (a *App) openLocks(ctx context.Context) error {
	backend, err := a.lockBackend(ctx)
	if err != nil {
		return err
	}
	s := &a.Settings
	a.locks, err = lockwrap.New(lockwrap.Config{Backend: backend, Prefix: s.Prefix, Instance: s.instanceName(),
		MaxQueue: s.MaxWaiters, VerifyAlways: s.LockVerify == "always"})
	if err != nil {
		return err
	}
	a.onClose(a.locks.Close)
	return nil
}

func (a *App) lockBackend(ctx context.Context) (lockwrap.Backend, error) {
	s := &a.Settings
	switch s.lockKind() {
	case "redis":
		return a.redisLock(ctx)
	case "postgres":
		b, err := lockpostgres.New(lockpostgres.Config{URL: s.DatabaseURL, Schema: migrations.Schema})
		return opened(b, "database-url", err)
	case "etcd":
		b, err := locketcd.New(locketcd.Config{Endpoints: s.Etcd})
		return opened(b, "etcd-endpoints", err)
	}
	b, err := embedded.New(ctx, embedded.Config{Mark: a.mark()})
	if err != nil {
		return nil, fmt.Errorf("the embedded lock: %w", err)
	}
	return b, nil
}

func (a *App) redisLock(ctx context.Context) (lockwrap.Backend, error) {
	b, err := lockredis.New(lockredis.Config{URL: a.Settings.RedisURL})
	if err != nil {
		return nil, &SettingError{"redis-url", err.Error()}
	}
	if err := a.checkRedisLock(ctx, b); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// opened names the setting where a backend could not be made.
func opened(b lockwrap.Backend, setting string, err error) (lockwrap.Backend, error) {
	if err != nil {
		return nil, &SettingError{setting, err.Error()}
	}
	return b, nil
}

type mark struct {
	load func(context.Context) (int64, error)
	save func(context.Context, int64) error
}

func (m mark) Load(ctx context.Context) (int64, error) { return m.load(ctx) }
func (m mark) Save(ctx context.Context, v int64) error { return m.save(ctx, v) }

// mark keeps the embedded lock's token mark in the platform's database.
func (a *App) mark() embedded.Mark { return mark{a.Store.LoadMark, a.Store.SaveMark} }

func newCatalog() *engine.Catalog {
	return apis.NewCatalog(compile)
}
