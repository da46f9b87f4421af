package server_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"apiengine/server"
)

// issuer serves keys and signs with them.
type issuer struct {
	srv     *httptest.Server
	rsa     *rsa.PrivateKey
	ec      *ecdsa.PrivateKey
	ed      ed25519.PrivateKey
	fetches atomic.Int64
	down    atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	var err error
	if i.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if i.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if _, i.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	i.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		if i.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		b64 := base64.RawURLEncoding.EncodeToString
		pub, _ := i.ec.PublicKey.Bytes() // 4, X, Y
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{
			{"kty": "RSA", "kid": "rsa", "alg": "RS256", "use": "sig", "n": b64(i.rsa.N.Bytes()), "e": b64(big.NewInt(int64(i.rsa.E)).Bytes())},
			{"kty": "EC", "kid": "ec", "alg": "ES256", "use": "sig", "crv": "P-256", "x": b64(pub[1:33]), "y": b64(pub[33:])},
			{"kty": "OKP", "kid": "ed", "alg": "EdDSA", "use": "sig", "crv": "Ed25519", "x": b64(i.ed.Public().(ed25519.PublicKey))},
		}})
	}))
	t.Cleanup(i.srv.Close)
	return i
}

func (i *issuer) config() *server.JWTConfig {
	return &server.JWTConfig{Issuer: "https://id.example", Audience: "apiengine", JWKSURL: i.srv.URL}
}

// good are the claims of a token that counts.
func good() jwt.MapClaims {
	return jwt.MapClaims{"iss": "https://id.example", "aud": "apiengine", "sub": "u-7", "exp": time.Now().Add(time.Hour).Unix(),
		"roles": []string{"clerk", "admin"}, "name": "Ann", "preferred_username": "ann", "tenant": "acme"}
}

