package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"apiengine/apis"
	"apiengine/fault"
	"apiengine/server"
)

// The fakes keep what they were asked in said.
type said struct{ lines []string }

func (s *said) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

type fakeDefinitions struct {
	*said
	err error
}

func (f fakeDefinitions) one(key string, v int) (server.StoredDefinition, error) {
	return server.StoredDefinition{Definition: apis.Definition{ApiEngineKey: key, ApiV8Code: "return 1"}, Version: v, SavedBy: "Ann"}, f.err
}

func demand(v *int) string {
	if v == nil {
		return "any"
	}
	return fmt.Sprint(*v)
}

func (f fakeDefinitions) List(_ context.Context, tenant string) ([]server.StoredDefinition, error) {
	f.say("list %s", tenant)
	a, _ := f.one("a", 1)
	b, err := f.one("b", 2)
	return []server.StoredDefinition{a, b}, err
}

func (f fakeDefinitions) Get(_ context.Context, tenant, key string) (server.StoredDefinition, error) {
	f.say("get %s %s", tenant, key)
	return f.one(key, 3)
}

func (f fakeDefinitions) Save(_ context.Context, s server.SaveRequest) (server.StoredDefinition, bool, error) {
	f.say("save %s %s %q if %s by %s", s.Tenant, s.Definition.ApiEngineKey, s.Definition.ApiV8Code, demand(s.IfVersion), s.By)
	d, err := f.one(s.Definition.ApiEngineKey, 4)
	return d, s.IfVersion != nil && *s.IfVersion == 0, err
}

func (f fakeDefinitions) Delete(_ context.Context, d server.DeleteRequest) error {
	f.say("delete %s %s if %s", d.Tenant, d.Key, demand(d.IfVersion))
	return f.err
}

func (f fakeDefinitions) Versions(_ context.Context, tenant, key string) ([]server.StoredDefinition, error) {
	f.say("versions %s %s", tenant, key)
	return nil, f.err
}

func (f fakeDefinitions) Version(_ context.Context, tenant, key string, v int) (server.StoredDefinition, error) {
	f.say("version %s %s %d", tenant, key, v)
	return f.one(key, v)
}

func (f fakeDefinitions) Rollback(_ context.Context, r server.RollbackRequest) (server.StoredDefinition, error) {
	f.say("rollback %s %s to %d if %s", r.Tenant, r.Key, r.Version, demand(r.IfVersion))
	return f.one(r.Key, 5)
}

type fakePlanner struct{ *said }

func (f fakePlanner) Plan(_ context.Context, q server.PlanQuery) (any, error) {
	f.say("plan %s %s %s", q.Tenant, q.Key, q.Param)
	return map[string]any{"LeaseMs": 30000}, nil
}

type fakeSQL struct{ *said }

func (f fakeSQL) Statement(_ context.Context, r server.SQLRequest) (server.SQLAnswer, error) {
	f.say("sql %s%s %s", r.Tenant, strings.TrimSuffix("."+r.Database, "."), r.SQL)
	return server.SQLAnswer{Columns: []string{"a"}, Rows: []json.RawMessage{json.RawMessage(`[1]`)}}, nil
}

type fakeSchema struct{ *said }

func (f fakeSchema) Apply(_ context.Context, r server.SchemaRequest) ([]string, error) {
	f.say("schema %s%s %v", r.Tenant, strings.TrimSuffix("."+r.Database, "."), r.Files)
	return nil, nil
}

type fakeTokenAdmin struct{ *said }

func (f fakeTokenAdmin) List(_ context.Context, tenant string) ([]server.TokenInfo, error) {
	f.say("tokens of %q", tenant)
	return nil, nil
}

func (f fakeTokenAdmin) Create(_ context.Context, n server.NewToken) (string, server.TokenInfo, error) {
	f.say("token %s for %q %v", n.Name, n.Tenant, n.Roles)
	return "aek_new", server.TokenInfo{Id: "t1", Name: n.Name, Tenant: n.Tenant}, nil
}

func (f fakeTokenAdmin) Revoke(_ context.Context, tenant, id string) error {
	f.say("revoke %q %s", tenant, id)
	return nil
}

type fakeTenants struct{ *said }

func (f fakeTenants) List(context.Context) ([]server.TenantInfo, error) {
	return []server.TenantInfo{{Name: "default"}, {Name: "acme"}}, nil
}

func (f fakeTenants) Create(_ context.Context, name string) (server.TenantInfo, error) {
	f.say("tenant %s", name)
	return server.TenantInfo{Name: name}, nil
}

