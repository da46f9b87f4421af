package server

import (
	"errors"
	"net/http"
	"strings"

	"apiengine/engine"
	"apiengine/fault"
)

// Identity is who a credential is for. The zero Identity is an anonymous caller.
type Identity struct {
	engine.Caller
	Tenant string   // empty: every tenant
	Scopes []string // what it may do beside calling APIs
	// NoAdmin keeps its roles from counting on the admin API: an issuer's "admin" is the
	// business's, not the platform's.
	NoAdmin bool
}

const (
	tokenPrefix    = "aek_"
	maxCredentials = 8 << 10
)

// identify returns the caller of r. Without a credential that is for this server the
// caller is anonymous; with one that is not good the request is refused, also where an
// API would take anybody: a client that sends a credential believes that it counts. The
// schemes of others (Basic, a payment provider's own) are the script's affair.
func (s *Server) identify(r *http.Request, ip func() string) (Identity, error) {
	plain, given, err := bearer(r.Header)
	if !given || err != nil {
		return Identity{}, err
	}
	id, err := s.authenticate(r, plain)
	if fault.Of(err) == fault.Unauthenticated {
		if wait := s.failures.add(ip()); wait > 0 {
			return Identity{}, refuse(fault.RateLimited, "too many bad credentials from this address").
				with(map[string]any{"RetryAfterMs": wait.Milliseconds()})
		}
	}
	if err != nil {
		return Identity{}, err
	}
	if id.Anonymous() {
		return Identity{}, errors.New("a credential was accepted that names nobody")
	}
	return id, nil
}

func (s *Server) authenticate(r *http.Request, plain string) (Identity, error) {
	switch {
	case len(plain) > maxCredentials:
		return Identity{}, badCredential()
	case strings.HasPrefix(plain, tokenPrefix) && s.cfg.Tokens != nil:
		return s.cfg.Tokens.Authenticate(r.Context(), plain)
	case !strings.HasPrefix(plain, tokenPrefix) && s.jwt != nil:
		return s.jwt.verify(r.Context(), plain)
	}
	return Identity{}, badCredential()
}

// badCredential says the same for every reason: which one it was is nobody's business.
func badCredential() *refusal {
	return refuse(fault.Unauthenticated, "the token is not valid or no longer valid; sign in again")
}

// bearer returns the credential of the Bearer scheme and whether there was one.
func bearer(h http.Header) (plain string, given bool, err error) {
	values := h["Authorization"]
	if len(values) == 0 {
		return "", false, nil
	}
	if len(values) > 1 {
		return "", true, refuse(fault.Unauthenticated, "the request has more than one Authorization header")
	}
	scheme, rest, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false, nil
	}
	return strings.TrimSpace(rest), true, nil
}
