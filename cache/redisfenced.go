package cache

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// fencedLua is one write that is compared with its key's mark. It raises an error only
// before it has changed anything.
const fencedLua = `
local function fenced(key, mark, kind, token, keep, arg, value)
	local stored = redis.call('GET', mark)
	local newest = tonumber(stored or '0') or 0
	if newest > tonumber(token) then
		if kind == 'fset' then
			return 0
		end
		kind = 'remove'
	elseif kind == 'fset' then
		kind = 'set'
	end
	local done = 1
	if kind == 'set' and arg == '0' then redis.call('SET', key, value)
	elseif kind == 'set' then redis.call('SET', key, value, 'PX', arg)
	elseif kind == 'remove' then done = redis.call('DEL', key)
	elseif kind == 'expire' and arg == '0' then redis.call('PERSIST', key)
	elseif kind == 'expire' then redis.call('PEXPIRE', key, arg)
	elseif kind == 'hset' then redis.call('HSET', key, arg, value)
	else redis.call('HDEL', key, arg) end
	if newest <= tonumber(token) then
		if tonumber(keep) > redis.call('PTTL', mark) then redis.pcall('SET', mark, token, 'PX', keep)
		elseif stored then redis.pcall('SET', mark, token, 'KEEPTTL') end
	end
	return done
end
`

var fencedScript = redis.NewScript(fencedLua + `
-- KEYS: key, mark; ARGV: kind, token, keep in ms, ttl in ms or field, value
return fenced(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
`)

// effectsLua applies many writes inside another script. A write that fails costs its key.
const effectsLua = fencedLua + `
local function effects(held, k, a)
	local failed, broken = 0, {}
	for i = k, #KEYS, 2 do
		if not held then
			redis.pcall('DEL', KEYS[i])
		elseif not pcall(fenced, KEYS[i], KEYS[i + 1], ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]) then
			failed = failed + 1
			broken[#broken + 1] = KEYS[i]
		end
		a = a + 5
	end
	for _, key in ipairs(broken) do
		redis.pcall('DEL', key)
	end
	return failed
end
`

// RedisEffects are writes for a script that runs in the same Redis, one that is no cluster.
type RedisEffects struct {
	// Script defines the Lua function effects(held, k, a), which takes KEYS from the k-th on
	// and ARGV from the a-th on, raises no error, and returns how many writes failed.
	Script string
	Keys   []string
	Args   []any
}

// markName is the key in Redis of the mark of the key that is stored as name.
func markName(name string) string { return "{" + name + "}:f" }

func (o op) redisKind() string {
	switch o.kind {
	case opSet:
		return "set"
	case opSetFenced:
		return "fset"
	case opRemove:
		return "remove"
	case opExpire:
		return "expire"
	case opHashSet:
		return "hset"
	}
	return "hdel"
}

// redisArgs are o's ARGV.
func (o op) redisArgs() []any {
	var arg any = o.ttl.Milliseconds()
	if o.kind == opHashSet || o.kind == opHashDelete {
		arg = o.field
	}
	return []any{o.redisKind(), o.token, o.keep.Milliseconds(), arg, o.value}
}

func (r *Redis) fenced(ctx context.Context, o op) (bool, error) {
	name := r.name(o.key)
	n, err := fencedScript.Run(ctx, r.client, []string{name, markName(name)}, o.redisArgs()...).Int64()
	return n > 0, fail(ctx, o.key, err)
}

func (r *Redis) mark(ctx context.Context, k key) (int64, error) {
	n, err := r.client.Get(ctx, markName(r.name(k))).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, fail(ctx, k, err)
}

func (r *Redis) effects(ops []op) any {
	e := RedisEffects{Script: effectsLua}
	for _, o := range ops {
		name := r.name(o.key)
		e.Keys = append(e.Keys, name, markName(name))
		e.Args = append(e.Args, o.redisArgs()...)
	}
	return e
}

// apply sends all in one pipeline; a cluster gets one a node, in which the operations on
// one key keep their order.
func (r *Redis) apply(ctx context.Context, ops []op) error {
	if len(ops) == 0 {
		return nil
	}
	results, err := r.pipe(ctx, ops, fencedScript.EvalSha)
	for _, c := range results {
		if redis.HasErrorPrefix(c.Err(), "NOSCRIPT") { // all again: once or twice is the same
			results, err = r.pipe(ctx, ops, fencedScript.Eval)
			break
		}
	}
	if err == nil {
		return nil
	}
	for i, c := range results {
		if c.Err() != nil && i < len(ops) {
			return fail(ctx, ops[i].key, c.Err())
		}
	}
	return fail(ctx, ops[0].key, err)
}

// pipe sends ops; those with a token by run, which is one of fencedScript's methods.
func (r *Redis) pipe(ctx context.Context, ops []op, run func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd) ([]redis.Cmder, error) {
	pipe := r.client.Pipeline()
	for _, o := range ops {
		name := r.name(o.key)
		switch {
		case o.token > 0:
			run(ctx, pipe, []string{name, markName(name)}, o.redisArgs()...)
		case o.kind == opSet:
			pipe.Set(ctx, name, o.value, o.ttl)
		case o.kind == opRemove:
			pipe.Del(ctx, name)
		case o.kind == opExpire && o.ttl == 0:
			pipe.Persist(ctx, name)
		case o.kind == opExpire:
			pipe.PExpire(ctx, name, o.ttl)
		case o.kind == opHashSet:
			pipe.HSet(ctx, name, o.field, o.value)
		case o.kind == opHashDelete:
			pipe.HDel(ctx, name, o.field)
		}
	}
	return pipe.Exec(ctx)
}
