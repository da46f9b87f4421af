package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"apiengine/lockwrap"
)

// Staged cache writes are applied after the commit, and only under a lock that is still held
// (lock-protocol.md, staged cache writes). Where lock and cache live in one place, the release
// itself applies them: the question who holds the lock, the writes and the release are one
// step. Else they are flushed before the release, each compared with the token of its key.

// parcel is the staged writes for the release, nil if that cannot take them along: it answers
// for one lock only.
func (f *frame) parcel() lockwrap.Effects {
	s, leases := f.scope, f.tree.leases
	if len(leases) != 1 || len(s.taken) != 1 || s.taken[0].lease != leases[0] || !leases[0].Applies() {
		return nil
	}
	return s.staged.Effects(leases[0].Token())
}

// flush applies the staged cache writes after the commit, or leaves them to the release. When
// the lease ran out in the commit, every key is removed instead: a cache may be emptied,
// never made stale. The answer stays what the commit made it.
func (f *frame) flush(ctx context.Context) {
	s := f.scope
	if !f.owner || s.staged == nil || s.staged.Empty() {
		return
	}
	if s.parcel = f.parcel(); s.parcel != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	if slices.ContainsFunc(f.tree.leases, func(l *lockwrap.Lease) bool { return !l.Held() }) {
		f.invalidate(ctx, errRanOut)
		return
	}
	err := s.staged.Flush(ctx, f.tree.token())
	s.committed = true // applied under a lock that the check after confirmed
	if err != nil {
		f.invalidate(ctx, err)
	}
}

// token is what staged writes are compared by: the latest of the tree's locks, all of which
// were still held after it was taken.
func (t *tree) token() (latest int64) {
	for _, l := range t.leases {
		if t.call.trust == nil || l != t.call.trust.Lease { // nobody else's writes are under the task's lock
			latest = max(latest, l.Token())
		}
	}
	return latest
}

// flushLimit bounds the work on the cache after a commit.
const flushLimit = 5 * time.Second

var (
	errRanOut    = errors.New("the lease ran out in the commit")
	errUnapplied = errors.New("a write failed, or the release had no answer")
)

// invalidate removes the keys of staged writes that could not be applied.
func (f *frame) invalidate(ctx context.Context, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	f.x.CacheEmptied = true
	log := f.tree.e.cfg.Log
	log.Warn("staged cache writes are not applied, their keys are removed", "execution", f.x.ID, "error", why)
	if err := f.scope.staged.Invalidate(ctx); err != nil {
		log.Error("staged keys could not be removed from the cache", "execution", f.x.ID, "error", err, "after", why)
	}
}

// giveBack releases a lock, with the staged writes if the run's end left them to it.
func (f *frame) giveBack(ctx context.Context, l *lockwrap.Lease) error {
	s := f.scope
	if s.parcel == nil {
		return l.Release(ctx)
	}
	applied, err := l.ReleaseWith(ctx, s.parcel)
	s.parcel = nil
	if applied {
		s.staged.RollbackTo(0)
		f.x.CacheEmptied = err != nil
	} else {
		f.invalidate(ctx, cmp.Or(err, errUnapplied))
	}
	// Without an answer the writes may be there, or come to be there, under a lock that the
	// check after confirmed: the run cannot be said to have failed.
	var lost *lockwrap.LostError
	s.committed = s.committed || err == nil || !applied && errors.As(err, &lost) && lost.Cause == lockwrap.ConfirmFailed
	return err
}