func (f fakeTenants) Settings(_ context.Context, tenant string) (json.RawMessage, error) {
	f.say("settings %s", tenant)
	return nil, nil
}

func (f fakeTenants) SetSettings(_ context.Context, tenant string, s json.RawMessage) error {
	f.say("settings %s = %s", tenant, s)
	return nil
}

type fakeSecrets struct{ *said }

func (f fakeSecrets) Names(_ context.Context, tenant string) ([]string, error) {
	f.say("secrets %s", tenant)
	return nil, nil
}

func (f fakeSecrets) Set(_ context.Context, tenant, name, value string) error {
	f.say("secret %s %s=%s", tenant, name, value)
	return nil
}

func (f fakeSecrets) Delete(_ context.Context, tenant, name string) error {
	f.say("unset %s %s", tenant, name)
	return nil
}

type fakeDatabases struct{ *said }

func (f fakeDatabases) List(_ context.Context, tenant string) ([]server.DatabaseInfo, error) {
	f.say("databases %s", tenant)
	return nil, nil
}

func (f fakeDatabases) Add(_ context.Context, r server.DatabaseRequest) (server.DatabaseInfo, error) {
	f.say("add %s.%s by %s", r.Tenant, r.Name, r.By)
	return server.DatabaseInfo{Name: r.Name}, nil
}

func (f fakeDatabases) Remove(_ context.Context, r server.DatabaseRequest) error {
	f.say("remove %s.%s by %s", r.Tenant, r.Name, r.By)
	return nil
}

func fullAdmin(s *said) server.Admin {
	return server.Admin{Definitions: fakeDefinitions{said: s}, Planner: fakePlanner{s}, Schema: fakeSchema{s}, SQL: fakeSQL{s}, Databases: fakeDatabases{s},
		Tokens: fakeTokenAdmin{s}, Tenants: fakeTenants{s}, Secrets: fakeSecrets{s},
		Locks: fakeLocks{s}, Audit: fakeAudit{s}}
}

// The rights of the admin API, written a second time: who may, and a body that is taken.
var rights = []struct {
	method, path, body string
	least              string
}{
	{"GET", "/definitions", "", "viewer"},
	{"GET", "/definitions/{key}", "", "viewer"},
	{"PUT", "/definitions/{key}", `{"ApiV8Code":"return 1"}`, "author"},
	{"DELETE", "/definitions/{key}", "", "author"},
	{"GET", "/definitions/{key}/versions", "", "viewer"},
	{"GET", "/definitions/{key}/versions/{version}", "", "viewer"},
	{"POST", "/definitions/{key}/rollback", `{"Version":1}`, "author"},
	{"POST", "/definitions/{key}/run", `{"Param":{}}`, "author"},
	{"POST", "/definitions/{key}/plan", `{}`, "viewer"},
	{"POST", "/schema", `{"Files":[]}`, "admin"},
	{"POST", "/sql", `{"Sql":"select 1"}`, "admin"},
	{"GET", "/tokens", "", "admin"},
	{"POST", "/tokens", `{"Name":"n","Roles":["viewer"]}`, "admin"},
	{"DELETE", "/tokens/{id}", "", "admin"},
	{"GET", "/locks", "", "admin"},
	{"POST", "/locks/release", `{"Lock":"default:OrderId:1","Token":5}`, "admin"},
	{"GET", "/audit", "", "admin"},
	{"GET", "/tenants", "", "admin"},
	{"POST", "/tenants", `{"Name":"acme"}`, "admin"},
	{"GET", "/tenants/{tenant}/settings", "", "admin"},
	{"PUT", "/tenants/{tenant}/settings", `{}`, "admin"},
	{"GET", "/tenants/{tenant}/secrets", "", "admin"},
	{"PUT", "/tenants/{tenant}/secrets/{secret}", `{"Value":"v"}`, "admin"},
	{"DELETE", "/tenants/{tenant}/secrets/{secret}", "", "admin"},
	{"GET", "/tenants/{tenant}/databases", "", "admin"},
	{"POST", "/tenants/{tenant}/databases", `{"Name":"erp"}`, "admin"},
	{"DELETE", "/tenants/{tenant}/databases/{name}", "", "admin"},
}

func fill(path string) string {
	return server.AdminPrefix + strings.NewReplacer("{key}", "k", "{version}", "1", "{id}", "t1", "{tenant}", "acme", "{secret}", "s", "{name}", "erp").Replace(path)
}

