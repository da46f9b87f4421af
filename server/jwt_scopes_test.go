package server_test

import (
	"net/http"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"apiengine/engine"
	"apiengine/server"
)

// Scopes come from the claims scope and scp, and from nothing else; the issuer's role admin
// has none.
func TestScopesOfAJWT(t *testing.T) {
	i := newIssuer(t)
	f := newFakeTasks()
	e := &fakeEngine{}
	h := taskServer(t, f, func(c *server.Config) { c.JWT, c.Engine = i.config(), e }).Handler()
	for name, c := range map[string]struct {
		claims jwt.MapClaims
		status int // of an order
	}{
		"scope":            {jwt.MapClaims{"scope": "openid tasks:submit"}, 201},
		"scp":              {jwt.MapClaims{"scp": []string{"tasks:submit"}}, 201},
		"scp as a text":    {jwt.MapClaims{"scp": "tasks:submit"}, 201},
		"another one":      {jwt.MapClaims{"scope": "tasks:manage tasks:submitx tasks"}, 403},
		"scope of objects": {jwt.MapClaims{"scope": map[string]any{"tasks:submit": true}}, 403},
		"as a role":        {jwt.MapClaims{"roles": []string{"admin", "tasks:submit"}}, 403},
		"other claims": {jwt.MapClaims{"scopes": "tasks:submit", "permissions": []string{"tasks:submit"}, "trusted": true, "_TrustedServerInvocation": true,
			"_BackgroundTaskId": "x", "origin": "task"}, 403},
	} {
		claims := good()
		for k, v := range c.claims {
			claims[k] = v
		}
		header := []string{"Authorization: Bearer " + sign(t, jwt.SigningMethodEdDSA, "ed", i.ed, claims), "Content-Type: application/json"}
		got := do(t, h, ask{method: http.MethodPost, target: "/api/v1/tasks", body: `{"ApiEngineKey":"k"}`, header: header})
		if got.status != c.status {
			t.Errorf("%s: %d, want %d: %s", name, got.status, c.status, got.body)
		}
		// The same token on an ordinary call says who calls, and no more.
		do(t, h, ask{method: http.MethodPost, target: "/apiengine/k", body: `{}`, header: header})
		call, _ := e.seen()
		if call.Origin != engine.OriginHTTP || string(call.Param) != "{}" || call.Caller.ID != "u-7" || call.Caller.Issuer != "https://id.example" {
			t.Errorf("%s: the call is %+v", name, call)
		}
	}
}
