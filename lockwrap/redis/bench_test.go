package redis_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/redis"
)

// BenchmarkLockedCall is an acquire and a release by 32 callers, over 1000 locks or one,
// beside what a hand-written pair of scripts without queue, renewal and clean-up costs.
func BenchmarkLockedCall(b *testing.B) {
	s := testserver.Redis(b)
	backend, err := redis.New(redis.Config{URL: s.URL()})
	if err != nil {
		b.Fatal(err)
	}
	m, err := lockwrap.New(lockwrap.Config{Backend: backend, Instance: "n1", Prefix: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close(context.Background())
	for name, locks := range map[string]int64{"spread": 1000, "hot": 1} {
		b.Run(name+"/lockwrap", func(b *testing.B) {
			callers(b, func(n int64) {
				r := request(lease, lease)
				r.Key.Value = fmt.Sprint(n % locks)
				l, err := m.Acquire(context.Background(), r)
				if err == nil {
					err = l.Release(context.Background())
				}
				if err != nil {
					b.Error(err)
				}
			})
		})
		b.Run(name+"/byhand", func(b *testing.B) { byHand(b, s, locks) })
	}
}

// callers runs f by 32 goroutines, each time with another number.
func callers(b *testing.B, f func(n int64)) {
	var n atomic.Int64
	b.SetParallelism(16) // times GOMAXPROCS
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			f(n.Add(1))
		}
	})
}

func byHand(b *testing.B, s *testserver.RedisServer, locks int64) {
	o, err := redis.ParseURL(s.URL())
	if err != nil {
		b.Fatal(err)
	}
	o.PoolSize = 32
	c := goredis.NewUniversalClient(o)
	defer c.Close()
	take := goredis.NewScript(`if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end return 0`)
	drop := goredis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	ctx := context.Background()
	callers(b, func(n int64) {
		lock, owner := fmt.Sprintf("hand:{%d}", n%locks), fmt.Sprint(n)
		for {
			token, err := take.Run(ctx, c, []string{lock, lock + ":f"}, owner, lease.Milliseconds()).Int64()
			if err != nil {
				b.Error(err)
				return
			}
			if token > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := drop.Run(ctx, c, []string{lock}, owner).Err(); err != nil {
			b.Error(err)
		}
	})
}
