package store

import (
	"context"
	"encoding/json"
	"time"

	"apiengine/fault"
)

// AuditEntry is one thing that an administrator did. Entries are added and never changed.
type AuditEntry struct {
	ID      int64 // rises with time
	At      time.Time
	Tenant  string          // whose thing it was; empty: the platform's
	Actor   string          // who: name and id of the token or the JWT's subject
	Action  string          // such as "lock.release"
	Subject string          // what it was done to
	Detail  json.RawMessage // an object of particulars; nil: {}
}

// AddAudit adds an entry durably; ID and At are the store's.
func (s *Store) AddAudit(ctx context.Context, e AuditEntry) error {
	for name, text := range map[string]string{"Tenant": e.Tenant, "Actor": e.Actor, "Action": e.Action, "Subject": e.Subject} {
		if err := checkText(name, text, 1000); err != nil {
			return err
		}
	}
	if e.Detail == nil {
		e.Detail = json.RawMessage("{}")
	}
	if !json.Valid(e.Detail) {
		return fault.New(fault.BadRequest, "Detail is not JSON")
	}
	return s.update(ctx, "add audit", func(tx *tx) error { return tx.audit(e) })
}

// audit adds an entry in the transaction that does what it tells of.
func (t *tx) audit(e AuditEntry) error {
	_, err := t.exec("INSERT INTO {audit} (at, tenant, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5, $6)",
		now().UnixMicro(), e.Tenant, e.Actor, e.Action, e.Subject, string(e.Detail))
	return err
}

// AuditQuery chooses entries.
type AuditQuery struct {
	Tenant string // empty: all
	Before int64  // only entries with a smaller ID; 0: from the newest
	Limit  int    // at most so many
}

// Audit returns entries, the newest first.
func (s *Store) Audit(ctx context.Context, q AuditQuery) ([]AuditEntry, error) {
	return collect(ctx, scanAudit)(s.rows(ctx, `SELECT id, at, tenant, actor, action, subject, detail FROM {audit}
		WHERE (tenant = $1 OR $1 = '') AND (id < $2 OR $2 = 0) ORDER BY id DESC LIMIT $3`, q.Tenant, q.Before, q.Limit))
}

func scanAudit(row scanner) (e AuditEntry, err error) {
	var at int64
	var detail string
	err = row.Scan(&e.ID, &at, &e.Tenant, &e.Actor, &e.Action, &e.Subject, &detail)
	e.At, e.Detail = fromMicros(at), json.RawMessage(detail)
	return e, err
}
