package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"apiengine/fault"
)

// Definition is one version of an API's definition. The store does not know the fields of
// Body.
type Definition struct {
	Tenant   string
	Key      string          // as the version spelled it; looked up in any case
	Version  int             // 1, 2, 3 ... ; goes on rising when a deleted key is saved again
	Revision int64           // strictly rising over all changes of all tenants, in commit order
	Body     json.RawMessage // compact JSON; nil when Deleted
	SavedBy  string
	SavedAt  time.Time // UTC, whole microseconds
	Note     string
	Deleted  bool // this version is a deletion
}

// Save is one change of a definition.
type Save struct {
	Tenant, Key string
	Body        json.RawMessage // valid JSON
	IfVersion   *int            // nil: whatever is live; 0: must not exist; n: must be the live version
	By, Note    string          // for people; at most 200 and 2000 bytes
}

const definitionColumns = `v.tenant, v.key, v.version, v.revision, v.body, v.saved_by, v.saved_at, v.note`

// live is where the newest version of each definition is, the deleted ones included.
const live = ` FROM {definitions} d JOIN {definition_versions} v
	ON v.tenant = d.tenant AND v.key_lower = d.key_lower AND v.version = d.version`

func scanDefinition(row scanner) (d Definition, err error) {
	var body sql.NullString
	var at int64
	err = row.Scan(&d.Tenant, &d.Key, &d.Version, &d.Revision, &body, &d.SavedBy, &at, &d.Note)
	d.SavedAt = fromMicros(at)
	if d.Deleted = !body.Valid; body.Valid {
		d.Body = json.RawMessage(body.String)
	}
	return d, err
}

// SaveDefinition stores a new version and returns it. The same Body as the live version's
// makes no version and returns the live one. It returns a *ConflictError when IfVersion
// does not hold, a *NotFoundError for an unknown tenant, bad_request for a bad field.
func (s *Store) SaveDefinition(ctx context.Context, in Save) (Definition, error) {
	if err := in.check(); err != nil {
		return Definition{}, err
	}
	var body bytes.Buffer
	if err := json.Compact(&body, in.Body); err != nil || !utf8.Valid(in.Body) {
		return Definition{}, fault.New(fault.BadRequest, "the definition %q is not valid JSON", in.Key)
	}
	next := Definition{Tenant: in.Tenant, Key: in.Key, Body: body.Bytes(), SavedBy: in.By, Note: in.Note}
	d, err := s.change(ctx, next, in.IfVersion)
	if errors.Is(err, errUnchanged) {
		return d, nil
	}
	return d, err
}

// DeleteDefinition makes a version that says the definition is gone. Its history stays. It
// returns a *NotFoundError when it does not exist, else errors as SaveDefinition does.
func (s *Store) DeleteDefinition(ctx context.Context, tenant, key string, ifVersion *int, by string) error {
	in := Save{Tenant: tenant, Key: key, By: by}
	if err := in.check(); err != nil {
		return err
	}
	_, err := s.change(ctx, Definition{Tenant: in.Tenant, Key: key, SavedBy: by, Deleted: true}, ifVersion)
	return err
}

func (in *Save) check() (err error) {
	if in.Tenant, err = tenantName(in.Tenant); err != nil {
		return err
	}
	return errors.Join(checkName("ApiEngineKey", in.Key), checkText("By", in.By, 200), checkText("Note", in.Note, 2000))
}

// errUnchanged rolls back a save that would change nothing. It never leaves the package.
var errUnchanged = fault.New(fault.Internal, "store: unchanged")

