package tenantdb

import (
	"context"
	"fmt"

	"apiengine/fault"
	"apiengine/store/tenantdb/internal/sqltext"
)

// SQLError is a failure of one statement, or a statement that was refused: an ordinary
// error that a script may catch. The transaction is as it was before the statement.
type SQLError struct {
	Msg   string // the database's own words, or the refusal; never a path or an address
	Code  string // SQLSTATE, or SQLite's extended result code; empty for refusals
	Data  bool   // the values were at fault (a constraint, a value out of range), not the statement
	Cause error  // for the log
}

func (e *SQLError) Error() string { return "tenantdb: " + e.Msg }

// Unwrap gives the driver's error.
func (e *SQLError) Unwrap() error { return e.Cause }

// Kind classifies the error: uncaught it is a script_error.
func (e *SQLError) Kind() fault.Kind { return fault.ScriptError }

// Public is the text for the script and for the caller.
func (e *SQLError) Public() string { return e.Msg }

// Details gives the database's code.
func (e *SQLError) Details() map[string]any {
	if e.Code == "" {
		return nil
	}
	return map[string]any{"SqlCode": e.Code}
}

// StaleError reports a guard that was refused: a holder with a newer token, or another
// one with the same, has used the lock's row. The transaction can only be rolled back.
type StaleError struct {
	Key    string
	Token  int64 // the refused one
	Stored int64 // the one in the database; 0 when it could not be read
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("tenantdb: the guard of lock %s refused token %d, the stored one is %d", e.Key, e.Token, e.Stored)
}

// Fence gives the lock and the token that the database holds for it.
func (e *StaleError) Fence() (key string, stored int64) { return e.Key, e.Stored }

// Kind is stale_fence.
func (e *StaleError) Kind() fault.Kind { return fault.StaleFence }

// Details tell the two tokens.
func (e *StaleError) Details() map[string]any {
	return map[string]any{"FencingToken": e.Token, "StoredToken": e.Stored}
}

// refused makes an SQLError of an error that says itself what is wrong with a statement.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return &SQLError{Msg: err.Error(), Cause: err}
}

func badCall(format string, args ...any) error {
	return &SQLError{Msg: fmt.Sprintf(format, args...)}
}

// ended is the error of a call whose context has ended: the context's own cause.
func ended(ctx context.Context) error { return fmt.Errorf("tenantdb: %w", context.Cause(ctx)) }

func unavailable(cause error, format string, args ...any) error {
	return fault.Wrap(fault.StoreUnavailable, cause, format, args...)
}

// errOver reports the use of a transaction that has ended.
func errOver(why string) error {
	return fault.New(fault.Internal, "tenantdb: the transaction has ended: %s", why)
}

func tooLarge(what string, limit int) error {
	return fault.New(fault.LimitOutput, "the query's result has more than %d %s: page it (LIMIT), or select less", limit, what)
}

// Reserved is how the names of the platform's own tables begin.
const Reserved = sqltext.Reserved
