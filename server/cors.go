package server

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"apiengine/apis"
	"apiengine/fault"
)

const exposed = "X-Request-Id, X-Execution-Id, X-Fencing-Token, X-Lock-Wait-Ms, Idempotency-Replayed, Retry-After, RateLimit, RateLimit-Policy"

// cors lets a browser of an allowed origin read the answer, be it a refusal. It never
// allows credentials: tokens travel in a header that the page sets itself.
func (x *exchange) cors(tenant string, t target) {
	origin := x.r.Header.Get("Origin")
	if origin == "" || t.run {
		return // the key is in the body that a preflight has not: the Run address has no CORS
	}
	if d, ok := x.s.cfg.Engine.Describe(tenant, t.key, t.path); ok {
		x.allowOrigin(origin, d.Cors)
	}
}

func (x *exchange) allowOrigin(origin string, allowed []string) bool {
	switch {
	case len(allowed) == 0:
		return false
	case slices.Contains(allowed, "*"):
		x.set("Access-Control-Allow-Origin", "*")
	case slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, origin) }):
		x.set("Vary", "Origin")
		x.set("Access-Control-Allow-Origin", origin)
	default:
		x.set("Vary", "Origin")
		return false
	}
	x.set("Access-Control-Expose-Headers", exposed)
	return true
}

// preflight answers OPTIONS. A preflight carries no token and no header of the later
// call, so only the path suffix and the query can name its tenant.
func (x *exchange) preflight(t target, query url.Values) reply {
	tenant, err := resolveTenant(t.tenant, query, http.Header{}, Identity{})
	if err != nil {
		return x.fail(err)
	}
	if t.run {
		x.set("Allow", "POST, OPTIONS")
		return reply{status: http.StatusNoContent}
	}
	d, ok := x.s.cfg.Engine.Describe(tenant, t.key, t.path)
	if !ok {
		return x.fail(refuse(fault.NotFound, "there is no API at %s", cmp.Or(t.path, t.key)))
	}
	methods := allowedMethods(d)
	x.set("Allow", methods)
	origin := x.r.Header.Get("Origin")
	if origin != "" && x.allowOrigin(origin, d.Cors) {
		x.set("Access-Control-Allow-Methods", methods)
		x.set("Access-Control-Max-Age", "600")
		if asked := x.r.Header.Get("Access-Control-Request-Headers"); asked != "" && headerNames(asked) {
			x.set("Access-Control-Allow-Headers", asked)
		}
	}
	return reply{status: http.StatusNoContent}
}

func allowedMethods(d apis.Definition) string {
	list := methodList
	if len(d.Methods) > 0 {
		list = strings.Join(d.Methods, ", ")
	}
	if len(d.Methods) == 0 || slices.Contains(d.Methods, "GET") { // HEAD is a GET without its body
		list += ", HEAD"
	}
	return list + ", OPTIONS"
}

// headerNames reports whether s is a list of header names and nothing else.
func headerNames(s string) bool {
	for _, name := range strings.Split(s, ",") {
		if name = strings.TrimSpace(name); name == "" || !isToken(name) {
			return false
		}
	}
	return len(s) <= 1024
}
