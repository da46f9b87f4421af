// Package fault names every way in which a call can fail.
//
// An error classifies itself by a method, so no central switch grows: Of finds the
// method anywhere in the error's tree. Only package server knows which HTTP status a
// Kind has; here a Kind is a word that is the same in answers, logs, metrics and history.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// Kind is the machine-readable word for one way to fail (contract.md section 4.3).
type Kind string

// The kinds, in the order of the contract's table.
const (
	BadRequest            Kind = "bad_request"
	LockKeyMissing        Kind = "lock_key_missing"
	IdempotencyKeyMissing Kind = "idempotency_key_missing"
	Unauthenticated       Kind = "unauthenticated"
	Forbidden             Kind = "forbidden"
	HTTPStopped           Kind = "http_stopped"
	NotFound              Kind = "not_found"
	Disabled              Kind = "disabled"
	MethodNotAllowed      Kind = "method_not_allowed"
	LeaseLost             Kind = "lease_lost"
	StaleFence            Kind = "stale_fence"
	IdempotencyInProgress Kind = "idempotency_in_progress"
	VersionConflict       Kind = "version_conflict"
	PayloadTooLarge       Kind = "payload_too_large"
	IdempotencyMismatch   Kind = "idempotency_mismatch"
	LockBusy              Kind = "lock_busy"
	RateLimited           Kind = "rate_limited"
	QueueFull             Kind = "queue_full"
	TenantBusy            Kind = "tenant_busy"
	ScriptError           Kind = "script_error"
	ScriptSyntax          Kind = "script_syntax"
	ResultInvalid         Kind = "result_invalid"
	LimitMemory           Kind = "limit_memory"
	LimitStack            Kind = "limit_stack"
	LimitDepth            Kind = "limit_depth"
	LimitOutput           Kind = "limit_output"
	LimitRegex            Kind = "limit_regex"
	OutcomeUnknown        Kind = "outcome_unknown"
	Overloaded            Kind = "overloaded"
	LockUnavailable       Kind = "lock_unavailable"
	StoreUnavailable      Kind = "store_unavailable"
	Draining              Kind = "draining"
	Timeout               Kind = "timeout"
	Canceled              Kind = "canceled" // the caller left before anything happened
	Internal              Kind = "internal" // a defect of the platform itself
)

// Error is a failure with a text that a person may read and details that a program may
// read. Cause is for logs only: it can hold SQL, addresses and paths.
type Error struct {
	K      Kind
	Msg    string         // for the caller; says which field or key
	Fields map[string]any // joins DataAppend.Error of the answer; may be nil
	Cause  error          // never shown to a caller; may be nil
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Msg
	}
	return e.Msg + ": " + e.Cause.Error()
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }

// Kind classifies the error.
func (e *Error) Kind() Kind { return e.K }

// Public is the text for the caller.
func (e *Error) Public() string { return e.Msg }

// Details are the machine-readable particulars for the caller.
func (e *Error) Details() map[string]any { return e.Fields }

// New returns an Error of kind k whose text is made like fmt.Sprintf's.
func New(k Kind, format string, args ...any) *Error {
	return &Error{K: k, Msg: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error of kind k that keeps cause for the log and shows only the text.
func Wrap(k Kind, cause error, format string, args ...any) *Error {
	return &Error{K: k, Msg: fmt.Sprintf(format, args...), Cause: cause}
}

// Of returns the Kind of err: that of the first error in its tree with a Kind method,
// else Timeout or Canceled for the two context errors, else Internal. Of(nil) is empty.
func Of(err error) Kind {
	if err == nil {
		return ""
	}
	var c interface {
		error
		Kind() Kind
	}
	switch {
	case errors.As(err, &c):
		return c.Kind()
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Internal
}

// Public returns the text of err that a caller may see: what the first error in its
// tree with a Public method says, else a general sentence for its Kind.
func Public(err error) string {
	if err == nil {
		return ""
	}
	var p interface {
		error
		Public() string
	}
	if errors.As(err, &p) {
		if s := p.Public(); s != "" {
			return s
		}
	}
	if s, ok := general[Of(err)]; ok {
		return s
	}
	return general[Internal]
}

// Details returns the particulars of err for a caller, or nil.
func Details(err error) map[string]any {
	var d interface {
		error
		Details() map[string]any
	}
	if errors.As(err, &d) {
		return d.Details()
	}
	return nil
}

var general = map[Kind]string{
	Timeout:          "the run reached its deadline",
	Canceled:         "the caller went away",
	Internal:         "an internal error; the request id leads to it in the server's log",
	LockUnavailable:  "the lock service cannot be reached",
	StoreUnavailable: "the database cannot be reached",
	Overloaded:       "the server is at its limit",
	Draining:         "the server is shutting down",
	// The Chinese term is the one callers of the original platform search for (contract.md section 3).
	LeaseLost:  "分布式锁租约已丢失 (the lock's lease was lost)",
	StaleFence: "分布式锁租约已丢失 (a newer holder of the lock has already written)",
}
