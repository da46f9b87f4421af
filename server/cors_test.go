package server_test

import (
	"testing"

	"apiengine/apis"
	"apiengine/fault"
	"apiengine/server"
)

func TestCORS(t *testing.T) {
	const app, evil = "https://app.example", "https://evil.example"
	res := jsonResult(`{"Code":1}`)
	res.Execution.CorsOrigins = []string{app}
	e := &fakeEngine{answer: answering(res), defs: map[string]apis.Definition{
		"default some":  {Cors: []string{app}, Methods: []string{"POST"}},
		"acme some":     {Cors: []string{evil}},
		"default every": {Cors: []string{"*"}},
		"default none":  {},
	}}
	h := newServer(t, server.Config{Engine: e}).Handler()
	for _, c := range []struct {
		name, method, target, origin string
		ask                          string // Access-Control-Request-Headers
		token                        string
		status                       int
		allow, vary                  string
		headers                      string
	}{
		{name: "preflight", method: "OPTIONS", target: "/apiengine/some", origin: app, ask: "authorization, x-a", status: 204, allow: app, vary: "Origin", headers: "authorization, x-a"},
		{name: "preflight of another origin", method: "OPTIONS", target: "/apiengine/some", origin: evil, ask: "x-a", status: 204, vary: "Origin"},
		{name: "preflight by tenant", method: "OPTIONS", target: "/apiengine/some?OsClient=acme", origin: app, status: 204, vary: "Origin"},
		{name: "preflight for anybody", method: "OPTIONS", target: "/apiengine/every", origin: evil, status: 204, allow: "*"},
		{name: "preflight for nobody", method: "OPTIONS", target: "/apiengine/none", origin: app, status: 204},
		{name: "options without origin", method: "OPTIONS", target: "/apiengine/some", status: 204},
		{name: "preflight with bad names", method: "OPTIONS", target: "/apiengine/every", origin: app, ask: "x y", status: 204, allow: "*"},
		{name: "preflight of an unknown API", method: "OPTIONS", target: "/apiengine/what", origin: app, status: 404},
		{name: "call", method: "POST", target: "/apiengine/some", origin: app, status: 200, allow: app, vary: "Origin"},
		{name: "call of another origin", method: "POST", target: "/apiengine/some", origin: evil, status: 200, vary: "Origin"},
		{name: "call without origin", method: "POST", target: "/apiengine/some", status: 200, vary: "Origin"},
		{name: "refusal can be read", method: "POST", target: "/apiengine/some", origin: app, token: "wrong", status: 401, allow: app, vary: "Origin"},
		{name: "null", method: "POST", target: "/apiengine/some", origin: "null", status: 200, vary: "Origin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := ask{method: c.method, target: c.target, token: c.token}
			if c.origin != "" {
				a.header = append(a.header, "Origin: "+c.origin)
			}
			if c.ask != "" {
				a.header = append(a.header, "Access-Control-Request-Headers: "+c.ask)
			}
			g := do(t, h, a)
			if g.status != c.status || g.header.Get("Access-Control-Allow-Origin") != c.allow || g.header.Get("Vary") != c.vary ||
				g.header.Get("Access-Control-Allow-Headers") != c.headers || g.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%d %v", g.status, g.header)
			}
			if c.status == 204 && (g.body != "" || g.header.Get("Allow") == "") {
				t.Errorf("%q %v", g.body, g.header)
			}
			if (g.header.Get("Access-Control-Allow-Methods") != "") != (c.status == 204 && c.allow != "") {
				t.Errorf("methods: %v", g.header)
			}
		})
	}
	if g := do(t, h, ask{method: "OPTIONS", target: "/apiengine/some"}); g.header.Get("Allow") != "POST, OPTIONS" {
		t.Errorf("Allow: %q", g.header.Get("Allow"))
	}
}

func TestMethodOfTheEngine(t *testing.T) {
	err := &fault.Error{K: fault.MethodNotAllowed, Msg: "no", Fields: map[string]any{"Allow": "POST, PUT"}}
	g := do(t, newServer(t, server.Config{Engine: &fakeEngine{answer: failing(err)}}).Handler(), ask{target: "/apiengine/k"})
	if g.status != 405 || g.header.Get("Allow") != "POST, PUT" {
		t.Errorf("%d %v", g.status, g.header)
	}
}
