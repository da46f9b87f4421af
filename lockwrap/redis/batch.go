package redis

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"
)

// NewClient returns a client that sends the commands of callers that run side by side in
// common writes: with 32 callers a command costs half the processor time. A caller alone
// gains nothing by it and would wait for the batch, so commands go by themselves while
// fewer than busy of them are under way.
//
// A command in a batch does not end with its context but with the client's read timeout:
// whoever must be back earlier waits beside it, as lockwrap does. It is a client for
// commands that return at once; a blocking one (BLPOP ...) must not go through it.
func NewClient(o *goredis.UniversalOptions, busy int64) (goredis.UniversalClient, error) {
	c := &client{UniversalClient: goredis.NewUniversalClient(o), batches: goredis.NewUniversalClient(batchOptions(o))}
	pipe, err := autoPipeline(c.batches)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("redis: %w", err), c.Close())
	}
	c.AddHook(&batcher{pipe: pipe, busy: busy})
	return c, nil
}

// client is two go-redis clients: a batch of one command goes the way of a plain command,
// which on one client would lead back into the hook.
type client struct {
	goredis.UniversalClient
	batches goredis.UniversalClient
}

// Close closes both.
func (c *client) Close() error { return errors.Join(c.batches.Close(), c.UniversalClient.Close()) }

// batchOptions are those of o for a client whose batches go one after the other.
func batchOptions(o *goredis.UniversalOptions) *goredis.UniversalOptions {
	b := *o
	b.PoolSize, b.PipelinePoolSize, b.MinIdleConns = 2, 2, 0
	return &b
}

func autoPipeline(c goredis.UniversalClient) (*goredis.AutoPipeliner, error) {
	switch c := c.(type) {
	case *goredis.Client:
		return c.AutoPipeline()
	case *goredis.ClusterClient:
		return c.AutoPipeline()
	}
	return nil, fmt.Errorf("no batches with a %T", c)
}

// batcher is the hook that chooses the way of each command.
type batcher struct {
	pipe  *goredis.AutoPipeliner
	busy  int64
	under atomic.Int64 // commands under way
}

// DialHook implements goredis.Hook.
func (b *batcher) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessPipelineHook implements goredis.Hook.
func (b *batcher) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// ProcessHook implements goredis.Hook.
func (b *batcher) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		defer b.under.Add(-1)
		if b.under.Add(1) < b.busy {
			return next(ctx, cmd)
		}
		return b.pipe.Process(ctx, cmd)
	}
}
