package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"apiengine/fault"
	"apiengine/jsbridge"
)

// Answer is the final answer of a call, as it is sent and as it is kept for an
// Idempotency-Key.
type Answer struct {
	Execution string // the run that made it
	Token     int64  // its fencing token; 0: none
	Status    int
	Header    map[string]string // Content-Type included
	Body      []byte
}

// Claim is the wish to run what an Idempotency-Key stands for.
type Claim struct {
	ID          string // which key: of one API, one caller and one key
	Fingerprint string // of the request
	Execution   string
	Lease       time.Duration // how long the claim outlives its node; 0: the database's default
	Keep        time.Duration // how long the answer is kept
}

// Attempt is a claim that was granted.
type Attempt interface {
	Renews() time.Duration // how often Renew is wanted; 0: never
	// Renew tells that the run still goes on. idempotency_in_progress: it has been taken over.
	Renew(ctx context.Context) error
	// End ends the claim. kept: the answer has been committed, or may have been.
	End(ctx context.Context, kept bool) error
}

// once is a root call's claim of its Idempotency-Key.
type once struct {
	attempt  Attempt
	recorded bool               // the answer is in the transaction
	stop     context.CancelFunc // of the renewal
	renewal  sync.WaitGroup
}

// claimTime bounds the claim, which waits for no run.
const claimTime = 5 * time.Second

// claim claims the call's Idempotency-Key, before the wait for the lock: a repeat is told
// at once that the first call runs, or has its answer without a lock. No connection is
// kept. done: f.res holds the answer that was kept. end is called when the key is taken over.
func (f *frame) claim(ctx context.Context, end context.CancelCauseFunc) (done bool, err error) {
	d := &f.api.Definition
	switch key := f.call.IdempotencyKey; {
	case f.call.Origin != OriginHTTP && f.call.Origin != OriginOutbox || d.Idempotency == "off":
		return false, nil
	case key == "" && d.Idempotency == "required":
		return false, &fault.Error{K: fault.IdempotencyKeyMissing, Msg: "the API " + d.ApiEngineKey + " needs the header Idempotency-Key",
			Fields: map[string]any{"Field": "Idempotency-Key"}}
	case key == "":
		return false, nil
	}
	db, err := f.tree.e.cfg.Databases.Open(ctx, f.call.Tenant, "")
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, claimTime, fault.New(fault.StoreUnavailable, "the database did not answer in time"))
	defer cancel()
	attempt, kept, err := db.Claim(limited, f.claimOf())
	if err != nil || kept != nil {
		if kept != nil {
			f.res.Answer, f.res.Replayed, f.x.ReplayOf = kept, true, kept.Execution
		}
		return kept != nil, err
	}
	f.once = &once{attempt: attempt}
	f.once.renew(ctx, end)
	return false, nil
}

func (f *frame) claimOf() Claim {
	c := &f.call
	return Claim{
		ID:          digest(c.Tenant, strings.ToLower(f.api.Definition.ApiEngineKey), c.Caller.ID, c.IdempotencyKey),
		Fingerprint: fingerprint(c), Execution: f.x.ID,
		Lease: f.tree.e.cfg.ClaimLease, Keep: f.tree.e.cfg.KeepAnswers,
	}
}

// renew keeps the claim while the run lasts, its wait for the lock included. A run whose
// key was taken over is ended: it could not commit.
func (o *once) renew(ctx context.Context, end context.CancelCauseFunc) {
	every := o.attempt.Renews()
	if every == 0 {
		return
	}
	ctx, o.stop = context.WithCancel(ctx)
	o.renewal.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := o.attempt.Renew(ctx); fault.Of(err) == fault.IdempotencyInProgress {
				end(err)
				return
			}
		}
	})
}

// record writes the answer into the run's own transaction, last before the check after.
func (f *frame) record(ctx context.Context, out jsbridge.Outcome) error {
	if f.once == nil {
		return f.entrusted(ctx, out)
	}
	ans := f.res.Answer
	switch {
	case ans == nil:
		return fault.New(fault.Internal, "engine: Call.Accept made no Answer for an Idempotency-Key")
	case len(ans.Body) > f.tree.e.cfg.MaxKept:
		err := fault.New(fault.LimitOutput, "the answer has %d bytes; with an Idempotency-Key it is kept and may have %d: leave the key away, or answer less",
			len(ans.Body), f.tree.e.cfg.MaxKept)
		err.Fields = map[string]any{"LimitBytes": f.tree.e.cfg.MaxKept}
		return err
	}
	ans.Execution, ans.Token = f.x.ID, f.x.Token
	t, err := f.open(ctx, "")
	if err != nil {
		return err
	}
	err = t.tx.Complete(ctx, f.once.attempt, *ans)
	f.once.recorded = err == nil
	return err
}

// settle ends the claim when the run has ended in err. A key whose run left nothing is
// free again at once; where the database does not answer, its lease ends by itself.
func (f *frame) settle(ctx context.Context, err error) {
	o := f.once
	if o == nil {
		return
	}
	if o.stop != nil {
		o.stop()
		o.renewal.Wait()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTime)
	defer cancel()
	kept := o.recorded && f.scope != nil && f.scope.own || unknownOwn(err)
	if err := o.attempt.End(ctx, kept); err != nil {
		f.tree.e.cfg.Log.Warn("an Idempotency-Key could not be given back and is free when its lease ends", "execution", f.x.ID, "error", err)
	}
}

// keepUnknown tells the port of an outcome that nobody knows yet.
func (e *Engine) keepUnknown(ctx context.Context, f *frame, err error) {
	var u interface {
		error
		Evidence() json.RawMessage
	}
	if e.cfg.Unknown != nil && fault.Of(err) == fault.OutcomeUnknown && errors.As(err, &u) {
		at := new(CommitError)
		errors.As(err, &at)
		e.cfg.Unknown(context.WithoutCancel(ctx), Unknown{Execution: f.x.ID, Tenant: f.call.Tenant, Caller: f.call.Caller.ID,
			At: time.Now(), Evidence: u.Evidence(), Database: at.Database, Before: f.x.Committed, Rest: at.Rest})
	}
}

// Unknown is a run of which the database could not say whether its commit landed.
type Unknown struct {
	Execution, Tenant, Caller string
	At                        time.Time
	Evidence                  json.RawMessage // by which the database can be asked later
	Database                  string          // which one: of V8.Dbs, or empty, the tenant's own
	Before                    bool            // other transactions of the run had been committed
	Rest                      bool            // others were to be committed after it, and are rolled back
}

// fingerprint is the same for two requests that ask for the same: method, parameters in
// whatever order, files.
func fingerprint(c *Call) string {
	param := jsontext.Value(append([]byte(nil), c.Param...))
	// Numbers keep their text: as doubles, two large integers would be one. What cannot be
	// brought into order is compared as it was sent.
	_ = param.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	parts := []string{c.Method, string(param)}
	for _, name := range sortedKeys(c.Files) {
		parts = append(parts, name, c.Files[name])
	}
	return digest(parts...)
}

// digest is a hash of the parts that no other parts have.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		write(h, strconv.Itoa(len(p))+":")
		write(h, p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func write(h hash.Hash, s string) { _, _ = h.Write([]byte(s)) } // a hash takes everything
