package egress

import (
	"fmt"

	"apiengine/fault"
)

// RefusedError reports a request that the rules do not let out: its address, a redirect
// of it or a header. Nothing was sent to that address.
type RefusedError struct {
	What string // the address or header, without user and query
	Why  string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s is refused: %s", e.What, e.Why) }

// Kind is forbidden.
func (e *RefusedError) Kind() fault.Kind { return fault.Forbidden }

// Public is the whole text: its reader named the address.
func (e *RefusedError) Public() string { return e.Error() }

// FailedError reports a request without an answer: no connection, no answer in its time,
// or one that is too large. Whether the other side has acted on it is not known.
type FailedError struct {
	Host  string
	Msg   string
	Cause error // for the log
}

func (e *FailedError) Error() string { return fmt.Sprintf("%s: %s", e.Host, e.Msg) }

// Unwrap gives the cause to errors.Is and errors.As.
func (e *FailedError) Unwrap() error { return e.Cause }

// Kind is script_error: a script may catch it, and uncaught it is the script's failure.
func (e *FailedError) Kind() fault.Kind { return fault.ScriptError }

// Public is the text without the cause, which can hold addresses of resolvers.
func (e *FailedError) Public() string { return e.Error() }
