package server

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/tidwall/gjson"

	"apiengine/engine"
	"apiengine/fault"
)

// methodList is what an API can be called with.
const methodList = "GET, POST, PUT, PATCH, DELETE"

// call is the data plane: any path that is nobody else's.
func (x *exchange) call() reply {
	x.always200 = x.s.cfg.Always200
	if x.s.draining.Load() {
		x.set("Connection", "close")
		return x.fail(refuse(fault.Draining, "the server is shutting down"))
	}
	t, query, err := x.read()
	if err != nil {
		return x.fail(err)
	}
	if x.r.Method == http.MethodOptions {
		return x.preflight(t, query)
	}
	id, tenant, err := x.admit(t.tenant, query)
	x.cors(tenant, t)
	if err != nil {
		return x.fail(err)
	}
	c, err := x.compose(t, query)
	if err != nil {
		return x.fail(err)
	}
	c.Tenant, c.Caller = tenant, id.Caller
	c.Accept = func(res *engine.Result) error { return x.accept(res, c.IdempotencyKey != "") }
	x.admin = id.may(RoleAdmin)
	res, err := x.s.cfg.Engine.Invoke(x.r.Context(), c)
	x.record(res)
	if err != nil {
		return x.fail(err)
	}
	return x.answer(res)
}

// read reads what the request line says.
func (x *exchange) read() (target, url.Values, error) {
	t, err := targetOf(x.r.URL)
	if err != nil {
		return t, nil, err
	}
	query, err := queryOf(x.r.URL)
	return t, query, err
}

// admit says who calls in which tenant. The tenant it returns beside an error is good
// for CORS only.
func (x *exchange) admit(suffix string, query url.Values) (Identity, string, error) {
	id, err := x.s.identify(x.r, x.clientIP)
	tenant, terr := resolveTenant(suffix, query, x.r.Header, id)
	if err != nil {
		return id, tenant, err
	}
	return id, tenant, terr
}

// compose makes the Call, all but who and where.
func (x *exchange) compose(t target, query url.Values) (engine.Call, error) {
	r := x.r
	method, err := x.method(t)
	if err != nil {
		return engine.Call{}, err
	}
	once, err := idempotencyKey(r.Header)
	if err != nil {
		return engine.Call{}, err
	}
	p, err := x.readParams(query)
	if err != nil {
		return engine.Call{}, err
	}
	if t.run {
		if t.key, err = keyInBody(p.object); err != nil {
			return engine.Call{}, err
		}
	}
	return engine.Call{
		Key: t.key, Path: cmp.Or(t.path, r.URL.EscapedPath()), Method: method, Param: p.object, Files: p.files,
		Header: headerMap(r), Origin: engine.OriginHTTP, RequestID: x.requestID, ClientIP: x.clientIP(),
		IdempotencyKey: once,
	}, nil
}

func (x *exchange) method(t target) (string, error) {
	switch m := x.r.Method; m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		if t.run && m != http.MethodPost {
			return "", wrongMethod(m, "POST")
		}
		return m, nil
	default:
		return "", wrongMethod(m, methodList)
	}
}

func wrongMethod(method, allow string) error {
	e := refuse(fault.MethodNotAllowed, "%s is not allowed here; allowed: %s", method, allow)
	e.allow = allow
	return e
}

// wrongMethodIn answers for paths below prefix that tree has with other methods.
func wrongMethodIn(tree chi.Routes, prefix string) func(*exchange) reply {
	return func(x *exchange) reply {
		var allowed []string
		for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
			if tree.Match(chi.NewRouteContext(), m, strings.TrimPrefix(x.r.URL.EscapedPath(), prefix)) {
				allowed = append(allowed, m)
			}
		}
		return x.fail(wrongMethod(x.r.Method, cmp.Or(strings.Join(allowed, ", "), methodList)))
	}
}

func keyInBody(object []byte) (string, error) {
	v := gjson.GetBytes(object, "ApiEngineKey")
	if v.Type != gjson.String || v.Str == "" {
		return "", refuse(fault.BadRequest, "the body must name the API in ApiEngineKey").
			with(map[string]any{"Field": "ApiEngineKey"})
	}
	return v.Str, nil
}

// headerMap is V8.Header. Our own credential stays out: a script must not be able to act
// as its caller elsewhere.
func headerMap(r *http.Request) map[string]string {
	m := make(map[string]string, len(r.Header)+1)
	for k, v := range r.Header {
		switch {
		case len(v) == 1:
			m[k] = v[0]
		case len(v) > 1:
			m[k] = joinHeader(k, v)
		}
	}
	if _, ours, _ := bearer(r.Header); ours {
		delete(m, "Authorization")
	}
	m["Host"] = r.Host
	return m
}

func joinHeader(name string, values []string) string {
	sep := ", "
	if name == "Cookie" {
		sep = "; "
	}
	out := values[0]
	for _, v := range values[1:] {
		out += sep + v
	}
	return out
}

func (x *exchange) clientIP() string { return x.s.clientIP(x.r) }
