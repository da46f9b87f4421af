package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	jsonv2 "github.com/go-json-experiment/json"

	"apiengine/fault"
)

// AdminPrefix is where the admin API lives.
const AdminPrefix = "/admin/api/v1"

// route is one entry of the admin API. A route without a role is refused when the server
// is made, so none can be forgotten.
type route struct {
	method, path string
	role         Role
	scope        scope
	do           func(*adminCall) (answer, error)
}

// scope says where a route's tenant comes from.
type scope int

const (
	ofTenant scope = iota // as everywhere: query, header, token, default
	ofPath                // the {tenant} of its path
	ofAll                 // none: only for tokens of every tenant
)

// adminCall is one request after it was let in.
type adminCall struct {
	x      *exchange
	ctx    context.Context
	id     Identity
	tenant string
}

// answer is a success: Data of the envelope.
type answer struct {
	status int    // default 200
	data   any    // nil: no Data
	etag   string // without quotes; empty: none
}

func (s *Server) adminRoutes() []route {
	a := s.cfg.Admin
	var all []route
	if a.Definitions != nil {
		all = append(all, definitionRoutes(a.Definitions)...)
	}
	all = append(all, runRoutes(s.cfg.Engine)...)
	if a.Planner != nil {
		all = append(all, planRoutes(a.Planner)...)
	}
	if a.Schema != nil {
		all = append(all, schemaRoutes(a.Schema)...)
	}
	if a.SQL != nil {
		all = append(all, sqlRoutes(a.SQL)...)
	}
	if a.Tokens != nil {
		all = append(all, tokenRoutes(a.Tokens)...)
	}
	if a.Tenants != nil {
		all = append(all, tenantRoutes(a.Tenants)...)
	}
	if a.Secrets != nil {
		all = append(all, secretRoutes(a.Secrets)...)
	}
	if a.Outbox != nil {
		all = append(all, outboxRoutes(a.Outbox)...)
	}
	if a.Egress != nil {
		all = append(all, egressRoutes(a.Egress)...)
	}
	if a.Databases != nil {
		all = append(all, databaseRoutes(a.Databases)...)
	}
	if a.Locks != nil {
		all = append(all, lockRoutes(a.Locks)...)
	}
	if a.Audit != nil {
		all = append(all, auditRoutes(a.Audit)...)
	}
	return all
}

// mountAdmin gives the admin API a tree of its own: what is not in the table must not
// reach the data plane.
func (s *Server) mountAdmin(m chi.Router) {
	nothing := s.handle(func(x *exchange) reply {
		return x.fail(refuse(fault.NotFound, "there is nothing at %s", x.r.URL.Path))
	})
	api := chi.NewRouter()
	api.NotFound(nothing)
	api.MethodNotAllowed(s.handle(wrongMethodIn(api, AdminPrefix)))
	for _, r := range s.adminRoutes() {
		api.Method(r.method, r.path, s.handle(func(x *exchange) reply { return x.administer(r) }))
	}
	m.Mount(AdminPrefix, api)
	m.Handle("/admin", nothing)
	m.Handle("/admin/*", nothing)
}

// administer lets a request in, or not, and sends what its route answers.
func (x *exchange) administer(r route) reply {
	c, err := x.enter(r)
	if err != nil {
		return x.fail(err)
	}
	a, err := r.do(c)
	if err != nil {
		return x.fail(err)
	}
	return x.success(a)
}

func (x *exchange) enter(r route) (*adminCall, error) {
	query, err := plainQuery(x.r.URL)
	if err != nil {
		return nil, err
	}
	id, err := x.s.identify(x.r, x.clientIP)
	switch {
	case err != nil:
		return nil, err
	case id.Anonymous():
		return nil, refuse(fault.Unauthenticated, "the admin API needs a token")
	case r.role == 0 || !id.may(r.role):
		return nil, refuse(fault.Forbidden, "this needs the role %s", r.role)
	case r.scope == ofAll && id.Tenant != "":
		return nil, refuse(fault.Forbidden, "this needs a token that is for every tenant")
	}
	named := ""
	if r.scope == ofPath {
		if named = x.param("tenant"); !saneTenant(named) {
			return nil, refuse(fault.NotFound, "there is no tenant %q", named)
		}
	}
	tenant, err := resolveTenant(named, query, x.r.Header, id)
	if err != nil {
		return nil, err
	}
	x.admin = id.may(RoleAdmin)
	return &adminCall{x: x, ctx: x.r.Context(), id: id, tenant: tenant}, nil
}

