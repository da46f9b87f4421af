package lockwrap_test

import (
	"context"
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
	backend, err := embedded.New(ctx, embedded.Config{}) // or redis.New(redis.Config{URL: ...})
	if err != nil {
		panic(err)
	}
	locks, err := lockwrap.New(lockwrap.Config{Backend: backend, Instance: "node-1"})
	if err != nil {
		panic(err)
	}
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
