// Package budget turns an API's one number, the execution budget Timeout, into the
// limits of its lock and its run (contract.md section 2). It is a pure function: no
// clock, no I/O.
package budget

import (
	"fmt"
	"time"

	"apiengine/fault"
)

// Limits of the fields that a definition may set.
const (
	DefaultTimeout  = 30 * time.Second
	MaxTimeout      = 12 * time.Hour // for an ordinary caller
	MaxTaskTimeout  = 48 * time.Hour // for a trusted task
	maxTrustedLease = 60 * time.Second
	minTrustedHold  = 12 * time.Hour
	minMargin       = 5 * time.Millisecond
)

// Request is what a Plan is derived from.
type Request struct {
	Timeout time.Duration  // whole seconds, 1 s to MaxTimeout (MaxTaskTimeout when Trusted)
	Wait    *time.Duration // LockWait; nil: not set, 0: try once
	Trusted bool           // the caller is the server's own task runner
}

// Plan holds the derived limits.
type Plan struct {
	Lease  time.Duration // life of the lock in its backend without renewal
	Renew  time.Duration // interval between renewals; 0 = never renewed
	Hold   time.Duration // longest the lock may be held, renewals included
	Wait   time.Duration // wait cap: longest wait for the lock; 0 = one try
	Run    time.Duration // longest a run may take; see Deadline
	Margin time.Duration // taken off the lease for clocks and scheduling
}

// Error names the field that is out of its range. Its Kind is bad_request.
type Error struct {
	Field string
	Msg   string
}

func (e *Error) Error() string { return fmt.Sprintf("budget: %s %s", e.Field, e.Msg) }

// Kind classifies the error.
func (e *Error) Kind() fault.Kind { return fault.BadRequest }

// Public is the text for the caller.
func (e *Error) Public() string { return e.Field + " " + e.Msg }

// Derive returns the Plan for r, or an *Error that names the first unusable field.
func Derive(r Request) (Plan, error) {
	longest := MaxTimeout
	if r.Trusted {
		longest = MaxTaskTimeout
	}
	switch {
	case r.Timeout < time.Second || r.Timeout > longest:
		return Plan{}, &Error{"Timeout", fmt.Sprintf("must be from 1 to %d seconds, not %v", longest/time.Second, r.Timeout)}
	case r.Timeout%time.Second != 0:
		return Plan{}, &Error{"Timeout", fmt.Sprintf("must be whole seconds, not %v", r.Timeout)}
	case r.Wait != nil && (*r.Wait < 0 || *r.Wait > longest):
		return Plan{}, &Error{"LockWait", fmt.Sprintf("must be from 0 to %d seconds, not %v", longest/time.Second, *r.Wait)}
	}
	p := Plan{Lease: r.Timeout, Hold: r.Timeout, Run: r.Timeout}
	if r.Trusted {
		p.Lease = min(r.Timeout, maxTrustedLease)
		p.Renew = p.Lease / 3
		p.Hold = max(r.Timeout, minTrustedHold)
	}
	p.Wait = p.Lease
	if r.Wait != nil {
		p.Wait = *r.Wait
	}
	p.Margin = Margin(p.Lease)
	return p, p.Check()
}

// Margin is what a holder takes off a lease before it trusts it: 1 %, at least 5 ms.
func Margin(lease time.Duration) time.Duration { return max(minMargin, lease/100) }

// Check reports the first limit of p that contradicts another, as an *Error.
func (p Plan) Check() error {
	switch {
	case p.Lease <= p.Margin:
		return &Error{"Lease", fmt.Sprintf("must be longer than its margin of %v, not %v", p.Margin, p.Lease)}
	case p.Renew < 0 || p.Renew >= p.Lease:
		return &Error{"Renew", fmt.Sprintf("must be 0 or shorter than the lease of %v, not %v", p.Lease, p.Renew)}
	case p.Hold < p.Lease:
		return &Error{"Hold", fmt.Sprintf("must be at least the lease of %v, not %v", p.Lease, p.Hold)}
	case p.Wait < 0:
		return &Error{"LockWait", fmt.Sprintf("must not be negative, not %v", p.Wait)}
	case p.Run <= 0:
		return &Error{"Timeout", fmt.Sprintf("must be positive, not %v", p.Run)}
	}
	return nil
}

// RunDeadline returns when a run must end that holds a lease taken by a request sent at
// acquired (local monotonic clock), and began at start: an unrenewed run ends before its
// lease does, a renewed one Run after its start. Without a lock pass the zero acquired.
func (p Plan) RunDeadline(acquired, start time.Time) time.Time {
	if p.Renew > 0 || acquired.IsZero() {
		return start.Add(p.Run)
	}
	return acquired.Add(p.Lease - p.Margin)
}