// success writes {"Code":1,"Data":...}.
func (x *exchange) success(a answer) reply {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.etag != "" {
		tag := strconv.Quote(a.etag)
		x.set("Etag", tag)
		if x.r.Method == http.MethodGet && x.r.Header.Get("If-None-Match") == tag {
			return reply{status: http.StatusNotModified}
		}
	}
	x.set("Cache-Control", "no-store")
	if a.data == nil {
		return reply{a.status, typeJSON, []byte(`{"Code":1}`)}
	}
	data, err := json.Marshal(a.data)
	if err != nil {
		return x.fail(err)
	}
	body := append([]byte(`{"Code":1,"Data":`), data...)
	return reply{a.status, typeJSON, append(body, '}')}
}

// param is a {name} of the route's path.
func (x *exchange) param(name string) string {
	raw := chi.URLParam(x.r, name)
	if x.r.URL.RawPath == "" {
		return raw // chi matched the decoded path
	}
	if plain, err := url.PathUnescape(raw); err == nil {
		return plain
	}
	return raw
}

func (c *adminCall) param(name string) string { return c.x.param(name) }

// number is a {name} of the path that is a whole number from 1.
func (c *adminCall) number(name string) (int, error) {
	n, err := strconv.Atoi(c.param(name))
	if err != nil || n < 1 {
		return 0, refuse(fault.BadRequest, "%q is no version: a version is a whole number from 1", c.param(name))
	}
	return n, nil
}

// rawBody is the request body, which must be a JSON object sent as JSON: the content
// type is what a page of another origin cannot send without being asked (S41).
func (c *adminCall) rawBody() ([]byte, error) {
	media, _, err := mime.ParseMediaType(c.x.r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, refuse(fault.BadRequest, "the body must be sent as Content-Type: application/json")
	}
	b, err := c.x.readBody()
	if err == nil && b.object == nil {
		err = refuse(fault.BadRequest, "the body is missing: a JSON object is needed")
	}
	return b.object, err
}

// decode reads the body into v strictly: an unknown field is refused by its name.
func (c *adminCall) decode(v any) error {
	raw, err := c.rawBody()
	if err != nil {
		return err
	}
	return strict(raw, v)
}

func strict(raw []byte, v any) error {
	err := jsonv2.Unmarshal(raw, v, jsonv2.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	var sem *jsonv2.SemanticError
	if !errors.As(err, &sem) {
		return refuse(fault.BadRequest, "the body cannot be read: %v", err)
	}
	field := strings.ReplaceAll(strings.TrimPrefix(string(sem.JSONPointer), "/"), "/", ".")
	details := position(raw, int(sem.ByteOffset))
	details["Field"] = field
	if errors.Is(err, jsonv2.ErrUnknownName) {
		return refuse(fault.BadRequest, "there is no field %s here", field).with(details)
	}
	if sem.GoType == reflect.TypeFor[time.Time]() {
		return refuse(fault.BadRequest, "the field %s must be a time like 2026-01-02T15:04:05Z, not %s", field, jsonKind(sem)).with(details)
	}
	return refuse(fault.BadRequest, "the field %s cannot hold %s", field, jsonKind(sem)).with(details)
}

func jsonKind(e *jsonv2.SemanticError) string {
	if e.JSONValue != nil {
		return string(bytes.TrimSpace(e.JSONValue))
	}
	if e.JSONKind != 0 {
		return kindName(e.JSONKind)
	}
	return "this value"
}
