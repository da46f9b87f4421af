package tenantdb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"apiengine/fault"
)

// Answers that are kept for an Idempotency-Key (contract.md section 4.4).
//
// A claim says that a run is under way; the answer is written by the run's own
// transaction (Tx.Complete), only while the claim is still its own. So the work of a run
// and its answer are committed together or not at all, and of two runs with one key at
// most one commits.
//
// On PostgreSQL a claim is a row, committed before the run without waiting for the disk:
// a server that crashes and forgets it has broken the run's connection too. It has a
// lease by the database's clock, which the run renews (Attempt.Renew); one that ran out
// belongs to a node that died, and the next caller takes it over with the next attempt
// number. On SQLite one process has the whole file, so its memory knows the claims and
// they end with it; only the answer is a row.

// Claim is the wish to run what an Idempotency-Key stands for.
type Claim struct {
	ID          string        // which key: unique to API, caller and key
	Fingerprint string        // of the request
	Execution   string        // the run, unique
	Lease       time.Duration // how long the claim outlives a node that does not renew it; default 15 s
	Keep        time.Duration // how long the answer is kept; default 24 h
}

const (
	defaultClaimLease = 15 * time.Second
	defaultKeep       = 24 * time.Hour
)

// Answer is what the first call got.
type Answer struct {
	Execution string // the run that made it
	Token     int64  // its fencing token; 0: none
	Status    int
	Header    map[string]string
	Body      []byte
}

// answerHead is what stands beside the body.
type answerHead struct {
	Token  int64             `json:"token,omitempty"`
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
}

// Attempt is a claim that was granted. It must be ended by End.
type Attempt struct {
	Claim
	Number int64
	db     *DB
}

// idempotency is what a kind of database does with claims.
type idempotency interface {
	// claim returns the attempt's number, or the row of another.
	claim(ctx context.Context, c Claim) (number int64, other *claimRow, err error)
	renew(ctx context.Context, a *Attempt) (ours bool, err error)
	end(ctx context.Context, a *Attempt, kept bool) error
	forget(ctx context.Context) (int64, error)
}

// claimRow is the claim or the answer that stands in the way of a new claim.
type claimRow struct {
	fingerprint, execution string
	head                   string // empty: still running
	body                   []byte
}

// Claim claims a key for one run. Where the key's answer is kept it returns that instead
// of an Attempt. The error is a *InProgressError, a *MismatchError, store_unavailable or
// ctx's cause.
func (db *DB) Claim(ctx context.Context, c Claim) (*Attempt, *Answer, error) {
	c.Lease, c.Keep = cmp.Or(c.Lease, defaultClaimLease), cmp.Or(c.Keep, defaultKeep)
	if c.ID == "" || c.Fingerprint == "" || c.Execution == "" {
		return nil, nil, fault.New(fault.Internal, "tenantdb: a claim without ID, fingerprint or execution")
	}
	if ctx.Err() != nil {
		return nil, nil, ended(ctx)
	}
	number, other, err := db.b.claim(ctx, c)
	switch {
	case err != nil:
		return nil, nil, err
	case other == nil:
		return &Attempt{Claim: c, Number: number, db: db}, nil, nil
	case other.fingerprint != c.Fingerprint:
		return nil, nil, &MismatchError{}
	case other.head == "":
		return nil, nil, &InProgressError{}
	}
	a, err := other.answer()
	return nil, a, err
}

func (r *claimRow) answer() (*Answer, error) {
	var head answerHead
	if err := json.Unmarshal([]byte(r.head), &head); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "tenantdb: a kept answer cannot be read")
	}
	return &Answer{Execution: r.execution, Token: head.Token, Status: head.Status, Header: head.Header, Body: r.body}, nil
}

func (a Answer) head() (string, error) {
	text, err := json.Marshal(answerHead{Token: a.Token, Status: a.Status, Header: a.Header})
	return string(text), err
}

// Renews is how often Renew must be called while the run lasts; 0: never.
func (a *Attempt) Renews() time.Duration {
	if a.db.Dialect() == "sqlite" {
		return 0
	}
	return a.Lease / 3
}

// Renew moves the end of the claim's lease. It returns a *TakenOverError when the claim
// is not the attempt's own any more; any other error may be tried again.
func (a *Attempt) Renew(ctx context.Context) error {
	ours, err := a.db.b.renew(ctx, a)
	if err == nil && !ours {
		err = &TakenOverError{Attempt: a.Number}
	}
	return err
}

// End ends the attempt. Unless kept, the run has left nothing and the key is given back.
// kept: the answer has been committed, or may have been (outcome_unknown): then the row
// itself tells the next caller.
func (a *Attempt) End(ctx context.Context, kept bool) error { return a.db.b.end(ctx, a, kept) }

// Complete writes the answer into the transaction, which must be committed next. A
// *TakenOverError, of this call or of Commit, means that another attempt has the key by
// now; the transaction must then be rolled back.
func (tx *Tx) Complete(ctx context.Context, a *Attempt, ans Answer) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}
	head, err := ans.head()
	if err != nil {
		return fault.Wrap(fault.Internal, err, "tenantdb: the answer cannot be kept")
	}
	ours, err := tx.s.complete(ctx, a, head, ans.Body)
	if err == nil && !ours {
		err = &TakenOverError{Attempt: a.Number}
	}
	return err
}

// ForgetAnswers deletes the answers whose time is over, and returns how many.
func (db *DB) ForgetAnswers(ctx context.Context) (int64, error) { return db.b.forget(ctx) }

// InProgressError reports a key whose first call is still running.
type InProgressError struct{}

func (e *InProgressError) Error() string {
	return "tenantdb: the idempotency key's first call is still running"
}

// Kind is idempotency_in_progress.
func (e *InProgressError) Kind() fault.Kind { return fault.IdempotencyInProgress }

// Public is the text for the caller.
func (e *InProgressError) Public() string {
	return "a call with this Idempotency-Key is still running: ask again for its answer"
}

// MismatchError reports a key that was used for another request.
type MismatchError struct{}

func (e *MismatchError) Error() string {
	return "tenantdb: the idempotency key belongs to another request"
}

// Kind is idempotency_mismatch.
func (e *MismatchError) Kind() fault.Kind { return fault.IdempotencyMismatch }

// Public is the text for the caller.
func (e *MismatchError) Public() string {
	return "this Idempotency-Key was used for another request: a new request needs a new key"
}

// TakenOverError reports an attempt that was so long out of touch that another one has
// taken its key over. Its transaction can only be rolled back.
type TakenOverError struct{ Attempt int64 }

func (e *TakenOverError) Error() string {
	return fmt.Sprintf("tenantdb: attempt %d lost its idempotency key to a later one", e.Attempt)
}

// Kind is idempotency_in_progress.
func (e *TakenOverError) Kind() fault.Kind { return fault.IdempotencyInProgress }

// Public is the text for the caller.
func (e *TakenOverError) Public() string {
	return "another call with this Idempotency-Key took over; this one was rolled back: ask again for the answer"
}