func TestEveryRouteAndRole(t *testing.T) {
	s := newServer(t, server.Config{Admin: fullAdmin(&said{})})
	var declared []string
	for _, r := range rights {
		declared = append(declared, r.method+" "+server.AdminPrefix+r.path)
		for _, role := range []string{"admin", "author", "viewer", "none", ""} {
			a := ask{method: r.method, target: fill(r.path), body: r.body, token: role}
			if r.body != "" {
				a.header = []string{ctJSON}
			}
			want := map[bool]int{true: 200, false: 403}[roleRank(role) >= roleRank(r.least)]
			if role == "" {
				want = 401
			}
			g := do(t, s.Handler(), a)
			if g.status != want && (want != 200 || g.status != 201) {
				t.Errorf("%s %s as %q: %d, want %d: %s", r.method, r.path, role, g.status, want, g.body)
			}
		}
	}
	slices.Sort(declared)
	if routes := server.AdminRoutes(s); !slices.Equal(routes, declared) {
		t.Errorf("the routes and the table of rights differ:\n%s\n\n%s", strings.Join(routes, "\n"), strings.Join(declared, "\n"))
	}
}

func roleRank(name string) int { return slices.Index([]string{"viewer", "author", "admin"}, name) }

func TestRoutesOfMissingPortsDoNotExist(t *testing.T) {
	s := newServer(t, server.Config{})
	if g := do(t, s.Handler(), ask{target: server.AdminPrefix + "/definitions", token: "admin"}); g.status != 404 {
		t.Errorf("%d", g.status)
	}
	if g := do(t, s.Handler(), ask{target: "/admin", token: "admin"}); g.status != 404 || g.kind(t) != "not_found" {
		t.Errorf("%d", g.status)
	}
}

