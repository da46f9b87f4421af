package tasks

import (
	"context"
	"time"
)

// Bell says that somebody should look at a task, or without one at the tenant's outbox.
type Bell struct {
	Tenant, Task string
	Priority     int           // 1 to 4, 1 first
	After        time.Duration // not before
	// Once: of several bells of one task with the same text only one stands in the queue;
	// empty: each.
	Once string
}

// Queue tells the nodes of tasks.
type Queue interface {
	Ring(ctx context.Context, bells ...Bell) error
	// Work calls w.Turn for every bell of every node's, until ctx ends; then it takes no
	// more, calls w.Drain, and returns.
	Work(ctx context.Context, w Work) error
}

// Work is what a Queue calls.
type Work struct {
	Workers int // calls of Turn at a time
	// Turn looks at a task. again >= 0: the bell shall ring again after so long.
	Turn  func(ctx context.Context, tenant, task string) (again time.Duration)
	Drain func(ctx context.Context)
}

// never is Turn's answer when the bell need not ring again.
const never time.Duration = -1
