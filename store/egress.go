package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
)

// EgressRules returns what SetEgressRules stored for a tenant; empty: nothing was. It
// returns a *NotFoundError for an unknown tenant.
func (s *Store) EgressRules(ctx context.Context, tenant string) (json.RawMessage, error) {
	missing := &NotFoundError{What: "tenant", Name: tenant}
	name, err := tenantName(tenant)
	if err != nil {
		return nil, missing
	}
	var rules sql.NullString
	err = s.one(ctx, "SELECT e.rules FROM {tenants} t LEFT JOIN {egress} e ON e.tenant = t.name WHERE t.name = $1", name).Scan(&rules)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, missing
	case err != nil:
		return nil, classify(ctx, "egress rules", err)
	}
	return json.RawMessage(rules.String), nil
}

// SetEgressRules replaces a tenant's rules and notes in the audit trail who did it. It
// returns a *NotFoundError for an unknown tenant.
func (s *Store) SetEgressRules(ctx context.Context, tenant, actor string, rules json.RawMessage) error {
	name, err := tenantName(tenant)
	if err != nil {
		return &NotFoundError{What: "tenant", Name: tenant}
	}
	return s.update(ctx, "set egress rules", func(tx *tx) error {
		if err := tx.tenantExists(name); err != nil {
			return err
		}
		if _, err := tx.exec(`INSERT INTO {egress} (tenant, rules) VALUES ($1, $2)
			ON CONFLICT (tenant) DO UPDATE SET rules = excluded.rules`, name, string(rules)); err != nil {
			return err
		}
		return tx.audit(AuditEntry{Tenant: name, Actor: actor, Action: "tenant.egress", Subject: name, Detail: rules})
	})
}
