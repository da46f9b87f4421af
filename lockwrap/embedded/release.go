package embedded

import (
	"context"
	"fmt"
	"time"

	"apiengine/lockwrap"
)

// Release is lockwrap.Backend's.
func (b *Backend) Release(ctx context.Context, lock string, o lockwrap.Owner, next *lockwrap.Claim) (lockwrap.Reply, error) {
	return b.release(ctx, lockwrap.Handback{Lock: lock, Owner: o, Next: next}, func(bool) int { return 0 })
}

// ReleaseWith is lockwrap.Applier's. The effects are a func(held bool) (failed int), which
// runs while nobody can touch the lock: it must not use the backend, and be quick.
func (b *Backend) ReleaseWith(ctx context.Context, h lockwrap.Handback, e lockwrap.Effects) (lockwrap.Reply, error) {
	apply, ok := e.(func(held bool) (failed int))
	if !ok {
		return lockwrap.Reply{}, &lockwrap.BackendError{Op: "release", Err: fmt.Errorf("effects of type %T", e)}
	}
	return b.release(ctx, h, apply)
}

func (b *Backend) release(ctx context.Context, h lockwrap.Handback, apply func(held bool) int) (lockwrap.Reply, error) {
	if h.Next != nil {
		if err := b.tokens.reserve(ctx); err != nil {
			return lockwrap.Reply{}, &lockwrap.BackendError{Op: "release", Err: err}
		}
	}
	var r lockwrap.Reply
	var told string
	err := b.with("release", h.Lock, func(s *slot, now time.Time) {
		r.Token = s.owner.Token
		switch {
		case h.Next != nil && s.alive(now) && s.owner.Holder == h.Next.Holder: // done before
			r = lockwrap.Reply{Held: true, Token: h.Owner.Token, Next: s.owner.Token, Left: h.Next.TTL}
			s.expires = now.Add(h.Next.TTL)
			return
		case s.owns(h.Owner, now):
			r.Held = true
			told = b.handOver(s, h.Next, &r, now)
		}
		r.Failed = apply(r.Held)
	})
	b.ears.tell(told, h.Lock)
	return r, err
}

// handOver ends a lock's holding, and returns the node that the lock is kept for now.
func (b *Backend) handOver(s *slot, next *lockwrap.Claim, r *lockwrap.Reply, now time.Time) (told string) {
	if next != nil && (!next.Yield || len(s.line) == 0) {
		b.grant(s, next, now)
		r.Next, r.Left = s.owner.Token, next.TTL
		return ""
	}
	told = s.pass(now)
	if next != nil && next.Queue {
		s.join(next.Node, now)
	}
	return told
}
