package store

import (
	"context"
	"encoding/json"
	"time"
)

// Outcome is a run of which the database could not say whether its commit landed.
type Outcome struct {
	Execution, Tenant, Caller string
	Evidence                  json.RawMessage // by which the tenant's database can be asked
	Word                      string          // committed or rolled_back; empty: not known yet
	At                        time.Time
}

// SaveOutcome stores a run. What is stored already is not changed, except that a word
// that was not known is set: the first word counts.
func (s *Store) SaveOutcome(ctx context.Context, o Outcome) error {
	return s.update(ctx, "save outcome", func(tx *tx) error {
		_, err := tx.exec(`INSERT INTO {outcomes} AS o (execution, tenant, caller, evidence, outcome, at) VALUES ($1, $2, $3, $4, nullif($5, ''), $6)
			ON CONFLICT (execution) DO UPDATE SET outcome = excluded.outcome WHERE o.outcome IS NULL`,
			o.Execution, o.Tenant, o.Caller, string(o.Evidence), o.Word, o.At.UnixMicro())
		return err
	})
}

// Outcome returns a stored run of the tenant, or a *NotFoundError.
func (s *Store) Outcome(ctx context.Context, tenant, execution string) (Outcome, error) {
	o := Outcome{Execution: execution, Tenant: tenant}
	var evidence string
	var at int64
	err := s.one(ctx, "SELECT caller, evidence, coalesce(outcome, ''), at FROM {outcomes} WHERE execution = $1 AND tenant = $2", execution, tenant).
		Scan(&o.Caller, &evidence, &o.Word, &at)
	o.Evidence, o.At = json.RawMessage(evidence), time.UnixMicro(at).UTC()
	return found(ctx, o, err, &NotFoundError{What: "unknown outcome of execution", Name: execution})
}
