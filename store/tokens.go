package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"time"

	"apiengine/fault"
)

// AdminRole is the role of tokens that may use the admin API.
const AdminRole = "admin"

// Token is a stored token; the plain text is not stored, only its SHA-256 hash.
type Token struct {
	ID        string // public; also part of the plain text
	Tenant    string // empty: valid for the whole platform
	Name      string
	Roles     []string   // shared by callers: not to be changed
	Scopes    []string   // what it may do beside calling APIs; shared too
	CreatedAt time.Time  // UTC
	ExpiresAt *time.Time // nil: never
	RevokedAt *time.Time // nil: not revoked
}

// NewToken says what CreateToken shall make.
type NewToken struct {
	Tenant    string // empty: valid for the whole platform
	Name      string // for people, at most 100 bytes
	Roles     []string
	Scopes    []string
	ExpiresAt *time.Time // nil: never; else in the future
}

// NewTokenText returns the plain text of a new token: "aek_", a public id, "_" and 256
// random bits.
func NewTokenText() string {
	id, secret := make([]byte, 10), make([]byte, 32)
	rand.Read(id) // neither fails
	rand.Read(secret)
	return "aek_" + strings.ToLower(base32.StdEncoding.EncodeToString(id)) + "_" +
		base64.RawURLEncoding.EncodeToString(secret)
}

var tokenPattern = regexp.MustCompile(`^aek_([a-z2-7]{16})_[A-Za-z0-9_-]{43}$`)

