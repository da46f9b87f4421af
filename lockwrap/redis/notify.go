package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// quiet is how long a subscription may say nothing before it is asked whether it lives.
const quiet = 3 * time.Second

// Notify is lockwrap.Backend's. It keeps one connection.
func (b *Backend) Notify(ctx context.Context, node string, hear func(lock string)) error {
	sub := b.alone.Subscribe(ctx, node)
	unhook := context.AfterFunc(ctx, func() { _ = sub.Close() }) // a read under way does not heed ctx
	defer unhook()
	defer func() { _ = sub.Close() }()
	err := listen(ctx, sub, hear)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("redis: the subscription ended: %w", err)
}

var errMute = errors.New("no answer to a ping")

func listen(ctx context.Context, sub *goredis.PubSub, hear func(lock string)) error {
	for asked := false; ; {
		m, err := sub.ReceiveTimeout(ctx, quiet)
		var timeout net.Error
		switch {
		case err == nil:
			asked = false
		case !errors.As(err, &timeout) || !timeout.Timeout():
			return err
		case asked:
			return errMute
		default:
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			asked = true
		}
		switch m := m.(type) {
		case *goredis.Subscription:
			hear("")
		case *goredis.Message:
			hear(m.Payload)
		}
	}
}
