package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisConfig sets up a Redis. Client is required.
type RedisConfig struct {
	// Client is closed by its owner. With ContextTimeoutEnabled unset a call can outlive its
	// context by the client's read timeout; with MaxRetries other than -1 an Increment whose
	// reply was lost may count twice.
	Client redis.UniversalClient
	Prefix string // of every key; default "apiengine"
}

// Redis is a cache in Redis 6.2 or newer: single, Sentinel or Cluster. The key k of tenant
// t is stored as <prefix>:c:<t>:<k>, where % { } and control characters of k are written
// as %XX. Every operation is one command or one script on one key and its mark, so it is
// atomic and takes one round trip. The mark, {<prefix>:c:<t>:<k>}:f, is in the same slot of a
// cluster as its key, because a name without braces is hashed as a whole.
type Redis struct {
	client redis.UniversalClient
	prefix string
}

// NewRedis returns a cache on cfg.Client. It sends nothing.
func NewRedis(cfg RedisConfig) (*Redis, error) {
	if cfg.Client == nil {
		return nil, errors.New("cache: RedisConfig.Client is missing")
	}
	return &Redis{client: cfg.Client, prefix: cmp.Or(cfg.Prefix, "apiengine") + ":c:"}, nil
}

// For returns the part of tenant, a checked tenant name.
func (r *Redis) For(tenant string) *View { return &View{tenant: tenant, driver: r} }

// name is the key in Redis. Braces are escaped because they would choose the cluster slot,
// control characters because people read keys in logs and terminals.
func (r *Redis) name(k key) string {
	var b strings.Builder
	b.Grow(len(r.prefix) + len(k.tenant) + 1 + len(k.name))
	b.WriteString(r.prefix)
	b.WriteString(k.tenant)
	b.WriteByte(':')
	for i := range len(k.name) {
		switch c := k.name[i]; {
		case c == '%', c == '{', c == '}', c < ' ', c == 0x7f:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// fail gives an error of the client its Kind. redis.Nil is no failure: callers look for it
// first.
func fail(ctx context.Context, k key, err error) error {
	if err == nil {
		return nil
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		text := reply.Error() // inside a script it is wrapped in more words
		switch {
		case strings.Contains(text, "WRONGTYPE"):
			return errWrongType(k)
		case strings.Contains(text, "not an integer"):
			return errNotANumber(k)
		case strings.Contains(text, "would overflow"):
			return errOverflow(k)
		}
	} else if ctx.Err() != nil {
		return fmt.Errorf("cache: %w (%v)", context.Cause(ctx), err)
	}
	return errUnreachable(err)
}

// optional turns the reply of a command whose answer may be missing into three values.
func optional(ctx context.Context, k key, value string, err error) (string, bool, error) {
	if errors.Is(err, redis.Nil) {
		return "", false, nil
	}
	return value, err == nil, fail(ctx, k, err)
}

func (r *Redis) get(ctx context.Context, k key) (string, bool, error) {
	v, err := r.client.Get(ctx, r.name(k)).Result()
	return optional(ctx, k, v, err)
}

func (r *Redis) set(ctx context.Context, k key, value string, ttl time.Duration) error {
	return fail(ctx, k, r.client.Set(ctx, r.name(k), value, ttl).Err())
}

func (r *Redis) remove(ctx context.Context, k key) (bool, error) {
	n, err := r.client.Del(ctx, r.name(k)).Result()
	return n > 0, fail(ctx, k, err)
}

func (r *Redis) exists(ctx context.Context, k key) (bool, error) {
	n, err := r.client.Exists(ctx, r.name(k)).Result()
	return n > 0, fail(ctx, k, err)
}

// persist answers whether the key exists, which PERSIST alone does not for a key that has
// no ttl.
var persist = redis.NewScript(`redis.call('PERSIST', KEYS[1])
return redis.call('EXISTS', KEYS[1])`)

func (r *Redis) expire(ctx context.Context, k key, ttl time.Duration) (bool, error) {
	if ttl == 0 {
		n, err := persist.Run(ctx, r.client, []string{r.name(k)}).Int64()
		return n > 0, fail(ctx, k, err)
	}
	existed, err := r.client.PExpire(ctx, r.name(k), ttl).Result()
	return existed, fail(ctx, k, err)
}

func (r *Redis) setIfNotExists(ctx context.Context, k key, value string, ttl time.Duration) (bool, error) {
	_, err := r.client.SetArgs(ctx, r.name(k), value, redis.SetArgs{Mode: "NX", TTL: ttl}).Result()
	_, stored, err := optional(ctx, k, "", err)
	return stored, err
}

// incrementNew returns the sum as text: a Lua number has no 64 bits.
var incrementNew = redis.NewScript(`local fresh = redis.call('EXISTS', KEYS[1]) == 0
redis.call('INCRBY', KEYS[1], ARGV[1])
if fresh then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[1])`)

func (r *Redis) increment(ctx context.Context, k key, by int64, ttl time.Duration) (int64, error) {
	var n int64
	var err error
	if ttl == 0 {
		n, err = r.client.IncrBy(ctx, r.name(k), by).Result()
	} else {
		n, err = incrementNew.Run(ctx, r.client, []string{r.name(k)}, by, ttl.Milliseconds()).Int64()
	}
	return n, fail(ctx, k, err)
}

func (r *Redis) getAndRemove(ctx context.Context, k key) (string, bool, error) {
	v, err := r.client.GetDel(ctx, r.name(k)).Result()
	return optional(ctx, k, v, err)
}

var compareAndSet = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[3] == '0' then redis.call('SET', KEYS[1], ARGV[2])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1`)

func (r *Redis) compareAndSet(ctx context.Context, k key, old, value string, ttl time.Duration) (bool, error) {
	n, err := compareAndSet.Run(ctx, r.client, []string{r.name(k)}, old, value, ttl.Milliseconds()).Int64()
	return n == 1, fail(ctx, k, err)
}

func (r *Redis) hashSet(ctx context.Context, k key, field, value string) error {
	return fail(ctx, k, r.client.HSet(ctx, r.name(k), field, value).Err())
}

func (r *Redis) hashGet(ctx context.Context, k key, field string) (string, bool, error) {
	v, err := r.client.HGet(ctx, r.name(k), field).Result()
	return optional(ctx, k, v, err)
}

func (r *Redis) hashGetAll(ctx context.Context, k key) (map[string]string, error) {
	fields, err := r.client.HGetAll(ctx, r.name(k)).Result()
	if err != nil {
		return nil, fail(ctx, k, err)
	}
	return fields, nil
}

func (r *Redis) hashDelete(ctx context.Context, k key, field string) (bool, error) {
	n, err := r.client.HDel(ctx, r.name(k), field).Result()
	return n > 0, fail(ctx, k, err)
}

func (r *Redis) hashIncrement(ctx context.Context, k key, field string, by int64) (int64, error) {
	n, err := r.client.HIncrBy(ctx, r.name(k), field, by).Result()
	return n, fail(ctx, k, err)
}
