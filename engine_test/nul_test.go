package engine_test

import (
	"testing"
	"testing/fstest"
)

// A NUL in a text, which PostgreSQL keeps in none, is refused by whoever reads the text, or
// kept as something else; it is no failure of the database's, and none of a script.
func TestANulIsNoFailure(t *testing.T) {
	for _, p := range []pair{backendPairs[0], backendPairs[3]} {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			h.load(t, tenant, fstest.MapFS{
				"hello.js": js(anonymous, "return { Code: 1 };"),
				"tell.js":  js(anonymous, `V8.Outbox.Send({ EventId: 'e1', Type: 'a', Key: 'k', Data: { x: 'd\0' }, Target: 'hello' }); return { Code: 1 };`),
				"lock.js":  js(anonymous+"\nLock: true\nLockKey: Id", "return { Code: 1 };"),
				"throw.js": js(anonymous+"\nLogParam: true", "throw new Error('a\\0');"),
			})
			for _, c := range []struct{ method, path, body string }{
				{"POST", "/admin/api/v1/tokens", `{"Name":"a\u0000"}`},
				{"DELETE", "/admin/api/v1/tokens/a%00", ""},
				{"PUT", "/admin/api/v1/definitions/nul", `{"ApiEngineKey":"nul","ApiV8Code":"return 1","Category":"a\u0000"}`},
				{"PUT", "/admin/api/v1/definitions/nul", `{"ApiEngineKey":"nul","ApiV8Code":"return 1","ApiRemark":"a\u0000"}`},
				{"PUT", "/admin/api/v1/definitions/nul", `{"ApiEngineKey":"nul","ApiV8Code":"return '\u0000'"}`},
				{"PUT", "/admin/api/v1/definitions/nul", `{"ApiEngineKey":"nul","ApiV8Code":"return 1","TestParam":{"a":"\u0000"}}`},
				{"GET", "/admin/api/v1/definitions/a%00", ""},
				{"GET", "/admin/api/v1/audit?limit=5&x=%00", ""},
				{"GET", "/admin/api/v1/outbox?state=%00", ""},
				{"PUT", "/admin/api/v1/tenants/" + tenant + "/secrets/a", `{"Value":"a\u0000"}`},
				{"PUT", "/admin/api/v1/tenants/" + tenant + "/egress", `{"Allow":["a\u0000"]}`},
				{"POST", "/admin/api/v1/locks/release", `{"Lock":"a\u0000","Token":1}`},
				{"POST", "/api/v1/tasks", `{"ApiEngineKey":"hello\u0000"}`},
				{"POST", "/api/v1/tasks", `{"ApiEngineKey":"hello","ConcurrencyKey":"\u0000"}`},
				{"POST", "/api/v1/tasks", `{"ApiEngineKey":"hello","Param":{"a":"\u0000"}}`},
				{"GET", "/api/v1/tasks?key=%00", ""},
				{"GET", "/api/v1/executions/a%00/outcome", ""},
				{"POST", "/apiengine/hello%00", "{}"},
				{"POST", "/apiengine/tell", "{}"},
				{"POST", "/apiengine/lock", `{"Id":"\u0000"}`},
				{"POST", "/apiengine/hello?a=%00", "{}"},
			} {
				if a := h.do(tenant, c.method, c.path, c.body); a.Status >= 500 {
					t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, a.Status, a.Body)
				}
			}
			if a := h.do(tenant, "POST", "/apiengine/throw", "{}"); a.kind() != "script_error" {
				t.Errorf("%s", a.Body)
			}
		})
	}
}
