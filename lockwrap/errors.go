package lockwrap

import (
	"errors"
	"fmt"
	"time"

	"apiengine/fault"
)

// BusyError reports a lock that others kept for the whole wait cap.
type BusyError struct {
	Key    Key
	Waited time.Duration
	Left   time.Duration // life left of the holder's lease when last seen; 0 when unknown
	Holder Holder        // zero when unknown
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("lockwrap: %s still taken after %v", e.Key, e.Waited.Round(time.Millisecond))
}

// Kind classifies the error.
func (e *BusyError) Kind() fault.Kind { return fault.LockBusy }

// Public is the text for the caller.
func (e *BusyError) Public() string {
	if e.Waited < time.Millisecond {
		return "the lock is taken by another call; try again later"
	}
	return fmt.Sprintf("the lock is still taken by another call after a wait of %v; try again later", e.Waited.Round(time.Millisecond))
}

// Details say who holds the lock, since when, and when another try makes sense.
func (e *BusyError) Details() map[string]any {
	holder := map[string]any{"LeftMs": e.Left.Milliseconds()}
	if e.Holder.API != "" {
		holder["Api"] = e.Holder.API
	}
	if !e.Holder.Since.IsZero() {
		holder["Since"] = e.Holder.Since.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	// Few holders use their whole lease: nobody is sent away for hours.
	retry := min(max(e.Left, 100*time.Millisecond), 30*time.Second)
	return map[string]any{"Holder": holder, "RetryAfterMs": retry.Milliseconds()}
}

// QueueFullError reports that a lock has as many waiters on this node as it may have.
type QueueFullError struct {
	Key Key
	Max int // Config.MaxQueue
}

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("lockwrap: %s has %d waiters already", e.Key, e.Max)
}

// Kind classifies the error.
func (e *QueueFullError) Kind() fault.Kind { return fault.QueueFull }

// Public is the text for the caller.
func (e *QueueFullError) Public() string {
	return fmt.Sprintf("the lock has %d waiters already; try again later", e.Max)
}

// Details say how many may wait and when another try makes sense.
func (e *QueueFullError) Details() map[string]any {
	return map[string]any{"MaxWaiters": e.Max, "RetryAfterMs": 1000}
}

// LossCause is the way in which a lease was lost.
type LossCause string

// The three ways to lose a lease.
const (
	TokenMismatch  LossCause = "token_mismatch"   // the backend says that the lock is another's, or nobody's
	MaxHoldReached LossCause = "max_hold_reached" // held for as long as the plan allows
	ConfirmFailed  LossCause = "confirm_failed"   // the backend could not be asked in time
)

// LostError reports that a lease ended under its holder. Whatever its run wrote after that
// moment may have met another holder's work.
type LostError struct {
	Key   Key
	Token int64 // of the lost lease
	Cause LossCause
	Last  int64 // last token that the lock is known to have given; 0 when unknown
	Err   error // why the backend could not be asked; nil unless Cause is ConfirmFailed
}

func (e *LostError) Error() string {
	s := fmt.Sprintf("lockwrap: lease on %s with token %d lost: %s", e.Key, e.Token, e.Cause)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the backend's error.
func (e *LostError) Unwrap() error { return e.Err }

// Kind classifies the error.
func (e *LostError) Kind() fault.Kind { return fault.LeaseLost }

// Public is the text for the caller, with the term that callers of the original platform
// search for (contract.md section 3).
func (e *LostError) Public() string {
	return fmt.Sprintf("分布式锁租约已丢失 (the lock's lease was lost: %s)", e.Cause)
}

// Details name the cause.
func (e *LostError) Details() map[string]any {
	return map[string]any{"Cause": string(e.Cause), "FencingToken": e.Token}
}

// BackendError reports that the backend refused or could not be reached, and that nothing
// was changed.
type BackendError struct {
	Op  string // acquire, confirm, renew, release or ping
	Err error
}

func (e *BackendError) Error() string { return fmt.Sprintf("lockwrap: %s not done: %v", e.Op, e.Err) }

// Unwrap gives the backend's own error.
func (e *BackendError) Unwrap() error { return e.Err }

// Kind classifies the error.
func (e *BackendError) Kind() fault.Kind { return fault.LockUnavailable }

// Public is the text for the caller; it hides addresses.
func (e *BackendError) Public() string { return unavailable }

// Details say when another try makes sense.
func (e *BackendError) Details() map[string]any { return map[string]any{"RetryAfterMs": 1000} }

const unavailable = "the lock service cannot be reached"

// UnknownError reports that the backend's answer did not arrive, so that nobody knows
// whether the request was done. After an acquire a clean-up of the Manager's own makes sure
// that nothing is left behind.
type UnknownError struct {
	Op  string // as in BackendError
	Err error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("lockwrap: %s without an answer: %v", e.Op, e.Err)
}

// Unwrap gives the backend's own error.
func (e *UnknownError) Unwrap() error { return e.Err }

// Kind classifies the error.
func (e *UnknownError) Kind() fault.Kind { return fault.LockUnavailable }

// Public is the text for the caller; it hides addresses.
func (e *UnknownError) Public() string { return unavailable }

// Details say when another try makes sense.
func (e *UnknownError) Details() map[string]any { return map[string]any{"RetryAfterMs": 1000} }

// ClosedError reports that the Manager is closed or closing.
type ClosedError struct{}

func (*ClosedError) Error() string { return "lockwrap: closed" }

// Kind classifies the error.
func (*ClosedError) Kind() fault.Kind { return fault.Draining }

// Public is the text for the caller.
func (*ClosedError) Public() string { return "the server is shutting down" }

// Details say when another try makes sense, on another node.
func (*ClosedError) Details() map[string]any { return map[string]any{"RetryAfterMs": 1000} }

// InvalidError names the first field of a Config or a Request that cannot be used.
type InvalidError struct {
	Field string
	Msg   string
}

func (e *InvalidError) Error() string { return "lockwrap: " + e.Public() }

// Kind classifies the error.
func (e *InvalidError) Kind() fault.Kind { return fault.BadRequest }

// Public is the text for the caller.
func (e *InvalidError) Public() string { return e.Field + " " + e.Msg }

// notApplied reports that a backend's error says for certain that nothing was changed.
func notApplied(err error) bool {
	var e *BackendError
	return errors.As(err, &e)
}

// asUnknown returns err as the error of an outcome that nobody knows.
func asUnknown(op string, err error) error {
	var e *UnknownError
	if errors.As(err, &e) {
		return err
	}
	return &UnknownError{op, err}
}
