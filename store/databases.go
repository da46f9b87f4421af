package store

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"apiengine/fault"
)

// Database is one named database of a tenant, V8.Dbs.<Name> to its scripts.
type Database struct {
	Name      string    // [a-z][a-z0-9_]{0,39}
	CreatedAt time.Time // UTC
}

func scanDatabase(row scanner) (d Database, err error) {
	var at int64
	err = row.Scan(&d.Name, &at)
	d.CreatedAt = fromMicros(at)
	return d, err
}

// databasePattern lets a script write V8.Dbs.<name> without quotes, and an operator the name
// of a file.
var databasePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,39}$`)

// databaseName returns the stored form of a database's name, or a bad_request error.
func databaseName(name string) (string, error) {
	if !databasePattern.MatchString(name) {
		e := fault.New(fault.BadRequest, "database %.60q: a letter, then up to 39 of a-z 0-9 _ are allowed", name)
		e.Fields = map[string]any{"Field": "Name"}
		return "", e
	}
	return strings.ToLower(name), nil
}

// DatabaseChange names a database and who adds or removes it.
type DatabaseChange struct{ Tenant, Name, Actor string }

// AddDatabase gives a tenant a named database and notes it in the audit trail. Upper-case
// letters of the name become lower-case. It returns a *NotFoundError for an unknown tenant,
// a *ConflictError when there is such a database, bad_request for a bad name.
func (s *Store) AddDatabase(ctx context.Context, c DatabaseChange) (Database, error) {
	tenant, err := tenantName(c.Tenant)
	if err != nil {
		return Database{}, &NotFoundError{What: "tenant", Name: c.Tenant}
	}
	d := Database{CreatedAt: now()}
	if d.Name, err = databaseName(c.Name); err != nil {
		return Database{}, err
	}
	err = s.update(ctx, "add database", func(tx *tx) error {
		if err := tx.tenantExists(tenant); err != nil {
			return err
		}
		n, err := tx.exec("INSERT INTO {databases} (tenant, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (tenant, name) DO NOTHING",
			tenant, d.Name, d.CreatedAt.UnixMicro())
		if err == nil && n == 0 {
			err = &ConflictError{What: "database", Name: d.Name}
		}
		if err != nil {
			return err
		}
		return tx.audit(AuditEntry{Tenant: tenant, Actor: c.Actor, Action: "tenant.database.add", Subject: d.Name, Detail: json.RawMessage("{}")})
	})
	if err != nil {
		return Database{}, err
	}
	return d, nil
}

// RemoveDatabase forgets a named database and notes it in the audit trail; what the database
// holds is not touched. It returns a *NotFoundError when there is none.
func (s *Store) RemoveDatabase(ctx context.Context, c DatabaseChange) error {
	tenant, err := tenantName(c.Tenant)
	if err != nil {
		return &NotFoundError{What: "tenant", Name: c.Tenant}
	}
	name := strings.ToLower(c.Name)
	return s.update(ctx, "remove database", func(tx *tx) error {
		if err := tx.tenantExists(tenant); err != nil {
			return err
		}
		n, err := tx.exec("DELETE FROM {databases} WHERE tenant = $1 AND name = $2", tenant, name)
		if err == nil && n == 0 {
			err = &NotFoundError{What: "database", Name: c.Name}
		}
		if err != nil {
			return err
		}
		return tx.audit(AuditEntry{Tenant: tenant, Actor: c.Actor, Action: "tenant.database.remove", Subject: name, Detail: json.RawMessage("{}")})
	})
}

// Databases returns a tenant's named databases in the order of their names, or a
// *NotFoundError for an unknown tenant.
func (s *Store) Databases(ctx context.Context, tenant string) ([]Database, error) {
	t, err := s.Tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return collect(ctx, scanDatabase)(s.rows(ctx, "SELECT name, created_at FROM {databases} WHERE tenant = $1 ORDER BY name", t.Name))
}
