package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"apiengine/budget"
	"apiengine/lockwrap"
)

// renewals holds n leases on one node for some intervals of renewal and counts what the
// server renewed. A renewal that is missed shows as a Remaining of less than a lease without
// the interval that had passed, its margin and the pause before a second attempt.
func renewals(ctx context.Context, s *server, n int) error {
	m, err := newManager(s.addr, func(b lockwrap.Backend) lockwrap.Backend { return b })
	if err != nil {
		return err
	}
	defer m.Close(context.WithoutCancel(ctx))
	plan := budget.Plan{Lease: 15 * time.Second, Renew: 5 * time.Second, Hold: time.Hour, Wait: 30 * time.Second, Run: time.Hour}
	leases, err := hold(ctx, m, plan, n)
	if err != nil {
		return err
	}
	before, err := s.info(ctx, "commandstats", "cmdstat_pexpire")
	if err != nil {
		return err
	}
	const watched = 30 * time.Second
	least, lost := watch(ctx, leases, watched)
	after, err := s.info(ctx, "commandstats", "cmdstat_pexpire")
	if err != nil {
		return err
	}
	errs := each(len(leases), func(i int) error { return leases[i].Release(ctx) })
	on := plan.Lease - plan.Renew - budget.Margin(plan.Lease)
	fmt.Printf("%d leases of %v held by one node for %v: %d renewals done (%d if not one were late), %d leases lost, shortest remaining life %s "+
		"(%s is on time, %s one attempt late), releases: %s\n\n", n, plan.Lease, watched, after-before, n*int(watched/plan.Renew), lost,
		short(least), short(on), short(on-plan.Lease/12), orFine(errs))
	return nil
}

func orFine(err error) string {
	if err == nil {
		return "all found their lock held"
	}
	return err.Error()
}

// hold takes n locks, 64 at a time.
func hold(ctx context.Context, m *lockwrap.Manager, plan budget.Plan, n int) ([]*lockwrap.Lease, error) {
	leases := make([]*lockwrap.Lease, n)
	const side = 64
	return leases, each(side, func(first int) error {
		for i := first; i < n; i += side {
			l, err := m.Acquire(ctx, lockwrap.Request{Plan: plan,
				Key: lockwrap.Key{Tenant: "bench", Scope: "held", Value: strconv.Itoa(i)}})
			if err != nil {
				return err
			}
			leases[i] = l
		}
		return nil
	})
}

// watch looks at the leases ten times a second.
func watch(ctx context.Context, leases []*lockwrap.Lease, d time.Duration) (least time.Duration, lost int) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	least = time.Hour
	for until := time.Now().Add(d); time.Now().Before(until) && ctx.Err() == nil; <-tick.C {
		for _, l := range leases {
			least = min(least, l.Remaining())
		}
	}
	for _, l := range leases {
		if l.Err() != nil {
			lost++
		}
	}
	return least, lost
}
