package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"apiengine/fault"
)

// A scope with several databases has a transaction in each, and there is no commit of all at
// once. The named ones go first, the tenant's own last, since the answer for an
// Idempotency-Key, messages and tasks are in it: what tells of the work must not be there
// without it. When one fails those that were committed stay, and the rest is rolled back.

// commitOrder is the databases of the open transactions, in the order of their commits.
func (s *scope) commitOrder() []string {
	names := sortedKeys(s.txs) // "", the tenant's own, is the first
	if len(names) > 0 && names[0] == "" {
		names = append(names[1:], "")
	}
	return names
}

// furtherConnection is how long a run that holds a connection waits for another: runs that
// hold one each and want two would else wait for each other until they are out of time.
const furtherConnection = 3 * time.Second

// holds reports whether the scope, or one around it, has an open transaction.
func (s *scope) holds() bool {
	for ; s != nil; s = s.parent {
		if len(s.txs) > 0 {
			return true
		}
	}
	return false
}

// CommitError reports a commit of one of several databases that did not succeed.
type CommitError struct {
	Database  string   // whose commit failed, of V8.Dbs; empty: the tenant's own
	Committed []string // the databases whose commits had landed before, none of them the tenant's own
	Rest      bool     // other transactions were to be committed after this one and are rolled back
	Cause     error
}

func (e *CommitError) Error() string {
	return fmt.Sprintf("engine: the commit of %s failed, committed: [%s]: %v", shownDatabase(e.Database), strings.Join(e.Committed, " "), e.Cause)
}

// Unwrap gives the database's error.
func (e *CommitError) Unwrap() error { return e.Cause }

// Kind is that of the database's error.
func (e *CommitError) Kind() fault.Kind { return fault.Of(e.Cause) }

// Public says what is written and what is not.
func (e *CommitError) Public() string {
	text := fault.Public(e.Cause) + " (in the commit of " + shownDatabase(e.Database)
	if len(e.Committed) > 0 {
		text += "; committed before: " + strings.Join(e.Committed, ", ")
	}
	return text + ")"
}

// Details are those of the database's error, and the databases.
func (e *CommitError) Details() map[string]any {
	d := map[string]any{}
	maps.Copy(d, fault.Details(e.Cause))
	d["Database"] = shownDatabase(e.Database)
	d["CommittedDatabases"] = append([]string{}, e.Committed...)
	return d
}

// shownDatabase is a database as scripts write it.
func shownDatabase(name string) string {
	if name == "" {
		return "V8.Db"
	}
	return "V8.Dbs." + name
}

// commitAll commits the scope's transactions in their order. An error leaves those that
// follow open.
func (f *frame) commitAll(ctx context.Context) error {
	s := f.scope
	order := s.commitOrder()
	var done []string
	for i, name := range order {
		t := s.txs[name]
		delete(s.txs, name)
		if err := t.tx.Commit(ctx); err != nil {
			if len(order) == 1 && name == "" {
				return err
			}
			return &CommitError{Database: name, Committed: done, Rest: i+1 < len(order), Cause: err}
		}
		done = append(done, shownDatabase(name))
		f.landed(name)
	}
	return nil
}

// landed notes that the transaction of a database has been committed.
func (f *frame) landed(name string) {
	f.scope.committed, f.x.Committed = true, true
	if name == "" {
		f.scope.own = true
		f.scope.announce(f)
	}
}

// unknownOwn reports a commit of which nobody knows whether it landed, unless it is that of a
// named database: then the tenant's own was rolled back.
func unknownOwn(err error) bool {
	c := new(CommitError)
	return fault.Of(err) == fault.OutcomeUnknown && !(errors.As(err, &c) && c.Database != "")
}
