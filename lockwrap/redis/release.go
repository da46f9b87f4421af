package redis

import (
	"context"
	"fmt"

	"apiengine/lockwrap"
)

// Release is lockwrap.Backend's.
func (b *Backend) Release(ctx context.Context, lock string, o lockwrap.Owner, next *lockwrap.Claim) (lockwrap.Reply, error) {
	r, _, err := b.run(ctx, releaseCall(lockwrap.Handback{Lock: lock, Owner: o, Next: next}))
	return given(r, next), err
}

func releaseCall(h lockwrap.Handback) call {
	c := call{op: "release", script: releaseScript, lock: h.Lock, args: []any{h.Owner.Holder, h.Owner.Token, grace, h.Lock}}
	if h.Next != nil {
		c.script = handOverScript
		c.args = append(append(wish(h.Next), flag(h.Next.Yield)), c.args...)
	}
	return c
}

func given(r lockwrap.Reply, next *lockwrap.Claim) lockwrap.Reply {
	if r.Next != 0 {
		r.Left = next.TTL
	}
	return r
}

// Effects are what a release does to other keys of the same Redis in its own step. They are
// for one server, or one with replicas: in a cluster the keys are elsewhere.
type Effects struct {
	// Script defines the Lua function effects(held, k, a): KEYS from the k-th on and ARGV from
	// the a-th on are its own. It returns how many writes failed, and must raise no error: the
	// release is done when it runs.
	Script string
	Keys   []string
	Args   []any
}

var _ interface {
	lockwrap.Backend
	lockwrap.Applier
} = (*Backend)(nil)

// ReleaseWith is lockwrap.Applier's; the effects are of type Effects.
func (b *Backend) ReleaseWith(ctx context.Context, h lockwrap.Handback, e lockwrap.Effects) (lockwrap.Reply, error) {
	fx, ok := e.(Effects)
	if !ok {
		return lockwrap.Reply{}, &lockwrap.BackendError{Op: "release", Err: fmt.Errorf("effects of type %T", e)}
	}
	c := releaseCall(h)
	c.script = b.withEffects(c, fx.Script)
	c.keys, c.args = fx.Keys, append(c.args, fx.Args...)
	cmd := b.eval(ctx, c)
	if err := cmd.Err(); err != nil {
		return lockwrap.Reply{}, classify(c.op, err)
	}
	r, err := decodeBoth(cmd.Val())
	if err != nil {
		return r, &lockwrap.UnknownError{Op: c.op, Err: err}
	}
	return given(r, h.Next), nil
}

// decodeBoth reads {what the release says, how many writes failed}.
func decodeBoth(val any) (lockwrap.Reply, error) {
	if v, ok := val.([]any); ok && len(v) == 2 {
		if failed, ok := v[1].(int64); ok {
			r, _, err := decode(v[0])
			r.Failed = int(failed)
			return r, err
		}
	}
	return lockwrap.Reply{}, fmt.Errorf("unexpected reply %v", val)
}

// composition names a script that was made of two.
type composition struct{ release, effects string }

// withEffects is c's script, followed by effects. The release comes first: what can fail in
// it fails before anything was written, and after its DEL a full memory refuses nothing more.
// A hand-over that finds itself done applies nothing: the next holder may have written since.
func (b *Backend) withEffects(c call, effects string) script {
	name := composition{c.script.digest, effects}
	if s, ok := b.composed.Load(name); ok {
		return s.(script)
	}
	done := "false"
	if c.script == handOverScript {
		done = `string.match(redis.call('GET', KEYS[1]) or '', '^%d+:(%S+)') == ARGV[1]`
	}
	s := newScript(fmt.Sprintf(`%s
local function release()
%s
end
local done = %s
local reply = release()
if done then
	return {reply, 0}
end
return {reply, effects(type(reply) == 'string' or #reply == 2, 4, %d)}
`, effects, c.script.text, done, len(c.args)+1))
	b.composed.Store(name, s)
	return s
}