func sign(t *testing.T, m jwt.SigningMethod, kid string, key any, claims jwt.MapClaims) string {
	t.Helper()
	tok := jwt.NewWithClaims(m, claims)
	if kid != "" {
		tok.Header["kid"] = kid
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestJWT(t *testing.T) {
	i := newIssuer(t)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKIXPublicKey(&i.rsa.PublicKey)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	but := func(change func(jwt.MapClaims)) jwt.MapClaims {
		c := good()
		change(c)
		return c
	}
	rs := func(c jwt.MapClaims) string { return sign(t, jwt.SigningMethodRS256, "rsa", i.rsa, c) }
	honest := rs(good())
	parts := strings.Split(honest, ".")
	for _, c := range []struct {
		name, token string
		ok          bool
	}{
		{"RS256", honest, true},
		{"ES256", sign(t, jwt.SigningMethodES256, "ec", i.ec, good()), true},
		{"EdDSA", sign(t, jwt.SigningMethodEdDSA, "ed", i.ed, good()), true},
		{"one of several audiences", rs(but(func(c jwt.MapClaims) { c["aud"] = []string{"x", "apiengine"} })), true},
		{"just over, within the leeway", rs(but(func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-5 * time.Second).Unix() })), true},
		{"alg none", sign(t, jwt.SigningMethodNone, "rsa", jwt.UnsafeAllowNoneSignatureType, good()), false},
		{"HS256 with the public key", sign(t, jwt.SigningMethodHS256, "rsa", public, good()), false},
		{"HS256 with the modulus", sign(t, jwt.SigningMethodHS256, "rsa", i.rsa.N.Bytes(), good()), false},
		{"RS512 with a key for RS256", sign(t, jwt.SigningMethodRS512, "rsa", i.rsa, good()), false},
		{"signed by a stranger", sign(t, jwt.SigningMethodRS256, "rsa", stranger, good()), false},
		{"unknown key id", sign(t, jwt.SigningMethodRS256, "other", stranger, good()), false},
		{"key id of another key", sign(t, jwt.SigningMethodRS256, "ec", i.rsa, good()), false},
		{"expired", rs(but(func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Minute).Unix() })), false},
		{"no exp", rs(but(func(c jwt.MapClaims) { delete(c, "exp") })), false},
		{"exp is a text", rs(but(func(c jwt.MapClaims) { c["exp"] = "never" })), false},
		{"not yet", rs(but(func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(time.Minute).Unix() })), false},
		{"other audience", rs(but(func(c jwt.MapClaims) { c["aud"] = "shop" })), false},
		{"no audience", rs(but(func(c jwt.MapClaims) { delete(c, "aud") })), false},
		{"other issuer", rs(but(func(c jwt.MapClaims) { c["iss"] = "https://id.example.evil" })), false},
		{"no issuer", rs(but(func(c jwt.MapClaims) { delete(c, "iss") })), false},
		{"no subject", rs(but(func(c jwt.MapClaims) { delete(c, "sub") })), false},
		{"subject is a number", rs(but(func(c jwt.MapClaims) { c["sub"] = 7 })), false},
		{"changed claims", parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"root"}`)) + "." + parts[2], false},
		{"no signature", parts[0] + "." + parts[1] + ".", false},
		{"rubbish", "abc", false},
		{"dots", "..", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &fakeEngine{}
			h := newServer(t, server.Config{Engine: e, JWT: i.config()}).Handler()
			g := do(t, h, ask{target: "/apiengine/k", header: []string{"Authorization: Bearer " + c.token}})
			call, n := e.seen()
			if !c.ok {
				if g.status != 401 || n != 0 || g.envelope(t).Code != 1001 {
					t.Errorf("%d %s", g.status, g.body)
				}
				return
			}
			if g.status != 200 || call.Caller.ID != "u-7" || call.Caller.Name != "Ann" || call.Caller.Account != "ann" ||
				!slices.Equal(call.Caller.Roles, []string{"clerk", "admin"}) || call.Tenant != "default" {
				t.Errorf("%d %s: %+v", g.status, g.body, call)
			}
		})
	}
}

func TestJWTTenantAndRights(t *testing.T) {
	i := newIssuer(t)
	bearer := func(c jwt.MapClaims) []string {
		return []string{"Authorization: Bearer " + sign(t, jwt.SigningMethodRS256, "rsa", i.rsa, c)}
	}
	cfg := i.config()
	cfg.TenantClaim = "tenant"
	e := &fakeEngine{}
	admin := server.Admin{SQL: fakeSQL{&said{}}}
	h := newServer(t, server.Config{Engine: e, JWT: cfg, Admin: admin}).Handler()
	if g := do(t, h, ask{target: "/apiengine/k", header: bearer(good())}); g.status != 200 {
		t.Fatalf("%d %s", g.status, g.body)
	}
	if call, _ := e.seen(); call.Tenant != "acme" {
		t.Errorf("tenant %q", call.Tenant)
	}
	if g := do(t, h, ask{target: "/apiengine/k?OsClient=other", header: bearer(good())}); g.status != 403 || g.envelope(t).Code != 1002 {
		t.Errorf("another tenant: %d", g.status)
	}
	without := good()
	delete(without, "tenant") // must not become a token of every tenant
	if g := do(t, h, ask{target: "/apiengine/k", header: bearer(without)}); g.status != 401 {
		t.Errorf("without the claim: %d", g.status)
	}
	sql := ask{method: "POST", target: server.AdminPrefix + "/sql", body: `{"Sql":"select 1"}`, header: append(bearer(good()), ctJSON)}
	if g := do(t, h, sql); g.status != 403 {
		t.Errorf("an issuer's admin became ours: %d %s", g.status, g.body)
	}
	cfg.AdminAPI = true
	if g := do(t, newServer(t, server.Config{JWT: cfg, Admin: admin}).Handler(), sql); g.status != 200 {
		t.Errorf("AdminAPI: %d %s", g.status, g.body)
	}
}

func TestJWTKeysAreCachedAndSurviveTheIssuer(t *testing.T) {
	i := newIssuer(t)
	h := newServer(t, server.Config{JWT: i.config()}).Handler()
	a := ask{target: "/apiengine/k", header: []string{"Authorization: Bearer " + sign(t, jwt.SigningMethodRS256, "rsa", i.rsa, good())}}
	i.down.Store(true)
	for range 5 {
		if g := do(t, h, a); g.status != 200 {
			t.Fatalf("%d %s", g.status, g.body)
		}
	}
	a.header = []string{"Authorization: Bearer " + sign(t, jwt.SigningMethodRS256, "made-up", i.rsa, good())}
	start := time.Now()
	for range 20 {
		if g := do(t, h, a); g.status != 401 && g.status != 429 {
			t.Fatalf("%d %s", g.status, g.body)
		}
	}
	if n := i.fetches.Load(); n > 2 || time.Since(start) > 5*time.Second {
		t.Errorf("made-up key ids made %d fetches in %v", n, time.Since(start))
	}
}

func TestJWTConfig(t *testing.T) {
	base := server.JWTConfig{Issuer: "i", Audience: "a", JWKSURL: "https://id.example/keys"}
	for want, change := range map[string]func(*server.JWTConfig){
		"Issuer":     func(c *server.JWTConfig) { c.Issuer = "" },
		"Audience":   func(c *server.JWTConfig) { c.Audience = "" },
		"JWKSURL":    func(c *server.JWTConfig) { c.JWKSURL = "keys" },
		"https":      func(c *server.JWTConfig) { c.JWKSURL = "http://id.example/keys" },
		"Algorithms": func(c *server.JWTConfig) { c.Algorithms = []string{"HS256"} },
		`"none"`:     func(c *server.JWTConfig) { c.Algorithms = []string{"none"} },
		"Leeway":     func(c *server.JWTConfig) { c.Leeway = -1 },
	} {
		cfg := base
		change(&cfg)
		_, err := server.New(server.Config{Engine: &fakeEngine{}, JWT: &cfg, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