// change makes next the newest version, if want holds. With errUnchanged it returns the
// live version.
func (s *Store) change(ctx context.Context, next Definition, want *int) (Definition, error) {
	err := s.update(ctx, "save definition", func(tx *tx) (err error) {
		if next.Revision, err = tx.nextRevision(); err != nil {
			return err
		}
		if err := tx.tenantExists(next.Tenant); err != nil {
			return err
		}
		head, err := tx.head(next.Tenant, next.Key)
		if err != nil {
			return err
		}
		if err := expect(head, next, want); err != nil {
			return err
		}
		if !next.Deleted && !head.Deleted && bytes.Equal(head.Body, next.Body) {
			next = head
			return errUnchanged
		}
		next.Version, next.SavedAt = head.Version+1, now()
		return tx.insertVersion(next)
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return Definition{}, err
	}
	return next, err
}

// head returns the newest version, or one with Version 0 that counts as deleted.
func (t *tx) head(tenant, key string) (Definition, error) {
	d, err := scanDefinition(t.one("SELECT "+definitionColumns+live+` WHERE d.tenant = $1 AND d.key_lower = $2`,
		tenant, strings.ToLower(key)))
	if errors.Is(err, sql.ErrNoRows) {
		return Definition{Deleted: true}, nil
	}
	return d, err
}

// expect compares the newest version with the one that the caller wants to replace.
func expect(head, next Definition, want *int) error {
	version := head.Version
	if head.Deleted {
		version = 0
	}
	if want != nil && *want != version {
		return &ConflictError{What: "definition", Name: next.Key, Want: *want, Live: version}
	}
	if next.Deleted && head.Deleted {
		return &NotFoundError{What: "definition", Name: next.Key}
	}
	return nil
}

func (t *tx) insertVersion(d Definition) error {
	lower := strings.ToLower(d.Key)
	body := sql.NullString{String: string(d.Body), Valid: !d.Deleted}
	_, err := t.exec(`INSERT INTO {definition_versions}
		(tenant, key_lower, version, key, revision, body, saved_by, saved_at, note)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		d.Tenant, lower, d.Version, d.Key, d.Revision, body, d.SavedBy, d.SavedAt.UnixMicro(), d.Note)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO {definitions} (tenant, key_lower, version, revision) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant, key_lower) DO UPDATE SET version = excluded.version, revision = excluded.revision`,
		d.Tenant, lower, d.Version, d.Revision)
	return err
}

// place names a definition in the database.
type place struct {
	tenant string
	key    string // lower case
}

// locate returns a *NotFoundError for names that nothing can have.
func locate(tenant, key string) (place, error) {
	tenant, err := tenantName(tenant)
	if err != nil || checkName("ApiEngineKey", key) != nil {
		return place{}, &NotFoundError{What: "definition", Name: key}
	}
	return place{tenant, strings.ToLower(key)}, nil
}

// Definition returns the live version, or a *NotFoundError.
func (s *Store) Definition(ctx context.Context, tenant, key string) (Definition, error) {
	at, err := locate(tenant, key)
	if err != nil {
		return Definition{}, err
	}
	d, err := scanDefinition(s.one(ctx, "SELECT "+definitionColumns+live+
		` WHERE d.tenant = $1 AND d.key_lower = $2 AND v.body IS NOT NULL`, at.tenant, at.key))
	return found(ctx, d, err, &NotFoundError{What: "definition", Name: key})
}

// DefinitionVersion returns one version, which may be a deletion, or a *NotFoundError.
func (s *Store) DefinitionVersion(ctx context.Context, tenant, key string, version int) (Definition, error) {
	at, err := locate(tenant, key)
	if err != nil {
		return Definition{}, err
	}
	d, err := scanDefinition(s.one(ctx, "SELECT "+definitionColumns+
		` FROM {definition_versions} v WHERE v.tenant = $1 AND v.key_lower = $2 AND v.version = $3`,
		at.tenant, at.key, version))
	return found(ctx, d, err, &NotFoundError{What: "version", Name: key + "@" + strconv.Itoa(version)})
}

// Definitions returns a tenant's live versions in the order of their keys. An unknown
// tenant has none.
func (s *Store) Definitions(ctx context.Context, tenant string) ([]Definition, error) {
	tenant, err := tenantName(tenant)
	if err != nil {
		return nil, nil
	}
	return collect(ctx, scanDefinition)(s.rows(ctx, "SELECT "+definitionColumns+live+
		` WHERE d.tenant = $1 AND v.body IS NOT NULL ORDER BY d.key_lower`, tenant))
}

// DefinitionVersions returns all versions, the newest first, also of a deleted definition;
// a *NotFoundError when there never was one.
func (s *Store) DefinitionVersions(ctx context.Context, tenant, key string) ([]Definition, error) {
	at, err := locate(tenant, key)
	if err != nil {
		return nil, err
	}
	list, err := collect(ctx, scanDefinition)(s.rows(ctx, "SELECT "+definitionColumns+
		` FROM {definition_versions} v WHERE v.tenant = $1 AND v.key_lower = $2 ORDER BY v.version DESC`,
		at.tenant, at.key))
	if err == nil && list == nil {
		return nil, &NotFoundError{What: "definition", Name: key}
	}
	return list, err
}

// ChangedSince returns the newest version of every definition of every tenant that changed
// after revision, deletions included, in the order of their revisions. A node that follows
// the changes reads Revision first and, when it differs from the one it has, ChangedSince
// its own and the tenants' settings; then it has the one it read.
func (s *Store) ChangedSince(ctx context.Context, revision int64) ([]Definition, error) {
	return collect(ctx, scanDefinition)(s.rows(ctx, "SELECT "+definitionColumns+live+
		` WHERE d.revision > $1 ORDER BY d.revision`, revision))
}

// now is the time as the database keeps it.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }
