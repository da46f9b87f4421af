package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/lockwrap"
)

// scope is what commits together: the transactions, the staged cache writes and the locks
// of one frame and of those nested in it that joined it.
type scope struct {
	parent    *scope
	until     time.Time        // deadline of the frame that began it: no transaction of it lives longer
	mode      string           // of the frame that began it: auto, own or none
	txs       map[string]*txn  // open transactions by database name
	staged    Staged           // nil: nothing has been staged
	stages    bool             // writes of the frame that began it wait for the commit
	taken     []taken          // locks taken inside, oldest first
	posted    bool             // messages go out with the commit
	ordered   []string         // tasks begin with the commit, if they are kept at all
	parcel    lockwrap.Effects // staged writes that the release of the lock shall apply
	committed bool             // what was to be kept has been, or a part of it, under locks that were checked
	own       bool             // the transaction on the tenant's own database has been committed
}

type taken struct {
	lease   *lockwrap.Lease
	unwatch func() bool // the loss of the lease no longer ends the tree
}

// txn is one open transaction of a scope.
type txn struct {
	tx      Tx
	guarded int // how many of the tree's leases have their guard in it
}

// join gives the frame its scope: the caller's, or a new one.
func (f *frame) join() {
	d := &f.api.Definition
	if p := f.parent; p != nil && d.Transaction == "auto" && p.scope.mode != "none" {
		f.scope = p.scope
	} else {
		f.owner = true
		f.scope = &scope{mode: d.Transaction, stages: d.Effects == "staged"}
		if p != nil {
			f.scope.parent = p.scope
		}
	}
}

// cache is V8.Cache: under staged effects an overlay that the scope's frames share. A
// frame whose effects are immediate uses it too once a frame that joined it has staged
// something: it must see that, and its own later write to the same key must win.
func (f *frame) cache() jsbridge.Cache {
	s, caches := f.scope, f.tree.e.cfg.Caches
	staged := f.api.Definition.Effects == "staged"
	switch {
	case s.staged != nil && (staged || s.stages || !s.staged.Empty()):
		return acting{s.staged, f.tree, true}
	case staged || s.stages:
		s.staged = caches.Stage(f.call.Tenant)
		return acting{s.staged, f.tree, true}
	}
	return acting{caches.For(f.call.Tenant), f.tree, false}
}

// pending reports whether the scope has anything to commit or to apply.
func (s *scope) pending() bool {
	return len(s.txs) > 0 || (s.staged != nil && !s.staged.Empty())
}

// open returns the frame's transaction on a database, begun and guarded for every lock
// that the tree holds, with a savepoint for each frame that may be undone alone.
func (f *frame) open(ctx context.Context, name string) (*txn, error) {
	t := f.scope.txs[name]
	if t == nil {
		db, err := f.database(ctx, name)
		if err != nil {
			return nil, err
		}
		if t, err = f.begin(ctx, db); err != nil {
			return nil, err
		}
		if f.scope.txs == nil {
			f.scope.txs = map[string]*txn{}
		}
		f.scope.txs[name] = t
		f.mark(t)
		return t, nil
	}
	if err := f.savepoints(ctx, t); err != nil {
		return nil, err
	}
	return t, f.guard(ctx, t)
}

// begin starts a transaction with the guard of the tree's first lock in the same flush,
// and adds those of the others. From here on the caller's hanging up stops nothing.
func (f *frame) begin(ctx context.Context, db Database) (*txn, error) {
	f.tree.begun.Store(true)
	first := Guard{Until: f.scope.until}
	t := &txn{}
	if ls := f.tree.leases; len(ls) > 0 {
		first, t.guarded = guardOf(ls[0], f.scope.until), 1
	}
	if f.scope.holds() {
		first.Connect = furtherConnection
	}
	var err error
	if t.tx, err = db.Begin(ctx, first); err != nil {
		return nil, err
	}
	if err := f.guard(ctx, t); err != nil {
		return nil, errors.Join(err, t.tx.Rollback(ctx))
	}
	return t, nil
}

func guardOf(l *lockwrap.Lease, until time.Time) Guard {
	return Guard{Key: l.Key().String(), Token: l.Token(), Owner: l.Owner(), Until: until}
}