func TestAdmin(t *testing.T) {
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		token                    string
		status                   int
		said                     string // the last thing a port heard
		contains                 string // of the answer
	}{
		{name: "list", method: "GET", path: "/definitions", status: 200, said: "list default", contains: `"ApiV8Code":"return 1"`},
		{name: "list of a tenant", method: "GET", path: "/definitions?OsClient=acme", status: 200, said: "list acme"},
		{name: "a tenant's administrator", method: "GET", path: "/definitions", token: "acmeroot", status: 200, said: "list acme"},
		{name: "in another tenant", method: "GET", path: "/definitions?OsClient=other", token: "acmeroot", status: 403, contains: `"Code":1002`},
		{name: "version and etag", method: "GET", path: "/definitions/k", status: 200, said: "get default k", contains: `"Version":3`},
		{name: "not changed", method: "GET", path: "/definitions/k", header: []string{`If-None-Match: "3"`}, status: 304, said: "get default k"},
		{name: "encoded key", method: "GET", path: "/definitions/a%2Eb", status: 200, said: "get default a.b"},
		{name: "save", method: "PUT", path: "/definitions/k", body: `{"ApiV8Code":"x"}`, status: 200, said: `save default k "x" if any by Ann (id-)`},
		{name: "save over 3", method: "PUT", path: "/definitions/k", body: `{"ApiV8Code":"x"}`, header: []string{`If-Match: "3"`}, status: 200, said: `save default k "x" if 3 by Ann (id-)`},
		{name: "save new", method: "PUT", path: "/definitions/k", body: `{"ApiV8Code":"x"}`, header: []string{`If-None-Match: *`}, status: 201, said: `save default k "x" if 0 by Ann (id-)`},
		{name: "both demands", method: "PUT", path: "/definitions/k", body: `{}`, header: []string{`If-None-Match: *`, `If-Match: "1"`}, status: 400, contains: "both"},
		{name: "weak tag", method: "PUT", path: "/definitions/k", body: `{}`, header: []string{`If-Match: W/"1"`}, status: 400, contains: "If-Match"},
		{name: "bare tag", method: "PUT", path: "/definitions/k", body: `{}`, header: []string{`If-Match: 1`}, status: 400, contains: "If-Match"},
		{name: "any version", method: "PUT", path: "/definitions/k", body: `{}`, header: []string{`If-Match: *`}, status: 400, contains: "If-Match"},
		{name: "key in another case", method: "PUT", path: "/definitions/k", body: `{"ApiEngineKey":"K","ApiV8Code":"x"}`, status: 200, said: `save default K "x" if any by Ann (id-)`},
		{name: "two keys", method: "PUT", path: "/definitions/k", body: `{"ApiEngineKey":"other"}`, status: 400, contains: `"Field":"ApiEngineKey"`},
		{name: "unknown field", method: "PUT", path: "/definitions/k", body: `{"Lokc":true}`, status: 400, contains: "Lokc"},
		{name: "body of another type", method: "PUT", path: "/definitions/k", body: `{}`, header: []string{"Content-Type: text/plain"}, status: 400, contains: "application/json"},
		{name: "no body", method: "PUT", path: "/definitions/k", header: []string{ctJSON}, status: 400, contains: "missing"},
		{name: "broken body", method: "PUT", path: "/definitions/k", body: `{"a":`, status: 400, contains: "line 1"},
		{name: "delete", method: "DELETE", path: "/definitions/k", header: []string{`If-Match: "3"`}, status: 200, said: "delete default k if 3"},
		{name: "versions", method: "GET", path: "/definitions/k/versions", status: 200, said: "versions default k", contains: `"Data":[]`},
		{name: "version", method: "GET", path: "/definitions/k/versions/2", status: 200, said: "version default k 2"},
		{name: "version zero", method: "GET", path: "/definitions/k/versions/0", status: 400},
		{name: "version x", method: "GET", path: "/definitions/k/versions/x", status: 400},
		{name: "rollback", method: "POST", path: "/definitions/k/rollback", body: `{"Version":2}`, header: []string{`If-Match: "3"`}, status: 200, said: "rollback default k to 2 if 3", contains: `"Version":5`},
		{name: "rollback to nothing", method: "POST", path: "/definitions/k/rollback", body: `{}`, status: 400, contains: `"Field":"Version"`},
		{name: "rollback to a text", method: "POST", path: "/definitions/k/rollback", body: `{"Version":"2"}`, status: 400, contains: `"Field":"Version"`},
		{name: "plan", method: "POST", path: "/definitions/k/plan", body: `{"Param":{"a":1}}`, status: 200, said: `plan default k {"a":1}`, contains: `"LeaseMs":30000`},
		{name: "plan without parameters", method: "POST", path: "/definitions/k/plan", body: `{}`, status: 200, said: `plan default k {}`},
		{name: "plan with an array", method: "POST", path: "/definitions/k/plan", body: `{"Param":[1]}`, status: 400, contains: `"Field":"Param"`},
		{name: "schema", method: "POST", path: "/schema", body: `{"Files":[{"Name":"1.sql","SQL":"x"}]}`, status: 200, said: "schema default [{1.sql x}]", contains: `"Applied":[]`},
		{name: "schema, unknown field inside", method: "POST", path: "/schema", body: `{"Files":[{"Nmae":"1.sql"}]}`, status: 400, contains: "Files.0.Nmae"},
		{name: "schema, field in another case", method: "POST", path: "/schema", body: `{"files":[]}`, status: 400, contains: "files"},
		{name: "sql", method: "POST", path: "/sql", body: `{"Sql":"select 1"}`, status: 200, said: "sql default select 1", contains: `{"Columns":["a"],"Rows":[[1]],"Affected":0}`},
		{name: "sql elsewhere", method: "POST", path: "/sql", body: `{"Sql":"x","Database":"erp"}`, status: 200, said: "sql default.erp x"},
		{name: "schema elsewhere", method: "POST", path: "/schema", body: `{"Files":[],"Database":"erp"}`, status: 200, said: "schema default.erp []"},
		{name: "databases", method: "GET", path: "/tenants/acme/databases", status: 200, said: "databases acme", contains: `"Data":[]`},
		{name: "databases of the own tenant", method: "GET", path: "/tenants/acme/databases", token: "acmeroot", status: 200, said: "databases acme"},
		{name: "databases of another tenant", method: "GET", path: "/tenants/other/databases", token: "acmeroot", status: 403},
		{name: "add a database", method: "POST", path: "/tenants/acme/databases", body: `{"Name":"erp"}`, status: 201, said: "add acme.erp by Ann (id-)"},
		{name: "add one as the tenant", method: "POST", path: "/tenants/acme/databases", body: `{"Name":"erp"}`, token: "acmeroot", status: 403},
		{name: "remove a database", method: "DELETE", path: "/tenants/acme/databases/erp", status: 200, said: "remove acme.erp by Ann (id-)"},
		{name: "remove one as the tenant", method: "DELETE", path: "/tenants/acme/databases/erp", token: "acmeroot", status: 403},
		{name: "no sql", method: "POST", path: "/sql", body: `{"Sql":""}`, status: 400},
		{name: "all tokens", method: "GET", path: "/tokens", status: 200, said: `tokens of ""`},
		{name: "tokens of one tenant", method: "GET", path: "/tokens?OsClient=acme", status: 200, said: `tokens of "acme"`},
		{name: "own tokens", method: "GET", path: "/tokens", token: "acmeroot", status: 200, said: `tokens of "acme"`},
		{name: "token", method: "POST", path: "/tokens?OsClient=acme", body: `{"Name":"ci","Roles":["author"]}`, status: 201, said: `token ci for "acme" [author]`, contains: `"Token":"aek_new"`},
		{name: "token of every tenant", method: "POST", path: "/tokens", body: `{"Name":"ci","AllTenants":true}`, status: 201, said: `token ci for "" []`},
		{name: "a tenant reaching for all", method: "POST", path: "/tokens", body: `{"Name":"ci","AllTenants":true}`, token: "acmeroot", status: 403},
		{name: "token without a name", method: "POST", path: "/tokens", body: `{}`, status: 400, contains: `"Field":"Name"`},
		{name: "token that is over", method: "POST", path: "/tokens", body: `{"Name":"x","ExpiresAt":"2001-01-01T00:00:00Z"}`, status: 400, contains: `"Field":"ExpiresAt"`},
		{name: "token with a bad time", method: "POST", path: "/tokens", body: `{"Name":"x","ExpiresAt":"soon"}`, status: 400, contains: `"Field":"ExpiresAt"`},
		{name: "revoke", method: "DELETE", path: "/tokens/t1", token: "acmeroot", status: 200, said: `revoke "acme" t1`},
		{name: "revoke any", method: "DELETE", path: "/tokens/t1", status: 200, said: `revoke "" t1`},
		{name: "tenants", method: "GET", path: "/tenants", status: 200, contains: `"default"`},
		{name: "own tenant only", method: "GET", path: "/tenants", token: "acmeroot", status: 200, contains: `"Data":[{"Name":"acme"`},
		{name: "new tenant", method: "POST", path: "/tenants", body: `{"Name":"Beta"}`, status: 201, said: "tenant beta"},
		{name: "new tenant with a bad name", method: "POST", path: "/tenants", body: `{"Name":"a/b"}`, status: 400, contains: `"Field":"Name"`},
		{name: "new tenant by a tenant", method: "POST", path: "/tenants", body: `{"Name":"beta"}`, token: "acmeroot", status: 403},
		{name: "settings", method: "GET", path: "/tenants/acme/settings", status: 200, said: "settings acme", contains: `"Data":{}`},
		{name: "own settings", method: "GET", path: "/tenants/acme/settings", token: "acmeroot", status: 200, said: "settings acme"},
		{name: "another's settings", method: "GET", path: "/tenants/default/settings", token: "acmeroot", status: 403, contains: `"Code":1002`},
		{name: "set settings", method: "PUT", path: "/tenants/acme/settings", body: `{"a":{"b":1}}`, status: 200, said: `settings acme = {"a":{"b":1}}`},
		{name: "another's secrets", method: "GET", path: "/tenants/default/secrets", token: "acmeroot", status: 403},
		{name: "secrets", method: "GET", path: "/tenants/acme/secrets", status: 200, said: "secrets acme", contains: `"Data":[]`},
		{name: "set secret", method: "PUT", path: "/tenants/acme/secrets/pay.key", body: `{"Value":"v"}`, status: 200, said: "secret acme pay.key=v"},
		{name: "secret without a value", method: "PUT", path: "/tenants/acme/secrets/s", body: `{}`, status: 400, contains: `"Field":"Value"`},
		{name: "secret with a bad name", method: "PUT", path: "/tenants/acme/secrets/a%2Fb", body: `{"Value":"v"}`, status: 400},
		{name: "unset secret", method: "DELETE", path: "/tenants/acme/secrets/s", status: 200, said: "unset acme s"},
		{name: "all locks", method: "GET", path: "/locks", status: 200, said: `locks of "" from ""`, contains: `{"Items":[{"Lock":"a:x:1"`},
		{name: "own locks", method: "GET", path: "/locks?prefix=OrderId:4", token: "acmeroot", status: 200, said: `locks of "acme" from "OrderId:4"`},
		{name: "a page of locks", method: "GET", path: "/locks?limit=2", status: 200, said: `locks of "" from ""`, contains: `"NextCursor":"a:x:2"`},
		{name: "the last page of locks", method: "GET", path: "/locks?limit=2&cursor=a:x:2", status: 200, said: `locks of "" from ""`, contains: `{"Items":[{"Lock":"a:x:3"`},
		{name: "beyond the locks", method: "GET", path: "/locks?cursor=z", status: 200, said: `locks of "" from ""`, contains: `"Data":{"Items":[]}`},
		{name: "locks without limit", method: "GET", path: "/locks?limit=0", status: 400, contains: `"Field":"limit"`},
		{name: "release", method: "POST", path: "/locks/release", body: `{"Lock":"default:x:1","Token":5,"Reason":"stuck"}`, status: 200, said: `release default:x:1 5 of "" by Ann (id-): stuck`},
		{name: "release in the own tenant", method: "POST", path: "/locks/release", body: `{"Lock":"default:x:1","Token":5}`, token: "acmeroot", status: 200, said: `release default:x:1 5 of "acme" by Ann (id-acme): `},
		{name: "release of nothing", method: "POST", path: "/locks/release", body: `{"Token":5}`, status: 400, contains: `"Field":"Lock"`},
		{name: "release from nobody", method: "POST", path: "/locks/release", body: `{"Lock":"default:x:1"}`, status: 400, contains: `"Field":"Token"`},
		{name: "audit", method: "GET", path: "/audit?limit=2&cursor=9", status: 200, said: `audit of "" before 9: 3`, contains: `"NextCursor":"7"`},
		{name: "own audit", method: "GET", path: "/audit", token: "acmeroot", status: 200, said: `audit of "acme" before 0: 101`, contains: `"Subject":"x"`},
		{name: "audit from nowhere", method: "GET", path: "/audit?cursor=x", status: 400, contains: `"Field":"cursor"`},
		{name: "wrong method", method: "POST", path: "/definitions", body: `{}`, status: 405},
		{name: "nothing there", method: "GET", path: "/what", status: 404},
		{name: "options", method: "OPTIONS", path: "/definitions", status: 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			heard := &said{}
			h := newServer(t, server.Config{Admin: fullAdmin(heard), Always200: true}).Handler() // which is for the data plane only
			a := ask{method: c.method, target: server.AdminPrefix + c.path, body: c.body, header: c.header, token: c.token}
			if a.token == "" {
				a.token = "admin"
			}
			if a.body != "" && !slices.ContainsFunc(c.header, func(h string) bool { return strings.HasPrefix(h, "Content-Type") }) {
				a.header = append(slices.Clone(c.header), ctJSON)
			}
			g := do(t, h, a)
			last := ""
			if len(heard.lines) > 0 {
				last = heard.lines[len(heard.lines)-1]
			}
			if g.status != c.status || last != c.said || !strings.Contains(g.body, c.contains) {
				t.Errorf("%d, heard %q: %s", g.status, last, g.body)
			}
		})
	}
}

