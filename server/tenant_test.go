package server_test

import (
	"net/http"
	"testing"

	"apiengine/server"
)

func TestTenantMatrix(t *testing.T) {
	for _, c := range []struct {
		name   string
		target string
		header []string
		token  string
		tenant string
		status int
		code   float64
	}{
		{name: "nothing names one", target: "/apiengine/k", tenant: "default"},
		{name: "suffix", target: "/apiengine/k--OsClient--acme--", tenant: "acme"},
		{name: "suffix in any case", target: "/apiengine/k--osclient--Acme--", tenant: "acme"},
		{name: "suffix of an address", target: "/shop/buy--OsClient--acme--", tenant: "acme"},
		{name: "query", target: "/apiengine/k?OsClient=acme", tenant: "acme"},
		{name: "query in any case", target: "/apiengine/k?osclient=acme", tenant: "acme"},
		{name: "header", target: "/apiengine/k", header: []string{"OsClient: acme"}, tenant: "acme"},
		{name: "token's own", target: "/apiengine/k", token: "acme", tenant: "acme"},
		{name: "token of every tenant", target: "/apiengine/k", token: "admin", tenant: "default"},
		{name: "token of every tenant with a name", target: "/apiengine/k?OsClient=acme", token: "admin", tenant: "acme"},
		{name: "all agree", target: "/apiengine/k--OsClient--acme--?OsClient=acme", header: []string{"OsClient: ACME"}, token: "acme", tenant: "acme"},
		{name: "suffix against query", target: "/apiengine/k--OsClient--a--?OsClient=b", status: 400},
		{name: "suffix against header", target: "/apiengine/k--OsClient--a--", header: []string{"OsClient: b"}, status: 400},
		{name: "query against header", target: "/apiengine/k?OsClient=a", header: []string{"OsClient: b"}, status: 400},
		{name: "query against itself", target: "/apiengine/k?OsClient=a&OsClient=b", status: 400},
		{name: "query in two cases", target: "/apiengine/k?OsClient=a&osclient=b", status: 400},
		{name: "header against itself", target: "/apiengine/k", header: []string{"OsClient: a", "OsClient: b"}, status: 400},
		{name: "token against query", target: "/apiengine/k?OsClient=other", token: "acme", status: 403, code: 1002},
		{name: "token against suffix", target: "/apiengine/k--OsClient--other--", token: "acme", status: 403, code: 1002},
		{name: "token against header", target: "/apiengine/k", header: []string{"OsClient: other"}, token: "acme", status: 403, code: 1002},
		{name: "no name at all", target: "/apiengine/k?OsClient=a/b", status: 400},
		{name: "suffix without its end", target: "/apiengine/k--OsClient--acme", status: 400},
		{name: "suffix in the middle", target: "/apiengine/k--OsClient--acme--/x", status: 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &fakeEngine{}
			h := newServer(t, server.Config{Engine: e}).Handler()
			g := do(t, h, ask{target: c.target, header: c.header, token: c.token})
			call, n := e.seen()
			if c.status == 0 {
				if g.status != http.StatusOK || call.Tenant != c.tenant {
					t.Fatalf("status %d, tenant %q, want %q: %s", g.status, call.Tenant, c.tenant, g.body)
				}
				if call.Key != "k" && call.Path != "/shop/buy" {
					t.Errorf("the suffix stayed: key %q, path %q", call.Key, call.Path)
				}
				if call.Param != nil {
					t.Errorf("the tenant's name came into the parameters: %s", call.Param)
				}
				return
			}
			if g.status != c.status || n != 0 || g.envelope(t).Code != c.code {
				t.Errorf("status %d, %d calls: %s", g.status, n, g.body)
			}
		})
	}
}

func TestTarget(t *testing.T) {
	for _, c := range []struct{ target, key, path string }{
		{"/apiengine/order_pay", "order_pay", ""},
		{"/ApiEngine/order_pay", "order_pay", ""},
		{"/apiengine/a%2eb", "a.b", ""},
		{"/apiengine/a/b", "", "/apiengine/a/b"},
		{"/apiengine/a%2Fb", "a/b", ""},
		{"/apiengine/a/", "", "/apiengine/a/"},
		{"/orders/7/items", "", "/orders/7/items"},
		{"/orders/7%2F8", "", "/orders/7%2F8"},
		{"/orders//7", "", "/orders//7"},
		{"/orders/../admin/api/v1/sql", "", "/orders/../admin/api/v1/sql"},
		{"/%61dmin/api/v1/sql", "", "/%61dmin/api/v1/sql"}, // an address nobody has, never the admin API
		{"/admin/api/v1/sql", "", ""},
		{"/admin/else", "", ""},
		{"/", "", "/"},
	} {
		e := &fakeEngine{}
		h := newServer(t, server.Config{Engine: e}).Handler()
		g := do(t, h, ask{target: c.target})
		call, n := e.seen()
		if loc := g.header.Get("Location"); loc != "" {
			t.Errorf("%s was redirected to %s", c.target, loc)
		}
		if c.key == "" && c.path == "" {
			if n != 0 {
				t.Errorf("%s reached the data plane as %q%q", c.target, call.Key, call.Path)
			}
			continue
		}
		if call.Key != c.key || call.Key == "" && call.Path != c.path { // with a key, Path only says where the request went
			t.Errorf("%s: key %q, path %q; want %q, %q (%d)", c.target, call.Key, call.Path, c.key, c.path, g.status)
		}
	}
}
