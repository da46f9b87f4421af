package store

import (
	"context"
	"crypto/sha256"
	"database/sql"

	"apiengine/fault"
)

// The two slots of the tokens table; its unique column lets one token into each.
const (
	slotBootstrap  = "bootstrap"
	slotConfigured = "configured"
)

// BootstrapAdminToken makes plain (from NewTokenText) the admin token of the first start.
// It reports whether plain is that token: of nodes that start at once exactly one is told
// true. A node writes plain to its file first, calls this, and removes the file when told
// false; after a crash in between it calls again with the text in the file, and is told
// the same as before.
func (s *Store) BootstrapAdminToken(ctx context.Context, plain string) (mine bool, err error) {
	if err := checkAdminToken(plain); err != nil {
		return false, err
	}
	t := adminToken(plain, "first start")
	err = s.update(ctx, "bootstrap token", func(tx *tx) error {
		inserted, err := tx.insertToken(t, plain, sql.NullString{String: slotBootstrap, Valid: true})
		if err != nil || inserted {
			mine = inserted
			return err
		}
		hash := sha256.Sum256([]byte(plain))
		var n int
		err = tx.one("SELECT count(*) FROM {tokens} WHERE slot = $1 AND hash = $2", slotBootstrap, hash[:]).Scan(&n)
		mine = n == 1
		return err
	})
	if err != nil {
		return false, err
	}
	return mine, nil
}

// EnsureAdminToken makes plain, the text of a setting, a valid admin token of the whole
// platform, also when it was revoked. The token that the setting held before is revoked.
// Texts under 16 characters are refused: they could be guessed from the stored hash.
func (s *Store) EnsureAdminToken(ctx context.Context, plain string) error {
	if err := checkAdminToken(plain); err != nil {
		return err
	}
	t := adminToken(plain, "setting --admin-token")
	hash := sha256.Sum256([]byte(plain))
	err := s.update(ctx, "ensure admin token", func(tx *tx) error {
		if err := tx.serialise(); err != nil {
			return err
		}
		if _, err := tx.exec(`UPDATE {tokens} SET slot = NULL, revoked_at = COALESCE(revoked_at, $3)
			WHERE slot = $1 AND id <> $2`, slotConfigured, t.ID, now().UnixMicro()); err != nil {
			return err
		}
		inserted, err := tx.insertToken(t, plain, sql.NullString{String: slotConfigured, Valid: true})
		if err != nil || inserted {
			return err
		}
		// It is stored already: by an earlier start, as the bootstrap token, or by hand.
		n, err := tx.exec(`UPDATE {tokens} SET revoked_at = NULL, expires_at = NULL, tenant = '',
			roles = '["`+AdminRole+`"]', slot = COALESCE(slot, $1) WHERE id = $2 AND hash = $3`,
			slotConfigured, t.ID, hash[:])
		if err == nil && n == 0 {
			return fault.New(fault.BadRequest, "the admin token has the id of another token; choose another text")
		}
		return err
	})
	s.tokens.clear()
	return err
}

func checkAdminToken(plain string) error {
	if len(plain) < minTokenText {
		return fault.New(fault.BadRequest, "the admin token is shorter than %d characters", minTokenText)
	}
	return checkText("the admin token", plain, maxTokenText)
}

func adminToken(plain, name string) Token {
	return Token{ID: tokenID(plain), Name: name, Roles: []string{AdminRole}, CreatedAt: now()}
}
