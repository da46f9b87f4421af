package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"apiengine/budget"
	"apiengine/lockwrap"
)

// forgetful makes the backend forget a lock's last token after life, which otherwise takes a
// day: only so can a test see it.
type forgetful struct {
	lockwrap.Backend
	life time.Duration
}

func (f forgetful) Acquire(ctx context.Context, c lockwrap.Claim) (lockwrap.Reply, error) {
	c.Keep = f.life
	return f.Backend.Acquire(ctx, c)
}

// usedOnce takes and releases n locks once each and says what that leaves behind, here and
// in Redis, before and after their counters' lives are over.
func usedOnce(ctx context.Context, s *server, n int) error {
	const life = 20 * time.Second
	m, err := newManager(s.addr, func(b lockwrap.Backend) lockwrap.Backend { return forgetful{b, life} })
	if err != nil {
		return err
	}
	defer m.Close(context.WithoutCancel(ctx))
	plan := budget.Plan{Lease: lease, Hold: lease, Wait: lease, Run: lease}
	if err := useOnce(ctx, m, plan, -1000, 0); err != nil { // connections, scripts, buffers
		return err
	}
	if err := s.untilKeys(ctx, 0, 2*life); err != nil {
		return err
	}
	before, err := s.measure(ctx)
	if err != nil {
		return err
	}
	if err := useOnce(ctx, m, plan, 0, n); err != nil {
		return err
	}
	used, err := s.measure(ctx)
	if err != nil {
		return err
	}
	expired := s.untilKeys(ctx, before.keys, 3*life)
	after, err := s.measure(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d locks used once, counters kept for %v instead of 24 h:\n\n", n, life)
	fmt.Println("| | keys in Redis | Redis memory | heap of the node | goroutines |\n|---|---|---|---|---|")
	fmt.Printf("| before | %s |\n| just after | %s |\n| counters expired | %s |\n", before, used, after)
	return expired
}

func useOnce(ctx context.Context, m *lockwrap.Manager, plan budget.Plan, from, to int) error {
	const side = 64
	return each(side, func(first int) error {
		for i := from + first; i < to; i += side {
			r := lockwrap.Request{Plan: plan, Key: lockwrap.Key{Tenant: "bench", Scope: "once", Value: strconv.Itoa(i)}}
			if err := m.Do(ctx, r, func(context.Context, *lockwrap.Lease) error { return nil }); err != nil {
				return err
			}
		}
		return nil
	})
}

// footprint is what locks occupy.
type footprint struct {
	keys, redis int64
	heap        uint64
	goroutines  int
}

func (f footprint) String() string {
	return fmt.Sprintf("%d | %.1f MB | %.1f MB | %d", f.keys, float64(f.redis)/1e6, float64(f.heap)/1e6, f.goroutines)
}

func (s *server) measure(ctx context.Context) (f footprint, err error) {
	if f.keys, err = s.client.DBSize(ctx).Result(); err != nil {
		return f, err
	}
	if f.redis, err = s.info(ctx, "memory", "used_memory"); err != nil {
		return f, err
	}
	runtime.GC()
	runtime.GC() // what finalizers and pools kept goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap, f.goroutines = m.HeapAlloc, runtime.NumGoroutine()
	return f, nil
}

// untilKeys waits until the server holds at most so many keys.
func (s *server) untilKeys(ctx context.Context, most int64, limit time.Duration) error {
	for until := time.Now().Add(limit); ; {
		n, err := s.client.DBSize(ctx).Result()
		if err != nil || n <= most {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d keys are left after %v, want %d", n, limit, most)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
