package lockwrap_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"apiengine/budget"
	"apiengine/lockwrap"
	"apiengine/lockwrap/embedded"
)

// A call that pays an order excludes every other call for the same order, and hands its
// token to the store, which refuses one that is smaller than it has seen.
func Example() {
	ctx := context.Background()
	locks := open(ctx)
	defer locks.Close(ctx)

	plan, err := budget.Derive(budget.Request{Timeout: 30 * time.Second})
	if err != nil {
		panic(err)
	}
	order := lockwrap.Request{Key: lockwrap.Key{Tenant: "acme", Scope: "OrderId", Value: "42"}, Plan: plan, API: "order_pay"}

	var stored int64
	for range 2 {
		err = locks.Do(ctx, order, func(ctx context.Context, l *lockwrap.Lease) error {
			if l.Token() <= stored {
				return fmt.Errorf("a newer holder has written already")
			}
			stored = l.Token()
			fmt.Println("paid under", l.Key())
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// paid under acme:OrderId:42
	// paid under acme:OrderId:42
}

// open returns locks that live in this process.
func open(ctx context.Context) *lockwrap.Manager {
	backend, err := embedded.New(ctx, embedded.Config{}) // or redis.New(redis.Config{URL: ...})
	if err != nil {
		panic(err)
	}
	locks, err := lockwrap.New(lockwrap.Config{Backend: backend, Instance: "node-1"})
	if err != nil {
		panic(err)
	}
	return locks
}

// A leader does what only one node may do, for as long as the node lives: a short lease is
// kept alive, and the work ends when it is lost.
func ExampleManager_Acquire() {
	ctx := context.Background()
	locks := open(ctx)
	defer locks.Close(ctx)

	lease, err := locks.Acquire(ctx, lockwrap.Request{
		Key:  lockwrap.Key{Tenant: "acme", Scope: "leader", Value: "billing"},
		Plan: budget.Plan{Lease: 10 * time.Second, Renew: 3 * time.Second, Hold: time.Hour, Wait: time.Minute, Run: time.Hour},
	})
	if err != nil {
		panic(err)
	}
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer lease.AfterLost(func() { stop(lease.Err()) })()

	// As an administrator would, who has seen it in the list of Locks.
	if err := locks.ForceRelease(ctx, lease.Key().String(), lease.Token()); err != nil {
		panic(err)
	}
	<-work.Done()
	var lost *lockwrap.LostError
	fmt.Println(errors.As(context.Cause(work), &lost), lost.Cause)
	fmt.Println(errors.As(lease.Release(ctx), &lost), lost.Cause) // the lock is not ours to give back
	// Output:
	// true token_mismatch
	// true token_mismatch
}

// Who cannot have a lock is told who has it, and for how long.
func ExampleBusyError() {
	ctx := context.Background()
	locks := open(ctx)
	defer locks.Close(ctx)
	order := lockwrap.Request{Key: lockwrap.Key{Tenant: "acme", Scope: "OrderId", Value: "42"}, API: "order_pay",
		Plan: budget.Plan{Lease: time.Minute, Hold: time.Minute, Wait: 0, Run: time.Minute}} // tries once

	err := locks.Do(ctx, order, func(ctx context.Context, _ *lockwrap.Lease) error {
		return locks.Do(ctx, order, func(context.Context, *lockwrap.Lease) error { return nil }) // another caller
	})
	var busy *lockwrap.BusyError
	if errors.As(err, &busy) {
		fmt.Println("held by", busy.Holder.API, "for less than", busy.Left.Round(time.Minute))
	}
	// Output:
	// held by order_pay for less than 1m0s
}

// Locks tells who holds what, and who waits.
func ExampleManager_Locks() {
	ctx := context.Background()
	locks := open(ctx)
	defer locks.Close(ctx)
	plan := budget.Plan{Lease: time.Minute, Hold: time.Minute, Run: time.Minute}
	for _, id := range []string{"42", "43"} {
		lease, err := locks.Acquire(ctx, lockwrap.Request{Key: lockwrap.Key{Tenant: "acme", Scope: "OrderId", Value: id}, Plan: plan, API: "order_pay"})
		if err != nil {
			panic(err)
		}
		defer lease.Release(ctx)
	}
	list, err := locks.Locks(ctx, "acme:OrderId:")
	if err != nil {
		panic(err)
	}
	for _, s := range list {
		fmt.Println(s.Lock, "is held on", s.Node, "by", s.By.API)
	}
	// Output:
	// acme:OrderId:42 is held on node-1 by order_pay
	// acme:OrderId:43 is held on node-1 by order_pay
}