// tokenID returns the public id inside plain. A token that somebody else thought up (the
// setting --admin-token) has none, so a part of its hash serves.
func tokenID(plain string) string {
	if m := tokenPattern.FindStringSubmatch(plain); m != nil {
		return m[1]
	}
	sum := sha256.Sum256([]byte("apiengine token id:" + plain))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

const tokenColumns = "id, tenant, name, roles, scopes, created_at, expires_at, revoked_at"

// scanToken scans tokenColumns and, after them, what more points to.
func scanToken(row scanner, more ...any) (t Token, err error) {
	var roles, scopes string
	var created int64
	var expires, revoked sql.NullInt64
	err = row.Scan(append([]any{&t.ID, &t.Tenant, &t.Name, &roles, &scopes, &created, &expires, &revoked}, more...)...)
	if err != nil {
		return Token{}, err
	}
	t.CreatedAt, t.ExpiresAt, t.RevokedAt = fromMicros(created), optionalTime(expires), optionalTime(revoked)
	return t, errors.Join(json.Unmarshal([]byte(roles), &t.Roles), json.Unmarshal([]byte(scopes), &t.Scopes))
}

func optionalTime(us sql.NullInt64) *time.Time {
	if !us.Valid {
		return nil
	}
	at := fromMicros(us.Int64)
	return &at
}

// CreateToken makes a token and returns its plain text, which cannot be had again.
func (s *Store) CreateToken(ctx context.Context, in NewToken) (plain string, t Token, err error) {
	if err := in.check(); err != nil {
		return "", Token{}, err
	}
	plain = NewTokenText()
	t = Token{ID: tokenID(plain), Tenant: in.Tenant, Name: in.Name, Roles: in.Roles, Scopes: in.Scopes, CreatedAt: now(), ExpiresAt: in.ExpiresAt}
	err = s.update(ctx, "create token", func(tx *tx) error {
		if t.Tenant != "" {
			if err := tx.tenantExists(t.Tenant); err != nil {
				return err
			}
		}
		_, err := tx.insertToken(t, plain, sql.NullString{})
		return err
	})
	if err != nil {
		return "", Token{}, err
	}
	return plain, t, nil
}

func (in *NewToken) check() (err error) {
	if in.Tenant != "" {
		if in.Tenant, err = tenantName(in.Tenant); err != nil {
			return err
		}
	}
	if err := checkText("Name", in.Name, 100); err != nil {
		return err
	}
	if err := errors.Join(checkNames("Roles", in.Roles), checkNames("Scopes", in.Scopes)); err != nil {
		return err
	}
	if in.ExpiresAt != nil {
		at := in.ExpiresAt.UTC().Truncate(time.Microsecond)
		if in.ExpiresAt = &at; !at.After(time.Now()) {
			return fault.New(fault.BadRequest, "ExpiresAt lies in the past")
		}
	}
	return nil
}

func checkNames(field string, names []string) error {
	for _, n := range names {
		if err := checkText(field, n, 100); err != nil {
			return err
		}
		if n == "" {
			return fault.New(fault.BadRequest, "%s holds an empty name", field)
		}
	}
	return nil
}

// listText is a list as it is stored.
func listText(list []string) (string, error) {
	text, err := json.Marshal(append([]string{}, list...))
	return string(text), err
}

// insertToken reports false when a token of that id or slot exists.
func (t *tx) insertToken(tok Token, plain string, slot sql.NullString) (bool, error) {
	roles, err := listText(tok.Roles)
	if err != nil {
		return false, err
	}
	scopes, err := listText(tok.Scopes)
	if err != nil {
		return false, err
	}
	hash := sha256.Sum256([]byte(plain))
	var expires sql.NullInt64
	if tok.ExpiresAt != nil {
		expires = sql.NullInt64{Int64: tok.ExpiresAt.UnixMicro(), Valid: true}
	}
	n, err := t.exec(`INSERT INTO {tokens} (id, hash, tenant, name, roles, scopes, slot, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		tok.ID, hash[:], tok.Tenant, tok.Name, roles, scopes, slot, tok.CreatedAt.UnixMicro(), expires)
	return n == 1, err
}

// Tokens returns the tokens of one tenant, the newest first; of the tenant "" those for
// the whole platform.
func (s *Store) Tokens(ctx context.Context, tenant string) ([]Token, error) {
	if tenant != "" {
		var err error
		if tenant, err = tenantName(tenant); err != nil {
			return nil, nil
		}
	}
	scan := func(row scanner) (Token, error) { return scanToken(row) }
	return collect(ctx, scan)(s.rows(ctx,
		"SELECT "+tokenColumns+" FROM {tokens} WHERE tenant = $1 ORDER BY created_at DESC, id", tenant))
}

// Token returns one token by its id, or a *NotFoundError.
func (s *Store) Token(ctx context.Context, id string) (Token, error) {
	missing := &NotFoundError{What: "token", Name: id}
	if checkName("token", id) != nil {
		return Token{}, missing
	}
	t, err := scanToken(s.one(ctx, "SELECT "+tokenColumns+" FROM {tokens} WHERE id = $1", id))
	return found(ctx, t, err, missing)
}

// RevokeToken ends a token: at once on this node, within 2 s on the others. Revoking it
// again changes nothing. It returns a *NotFoundError for an unknown id.
func (s *Store) RevokeToken(ctx context.Context, id string) error {
	if checkName("token", id) != nil {
		return &NotFoundError{What: "token", Name: id}
	}
	var hash []byte
	err := s.update(ctx, "revoke token", func(tx *tx) error {
		err := tx.one("UPDATE {tokens} SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 RETURNING hash",
			id, now().UnixMicro()).Scan(&hash)
		if errors.Is(err, sql.ErrNoRows) {
			return &NotFoundError{What: "token", Name: id}
		}
		return err
	})
	// Also after an error: the answer to the commit may be what was lost.
	s.tokens.forget(hash)
	return err
}

// Authenticate returns the token whose plain text is given. An unknown, an expired and a
// revoked token all get the same unauthenticated error. Verified tokens are remembered for
// 2 s, so a call does not cost a query.
func (s *Store) Authenticate(ctx context.Context, plain string) (Token, error) {
	if plain == "" || len(plain) > maxTokenText {
		return Token{}, errToken()
	}
	t, err := s.tokens.get(ctx, sha256.Sum256([]byte(plain)), func(ctx context.Context, hash [32]byte) (Token, error) {
		return s.verify(ctx, tokenID(plain), hash)
	})
	if err != nil {
		return Token{}, classify(ctx, "authenticate", err)
	}
	if t.ExpiresAt != nil && !t.ExpiresAt.After(time.Now()) {
		return Token{}, errToken()
	}
	return t, nil
}

const (
	minTokenText = 16
	maxTokenText = 512
)

// verify looks the token up by its public id and compares hashes in constant time.
func (s *Store) verify(ctx context.Context, id string, hash [32]byte) (Token, error) {
	var stored []byte
	t, err := scanToken(s.one(ctx, "SELECT "+tokenColumns+", hash FROM {tokens} WHERE id = $1", id), &stored)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		stored = make([]byte, len(hash)) // an unknown id costs the same comparison
	case err != nil:
		return Token{}, classify(ctx, "authenticate", err)
	}
	if subtle.ConstantTimeCompare(stored, hash[:]) != 1 || t.ID == "" || t.RevokedAt != nil {
		return Token{}, errToken()
	}
	return t, nil
}

func errToken() error {
	return fault.New(fault.Unauthenticated, "the token is unknown, expired or revoked")
}
