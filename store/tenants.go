package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"apiengine/fault"
)

// DefaultTenant exists from the first migration on.
const DefaultTenant = "default"

// Tenant is one tenant. Revision is the Store's revision of the last change of its
// settings or secrets.
type Tenant struct {
	Name      string          // [a-z0-9_-]{1,40}
	Settings  json.RawMessage // a JSON object
	Revision  int64
	CreatedAt time.Time // UTC
}

const tenantColumns = "name, settings, revision, created_at"

func scanTenant(row scanner) (t Tenant, err error) {
	var settings string
	var at int64
	err = row.Scan(&t.Name, &settings, &t.Revision, &at)
	t.Settings, t.CreatedAt = json.RawMessage(settings), fromMicros(at)
	return t, err
}

// tenantName returns the stored form of a tenant's name, or a bad_request error.
func tenantName(name string) (string, error) {
	// The pattern before ToLower, which turns some foreign letters (the Kelvin sign) into ours.
	if !tenantPattern.MatchString(name) {
		return "", fault.New(fault.BadRequest, "tenant %.60q: 1 to 40 of a-z 0-9 _ - are allowed", name)
	}
	return strings.ToLower(name), nil
}

// CreateTenant makes a tenant; upper-case letters in name become lower-case. It returns a
// *ConflictError when it exists, bad_request for a bad name.
func (s *Store) CreateTenant(ctx context.Context, name string) (Tenant, error) {
	name, err := tenantName(name)
	if err != nil {
		return Tenant{}, err
	}
	t := Tenant{Name: name, Settings: json.RawMessage("{}"), CreatedAt: now()}
	err = s.update(ctx, "create tenant", func(tx *tx) (err error) {
		if t.Revision, err = tx.nextRevision(); err != nil {
			return err
		}
		n, err := tx.exec(`INSERT INTO {tenants} (name, revision, created_at) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO NOTHING`, name, t.Revision, t.CreatedAt.UnixMicro())
		if err == nil && n == 0 {
			return &ConflictError{What: "tenant", Name: name}
		}
		return err
	})
	if err != nil {
		return Tenant{}, err
	}
	return t, nil
}

// Tenants returns all tenants in the order of their names.
func (s *Store) Tenants(ctx context.Context) ([]Tenant, error) {
	return collect(ctx, scanTenant)(s.rows(ctx, "SELECT "+tenantColumns+" FROM {tenants} ORDER BY name"))
}

// Tenant returns one tenant, or a *NotFoundError.
func (s *Store) Tenant(ctx context.Context, name string) (Tenant, error) {
	missing := &NotFoundError{What: "tenant", Name: name}
	lower, err := tenantName(name)
	if err != nil {
		return Tenant{}, missing
	}
	t, err := scanTenant(s.one(ctx, "SELECT "+tenantColumns+" FROM {tenants} WHERE name = $1", lower))
	return found(ctx, t, err, missing)
}

// SetTenantSettings replaces a tenant's settings, which must be a JSON object. It returns
// a *NotFoundError for an unknown tenant.
func (s *Store) SetTenantSettings(ctx context.Context, name string, settings json.RawMessage) error {
	lower, err := tenantName(name)
	if err != nil {
		return &NotFoundError{What: "tenant", Name: name}
	}
	var text bytes.Buffer
	if err := json.Compact(&text, settings); err != nil || text.Bytes()[0] != '{' || !utf8.Valid(settings) {
		return fault.New(fault.BadRequest, "the settings of tenant %q are not a JSON object", lower)
	}
	return s.update(ctx, "set tenant settings", func(tx *tx) error {
		if err := tx.touchTenant(lower); err != nil {
			return err
		}
		_, err := tx.exec("UPDATE {tenants} SET settings = $2 WHERE name = $1", lower, text.String())
		return err
	})
}

// touchTenant gives the tenant the next revision, or returns a *NotFoundError.
func (t *tx) touchTenant(name string) error {
	rev, err := t.nextRevision()
	if err != nil {
		return err
	}
	n, err := t.exec("UPDATE {tenants} SET revision = $2 WHERE name = $1", name, rev)
	if err == nil && n == 0 {
		return &NotFoundError{What: "tenant", Name: name}
	}
	return err
}

func (t *tx) tenantExists(name string) error {
	var one int
	err := t.one("SELECT 1 FROM {tenants} WHERE name = $1", name).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return &NotFoundError{What: "tenant", Name: name}
	}
	return err
}
