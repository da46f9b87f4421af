package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/server"
	"apiengine/store"
)

// outcomes remembers the runs of which the database could not say whether their commit
// landed: in memory at first, since the platform's database may be away with the
// tenant's, then in the store.
type outcomes struct {
	store     *store.Store
	databases *databases
	log       *slog.Logger
	memory    time.Duration // how long what became of a run can be asked for

	recent recent // the outcomes that were told in their answers

	mu     sync.Mutex
	unkept map[string]store.Outcome // not in the store yet, by execution
}

// maxUnkept bounds the memory of an outage; each entry is a commit that was under way.
const maxUnkept = 100_000

// keep is called by the engine for each outcome_unknown.
func (o *outcomes) keep(_ context.Context, u engine.Unknown) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unkept == nil {
		o.unkept = map[string]store.Outcome{}
	}
	if len(o.unkept) < maxUnkept {
		o.unkept[u.Execution] = store.Outcome{Execution: u.Execution, Tenant: u.Tenant, Caller: u.Caller, Evidence: evidenceOf(u), At: u.At}
	}
}

// Outcome implements server.Outcomes.
func (o *outcomes) Outcome(ctx context.Context, q server.OutcomeQuery) (string, error) {
	nothing := fault.New(fault.NotFound, "nothing is known here of the execution %q: it may still run, have had nothing to commit, or have told its outcome in its answer too long ago", q.Execution)
	if e, ok := o.recent.of(q.Tenant, q.Execution); ok {
		if !q.Admin && e.caller != q.Caller {
			return "", nothing
		}
		return e.word, nil
	}
	found, err := o.find(ctx, q.Tenant, q.Execution)
	switch {
	case fault.Of(err) == fault.NotFound, err == nil && !q.Admin && found.Caller != q.Caller:
		return "", nothing
	case err != nil:
		return "", err
	}
	return o.resolve(ctx, found)
}

func (o *outcomes) find(ctx context.Context, tenant, execution string) (store.Outcome, error) {
	o.mu.Lock()
	found, ok := o.unkept[execution]
	o.mu.Unlock()
	if ok && found.Tenant == tenant {
		return found, nil
	}
	return o.store.Outcome(ctx, tenant, execution)
}

// resolve asks the tenant's database, and keeps what it says: the answer never changes.
func (o *outcomes) resolve(ctx context.Context, u store.Outcome) (string, error) {
	if u.Word != "" {
		return u.Word, nil
	}
	var e evidence
	if err := json.Unmarshal(u.Evidence, &e); err != nil {
		return "", err
	}
	db, err := o.databases.get(ctx, place{u.Tenant, e.Database})
	if err != nil {
		return "", err
	}
	switch committed, err := db.Outcome(ctx, e.Witness); {
	case fault.Of(err) == fault.OutcomeUnknown:
		u.Word = ""
	case err != nil:
		return "", err
	default:
		u.Word = e.word(committed)
	}
	if err := o.save(ctx, u); err != nil {
		return "", err
	}
	kept, err := o.store.Outcome(ctx, u.Tenant, u.Execution) // another node may have been first
	if err != nil {
		return "", err
	}
	if kept.Word == "" {
		return "unknown", nil
	}
	return kept.Word, nil
}

func (o *outcomes) save(ctx context.Context, u store.Outcome) error {
	if err := o.store.SaveOutcome(ctx, u); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.unkept, u.Execution)
	return nil
}

// settle resolves, or at least stores, what is only in memory.
func (o *outcomes) settle(ctx context.Context) {
	o.mu.Lock()
	var list []store.Outcome
	for _, u := range o.unkept {
		list = append(list, u)
	}
	o.mu.Unlock()
	for _, u := range list {
		if _, err := o.resolve(ctx, u); err != nil {
			o.log.Debug("an unknown outcome cannot be resolved yet", "execution", u.Execution, "error", err)
			return // the database is away: the next round tries again
		}
	}
}

// follow does what has to be done from time to time until ctx ends: unknown outcomes are
// resolved within seconds of the database's return, those whose time is over deleted.
func (o *outcomes) follow(ctx context.Context) error {
	settle, clean := time.NewTicker(time.Second), time.NewTicker(cleanEvery)
	defer settle.Stop()
	defer clean.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			o.settle(last)
			return nil
		case <-settle.C:
			o.settle(ctx)
		case <-clean.C:
			o.clean(ctx)
		}
	}
}

// outcomeMemory is how long an outcome can be asked for at least; longer where answers
// are kept longer, since a caller may come back for either.
const outcomeMemory = 30 * 24 * time.Hour

func (o *outcomes) clean(ctx context.Context) {
	if _, err := o.store.ForgetOutcomes(ctx, time.Now().Add(-max(o.memory, outcomeMemory))); err != nil && ctx.Err() == nil {
		o.log.Warn("old outcomes could not be cleaned", "error", err)
	}
}