func TestSavedDefinitionHasAnETag(t *testing.T) {
	h := newServer(t, server.Config{Admin: fullAdmin(&said{})}).Handler()
	for method, want := range map[string]string{"GET": `"3"`, "PUT": `"4"`} {
		a := ask{method: method, target: server.AdminPrefix + "/definitions/k", token: "admin"}
		if method == "PUT" {
			a.body, a.header = `{"ApiV8Code":"x"}`, []string{ctJSON}
		}
		if g := do(t, h, a); g.header.Get("Etag") != want || g.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", method, g.header)
		}
	}
}

func TestWrongMethodNamesTheRightOnes(t *testing.T) {
	h := newServer(t, server.Config{Admin: fullAdmin(&said{})}).Handler()
	g := do(t, h, ask{method: "PATCH", target: server.AdminPrefix + "/definitions/k", token: "admin"})
	if g.status != 405 || g.header.Get("Allow") != "GET, PUT, DELETE" || g.kind(t) != "method_not_allowed" {
		t.Errorf("%d %v", g.status, g.header)
	}
}

func TestConflictIsNamed(t *testing.T) {
	err := &fault.Error{K: fault.VersionConflict, Msg: "the live version is 5", Fields: map[string]any{"Version": 5}}
	h := newServer(t, server.Config{Admin: server.Admin{Definitions: fakeDefinitions{&said{}, err}}}).Handler()
	g := do(t, h, ask{method: "PUT", target: server.AdminPrefix + "/definitions/k", body: `{"ApiV8Code":"x"}`,
		header: []string{ctJSON, `If-Match: "3"`}, token: "author"})
	if g.status != 409 || g.kind(t) != "version_conflict" || g.envelope(t).DataAppend.Error["Version"] != 5.0 {
		t.Errorf("%d %s", g.status, g.body)
	}
}
