package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"

	"apiengine/engine"
)

// JWTConfig is one issuer whose tokens count. Issuer, Audience and JWKSURL are required.
type JWTConfig struct {
	Issuer       string // compared with iss, byte for byte
	Audience     string // must be in aud
	JWKSURL      string // https, or http to a loopback address
	RolesClaim   string // an array of names, or one text of names parted by spaces; default "roles"
	TenantClaim  string // empty: every token belongs to Tenant; else a token without it is refused
	Tenant       string // default "default"
	AccountClaim string // default "preferred_username"
	NameClaim    string // default "name"
	// AdminAPI lets the roles admin, author and viewer of the issuer count on the admin
	// API, where they may store code. Default false.
	AdminAPI   bool
	Algorithms []string      // default RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA
	Leeway     time.Duration // for exp and nbf; default 30 s
	Refresh    time.Duration // of the keys; default 1 h; an unknown key id asks at once, at most once a minute
}

// asymmetric are all algorithms that can be configured: with a shared secret or "none"
// whoever knows the public keys could sign.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func (c *JWTConfig) fill() {
	c.RolesClaim = cmp.Or(c.RolesClaim, "roles")
	c.Tenant = cmp.Or(c.Tenant, defaultTenant)
	c.AccountClaim = cmp.Or(c.AccountClaim, "preferred_username")
	c.NameClaim = cmp.Or(c.NameClaim, "name")
	c.Leeway = cmp.Or(c.Leeway, 30*time.Second)
	c.Refresh = cmp.Or(c.Refresh, time.Hour)
	if len(c.Algorithms) == 0 {
		c.Algorithms = asymmetric
	}
}

func (c *JWTConfig) check() error {
	u, err := url.Parse(c.JWKSURL)
	switch {
	case c.Issuer == "":
		return errors.New("Config.JWT.Issuer is missing")
	case c.Audience == "":
		return errors.New("Config.JWT.Audience is missing")
	case err != nil || u.Host == "":
		return errors.New("Config.JWT.JWKSURL is no address")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return errors.New("Config.JWT.JWKSURL must be https, or http to a loopback address")
	case c.Leeway < 0 || c.Refresh < 0:
		return errors.New("Config.JWT.Leeway and Refresh must not be negative")
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(asymmetric, a) {
			return fmt.Errorf("Config.JWT.Algorithms: %q is not one of %s", a, strings.Join(asymmetric, " "))
		}
	}
	return nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// verifier checks tokens of one issuer. Its keys are fetched in the background by a
// goroutine of keyfunc's that ends with close.
type verifier struct {
	cfg    JWTConfig
	parser *jwt.Parser
	keys   keyfunc.Keyfunc
	close  context.CancelFunc
}

func newVerifier(cfg JWTConfig, log *slog.Logger) (*verifier, error) {
	cfg.fill()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	keys, err := keyfunc.NewDefaultOverrideCtx(ctx, []string{cfg.JWKSURL}, keyfunc.Override{
		Client:            &http.Client{CheckRedirect: noRedirect},
		HTTPTimeout:       5 * time.Second,
		RefreshInterval:   cfg.Refresh,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(time.Minute), 1),
		RateLimitWaitMax:  time.Millisecond, // a made-up key id must not keep a request waiting
		RefreshErrorHandlerFunc: func(u string) func(context.Context, error) {
			return func(ctx context.Context, err error) {
				log.ErrorContext(ctx, "the issuer's keys cannot be fetched", "url", u, "error", err)
			}
		},
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("Config.JWT: %w", err)
	}
	return &verifier{cfg: cfg, keys: keys, close: cancel, parser: jwt.NewParser(
		jwt.WithValidMethods(cfg.Algorithms),
		jwt.WithIssuer(cfg.Issuer),
		jwt.WithAudience(cfg.Audience),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(cfg.Leeway),
		jwt.WithStrictDecoding(),
	)}, nil
}

func noRedirect(*http.Request, []*http.Request) error {
	return errors.New("the address of the keys must not redirect")
}

// verify returns who a token is for, or the one error of every bad token; the reason is
// its cause, for the log.
func (v *verifier) verify(ctx context.Context, plain string) (Identity, error) {
	claims := jwt.MapClaims{}
	if _, err := v.parser.ParseWithClaims(plain, claims, v.keys.KeyfuncCtx(ctx)); err != nil {
		return Identity{}, because(err)
	}
	subject, err := claims.GetSubject()
	if err != nil || subject == "" {
		return Identity{}, because(errors.New("no sub"))
	}
	tenant := v.cfg.Tenant
	if v.cfg.TenantClaim != "" {
		tenant, _ = claims[v.cfg.TenantClaim].(string)
		if !saneTenant(tenant) {
			return Identity{}, because(fmt.Errorf("no usable %s", v.cfg.TenantClaim))
		}
	}
	id := Identity{Tenant: tenant, NoAdmin: !v.cfg.AdminAPI, Caller: engine.Caller{ID: subject, Issuer: v.cfg.Issuer, Roles: names(claims[v.cfg.RolesClaim])}}
	id.Scopes = append(names(claims["scope"]), names(claims["scp"])...)
	id.Account, _ = claims[v.cfg.AccountClaim].(string)
	id.Name, _ = claims[v.cfg.NameClaim].(string)
	return id, nil
}

func because(err error) error {
	e := badCredential()
	e.cause = fmt.Errorf("jwt: %w", err)
	return e
}

// names reads a claim that is an array of texts, or one text of several.
func names(v any) []string {
	switch c := v.(type) {
	case string:
		return strings.Fields(c)
	case []any:
		var out []string
		for _, n := range c {
			if s, ok := n.(string); ok && s != "" {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}