// guard adds the guards of locks taken since the transaction began.
func (f *frame) guard(ctx context.Context, t *txn) error {
	for t.guarded < len(f.tree.leases) {
		if err := t.tx.Guard(ctx, guardOf(f.tree.leases[t.guarded], f.scope.until)); err != nil {
			return err
		}
		t.guarded++
	}
	return nil
}

// savepoints gives every frame between the scope's own and this one a savepoint in t, the
// outermost first, so that each can be undone alone.
func (f *frame) savepoints(ctx context.Context, t *txn) error {
	if f.owner {
		return nil
	}
	if err := f.parent.savepoints(ctx, t); err != nil {
		return err
	}
	if _, has := f.saves[t]; has {
		return nil
	}
	name, err := t.tx.Savepoint(ctx)
	if err == nil {
		f.setSave(t, name)
	}
	return err
}

// mark notes for this frame and its callers in the scope that t did not exist before them.
func (f *frame) mark(t *txn) {
	for ; f != nil && !f.owner; f = f.parent {
		f.setSave(t, "")
	}
}

func (f *frame) setSave(t *txn, name string) {
	if f.saves == nil {
		f.saves = map[*txn]string{}
	}
	f.saves[t] = name
}

// undo takes back what the frame did: everything when the scope is its own, else what
// lies behind its savepoints. It returns cause, or the reason why that failed.
func (f *frame) undo(ctx context.Context, cause error) error {
	if len(f.scope.txs) == 0 && f.scope.staged == nil {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	var failed error
	for _, name := range f.scope.commitOrder() {
		t := f.scope.txs[name]
		save, mine := f.saves[t]
		switch {
		case f.owner, mine && save == "":
			failed = errors.Join(failed, t.tx.Rollback(ctx))
			delete(f.scope.txs, name)
		case mine:
			failed = errors.Join(failed, t.tx.RollbackTo(ctx, save))
		}
	}
	if f.owner && f.scope.staged != nil {
		f.scope.staged.RollbackTo(0)
	}
	if failed != nil && !f.owner { // the caller's transaction cannot go on
		f.tree.cancel(failed)
	}
	if cause == nil && !f.owner {
		return failed
	}
	return cause // a failed rollback of a connection that is thrown away changes nothing
}

// undoLimit bounds the way back to a savepoint, which is short where the database answers.
const undoLimit = 5 * time.Second

// commit commits the scope's transactions; a joined frame only lets go of its savepoints.
func (f *frame) commit(ctx context.Context) error {
	if !f.owner {
		return f.keep(ctx)
	}
	if len(f.scope.txs) == 0 {
		return nil
	}
	if err := f.commitAll(ctx); err != nil {
		if f.scope.staged != nil && (f.scope.committed || fault.Of(err) == fault.OutcomeUnknown) {
			f.invalidate(ctx, err) // something has landed, or may have: what the cache holds may be old
		}
		return f.undo(ctx, err)
	}
	return nil
}

// keep makes a joined frame's work part of its caller's.
func (f *frame) keep(ctx context.Context) error {
	for _, t := range f.scope.txs {
		if save := f.saves[t]; save != "" {
			if err := t.tx.ReleaseSavepoint(ctx, save); err != nil {
				return err
			}
		}
	}
	return nil
}

// release ends a scope: its locks go, youngest first. A lock that turns out to have been
// lost makes the call fail, unless its commit was checked and has landed.
func (f *frame) release(ctx context.Context, err error) error {
	if !f.owner {
		return err
	}
	s := f.scope
	for len(s.taken) > 0 {
		last := s.taken[len(s.taken)-1]
		s.taken = s.taken[:len(s.taken)-1]
		last.unwatch()
		lost := f.giveBack(ctx, last.lease)
		f.x.released(last.lease)
		if lost == nil {
			f.tree.whole = append(f.tree.whole, last.lease)
		}
		f.tree.leases = slices.DeleteFunc(f.tree.leases, func(l *lockwrap.Lease) bool { return l == last.lease })
		if lost != nil && !s.committed && (err == nil || overtaken(err, lost)) {
			err = lost
		}
	}
	return err
}

// overtaken reports a run that was stopped at its deadline so late that somebody else has
// had the lock: its caller must hear of that rather than of the time.
func overtaken(err, lost error) bool {
	var l *lockwrap.LostError
	return fault.Of(err) == fault.Timeout && errors.As(lost, &l) && l.Last > l.Token
}

var _ jsbridge.Lock = leaseView{}
