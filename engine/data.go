package engine

import (
	"context"
	"encoding/json"
	"errors"

	"apiengine/fault"
	"apiengine/jsbridge"
)

// database opens a database for this frame. It is refused where the frame would wait for
// its own caller for ever: the caller's transaction is open, and this frame has another.
func (f *frame) database(ctx context.Context, name string) (Database, error) {
	db, err := f.tree.e.cfg.Databases.Open(ctx, f.call.Tenant, name)
	if err != nil {
		return nil, err
	}
	for s := f.scope.parent; s != nil; s = s.parent {
		t := s.txs[name]
		switch {
		case t == nil:
		case db.Serial():
			return nil, fault.New(fault.ScriptError, "%s has Transaction: %s, but its caller's transaction is open on the same SQLite database and it would wait for it for ever; use Transaction: auto",
				f.api.Definition.ApiEngineKey, f.scope.mode)
		case t.guarded > 0:
			return nil, fault.New(fault.ScriptError, "%s has Transaction: %s, but its caller's transaction is open under the lock %s and it would wait for it for ever; use Transaction: auto",
				f.api.Definition.ApiEngineKey, f.scope.mode, f.tree.leases[0].Key())
		}
	}
	return db, nil
}

// session is V8.Db (or V8.Dbs.<name>) of one frame.
type session struct {
	f     *frame
	name  string
	reads bool // V8.DbRead: nothing may be changed
}

// of is the part of a transaction that this session's queries go to.
func (s session) of(tx Tx) Queries {
	if s.reads {
		return tx.Reader()
	}
	return tx
}

// with runs one statement: in the scope's transaction, or, under Transaction: none, in
// one of its own with the guard.
func (s session) with(ctx context.Context, do func(Tx) error) error {
	if s.f.scope.mode != "none" {
		t, err := s.f.open(ctx, s.name)
		if err != nil {
			return err
		}
		return do(t.tx)
	}
	db, err := s.f.database(ctx, s.name)
	if err != nil {
		return err
	}
	t, err := s.f.begin(ctx, db)
	if err != nil {
		return err
	}
	if err := do(t.tx); err != nil {
		return errors.Join(err, t.tx.Rollback(ctx))
	}
	if err := t.tx.Commit(ctx); err != nil {
		if s.name != "" {
			return &CommitError{Database: s.name, Cause: err}
		}
		return err
	}
	s.f.x.Committed = true
	if s.name == "" {
		s.f.scope.announce(s.f)
	}
	return nil
}

func (s session) Query(ctx context.Context, sql string, params map[string]any) (rows json.RawMessage, n int, err error) {
	err = s.with(ctx, func(tx Tx) (err error) { rows, n, err = s.of(tx).Query(ctx, sql, params); return })
	return rows, n, err
}

func (s session) Scalar(ctx context.Context, sql string, params map[string]any) (v json.RawMessage, err error) {
	err = s.with(ctx, func(tx Tx) (err error) { v, err = s.of(tx).Scalar(ctx, sql, params); return })
	return v, err
}

func (s session) Exec(ctx context.Context, sql string, params map[string]any) (n int64, err error) {
	if s.reads {
		return 0, fault.New(fault.ScriptError, "V8.DbRead only reads; use V8.Db for ExecuteNonQuery")
	}
	err = s.with(ctx, func(tx Tx) (err error) { n, err = tx.Exec(ctx, sql, params); return })
	return n, err
}

func (s session) Form(ctx context.Context, op, table string, options json.RawMessage) (r jsbridge.FormResult, err error) {
	c := s.f.call.Caller
	form := Form{Op: op, Table: table, Options: options, UserID: c.ID, UserName: c.Name, Tenant: s.f.call.Tenant, Token: s.f.token()}
	err = s.with(ctx, func(tx Tx) (err error) { r, err = tx.Form(ctx, form); return })
	return r, err
}

var _ jsbridge.Database = session{}
