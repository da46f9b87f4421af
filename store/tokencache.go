package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"
)

// tokenTTL is how long a verified token is believed without asking the database; the
// longest time that a token revoked on another node goes on working.
const tokenTTL = 2 * time.Second

// tokenCache remembers verified tokens by the hash of their text. Failures are not
// remembered. Callers with one token that is not remembered share one query.
type tokenCache struct {
	verified *otter.Cache[[32]byte, Token]
}

func newTokenCache() (*tokenCache, error) {
	c, err := otter.New(&otter.Options[[32]byte, Token]{
		MaximumSize:      10_000,
		ExpiryCalculator: otter.ExpiryWriting[[32]byte, Token](tokenTTL),
		Logger:           &otter.NoopLogger{},
	})
	if err != nil {
		return nil, fmt.Errorf("store: token cache: %w", err)
	}
	return &tokenCache{verified: c}, nil
}

func (c *tokenCache) get(ctx context.Context, hash [32]byte, load func(context.Context, [32]byte) (Token, error)) (Token, error) {
	return c.verified.Get(ctx, hash, otter.LoaderFunc[[32]byte, Token](load))
}

// forget drops the token with that hash. What a lookup under way finds is not kept either.
func (c *tokenCache) forget(hash []byte) {
	if len(hash) == sha256.Size {
		c.verified.Invalidate([sha256.Size]byte(hash))
	}
}

// clear forgets all that is verified by now.
func (c *tokenCache) clear() { c.verified.InvalidateAll() }

func (c *tokenCache) close() { c.verified.StopAllGoroutines() }
