package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"apiengine/fault"
)

// maxSecret is the longest value of a secret, in bytes.
const maxSecret = 64 << 10

// SetSecret stores a tenant's secret encrypted, replacing an older value. Names are of the
// pattern of API keys, and their case counts. Values hold at most 64 KiB.
func (s *Store) SetSecret(ctx context.Context, tenant, name, value string) error {
	tenant, err := tenantName(tenant)
	if err != nil {
		return err
	}
	if err := checkName("secret", name); err != nil {
		return err
	}
	if len(value) > maxSecret {
		return fault.New(fault.BadRequest, "the secret %q is longer than %d bytes", name, maxSecret)
	}
	if s.sealer == nil {
		return errNoKey()
	}
	sealed := s.sealer.seal(tenant, name, value)
	return s.update(ctx, "set secret", func(tx *tx) error {
		if err := tx.touchTenant(tenant); err != nil {
			return err
		}
		_, err := tx.exec(`INSERT INTO {secrets} (tenant, name, key_id, sealed, updated_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (tenant, name) DO UPDATE
			SET key_id = excluded.key_id, sealed = excluded.sealed, updated_at = excluded.updated_at`,
			tenant, name, s.sealer.keyID, sealed, now().UnixMicro())
		return err
	})
}

// Secret returns a secret's value, or a *NotFoundError. A value stored under another
// secret key is an error that says so.
func (s *Store) Secret(ctx context.Context, tenant, name string) (string, error) {
	tenant, err := tenantName(tenant)
	if err != nil || checkName("secret", name) != nil {
		return "", &NotFoundError{What: "secret", Name: name}
	}
	var keyID string
	var sealed []byte
	err = s.one(ctx, "SELECT key_id, sealed FROM {secrets} WHERE tenant = $1 AND name = $2", tenant, name).Scan(&keyID, &sealed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", &NotFoundError{What: "secret", Name: name}
	case err != nil:
		return "", classify(ctx, "secret", err)
	case s.sealer == nil:
		return "", errNoKey()
	case keyID != s.sealer.keyID:
		return "", fault.New(fault.Internal, "the secret %q was stored under another secret key", name)
	}
	return s.sealer.open(tenant, name, sealed)
}

// SecretNames returns the names of a tenant's secrets in order.
func (s *Store) SecretNames(ctx context.Context, tenant string) ([]string, error) {
	tenant, err := tenantName(tenant)
	if err != nil {
		return nil, nil
	}
	scan := func(row scanner) (name string, err error) { return name, row.Scan(&name) }
	return collect(ctx, scan)(s.rows(ctx, "SELECT name FROM {secrets} WHERE tenant = $1 ORDER BY name", tenant))
}

// DeleteSecret removes a secret, or returns a *NotFoundError.
func (s *Store) DeleteSecret(ctx context.Context, tenant, name string) error {
	missing := &NotFoundError{What: "secret", Name: name}
	tenant, err := tenantName(tenant)
	if err != nil || checkName("secret", name) != nil {
		return missing
	}
	return s.update(ctx, "delete secret", func(tx *tx) error {
		if err := tx.touchTenant(tenant); err != nil {
			return err
		}
		n, err := tx.exec("DELETE FROM {secrets} WHERE tenant = $1 AND name = $2", tenant, name)
		if err == nil && n == 0 {
			return missing
		}
		return err
	})
}

func errNoKey() error {
	return fault.New(fault.Internal, "secrets need a secret key (setting --secret-key), and none is set")
}

// sealer encrypts with AES-256-GCM.
type sealer struct {
	aead  cipher.AEAD
	keyID string // tells one key from another and nothing about it
}

// sealFormat is the first byte of a sealed value: nonce, then text, follow.
const sealFormat = 1

// newSealer returns nil without a key.
func newSealer(key []byte) (*sealer, error) {
	if len(key) == 0 {
		return nil, nil
	}
	if len(key) != 32 {
		return nil, fmt.Errorf("store: Config.SecretKey has %d bytes, want 32", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("store: Config.SecretKey: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("store: Config.SecretKey: %w", err)
	}
	sum := sha256.Sum256(append([]byte("apiengine secret key id:"), key...))
	return &sealer{aead: aead, keyID: hex.EncodeToString(sum[:8])}, nil
}

func (s *sealer) seal(tenant, name, value string) []byte {
	out := make([]byte, 1+s.aead.NonceSize(), 1+s.aead.NonceSize()+len(value)+s.aead.Overhead())
	out[0] = sealFormat
	rand.Read(out[1:]) // never fails
	return s.aead.Seal(out, out[1:], []byte(value), owner(tenant, name))
}

func (s *sealer) open(tenant, name string, sealed []byte) (string, error) {
	n := s.aead.NonceSize()
	if len(sealed) < 1+n || sealed[0] != sealFormat {
		return "", fault.New(fault.Internal, "the stored secret %q is damaged", name)
	}
	value, err := s.aead.Open(nil, sealed[1:1+n], sealed[1+n:], owner(tenant, name))
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "the stored secret %q is damaged", name)
	}
	return string(value), nil
}

// owner binds a sealed value to its place, so that one copied to another row does not
// open. Neither part can hold a NUL.
func owner(tenant, name string) []byte { return []byte(tenant + "\x00" + name) }
