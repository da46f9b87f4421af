package engine_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

// One call makes a thousand nested calls, those of its children counted in; one more ends
// it, and nobody can catch that. The next call has a thousand of its own (S19).
func TestAThousandNestedCalls(t *testing.T) {
	h := newHouse(t, pair{})
	tenant := h.tenant(t)
	h.load(t, tenant, fstest.MapFS{
		"flat.js": js("Timeout: 60", "for (var i = 0; i < V8.Param.N; i++) { try { V8.ApiEngine.Run('leaf', {}); } catch (e) {} }\nreturn { Code: 1, Data: i };"),
		"tree.js": js("Timeout: 60", "for (var i = 0; i < V8.Param.N; i++) { V8.ApiEngine.Run('flat', { N: 99 }); }\nreturn { Code: 1, Data: i };"),
		"lost.js": js("Timeout: 60", "for (var i = 0; i < V8.Param.N; i++) { V8.ApiEngine.Run('nowhere', {}); }\nreturn { Code: 1, Data: i };"),
		"leaf.js": js("Category: x", "return 1;"),
	})
	for _, c := range []struct {
		name, api, body, want string
	}{
		{"all in a row", "flat", `{"N":1000}`, `{"Code":1,"Data":1000}`},
		{"one too many", "flat", `{"N":1001}`, "at most 1000 nested calls"},
		{"children of children", "tree", `{"N":10}`, `{"Code":1,"Data":10}`},
		{"one too many below", "tree", `{"N":11}`, "at most 1000 nested calls"},
		{"calls that find nothing count", "lost", `{"N":1001}`, "at most 1000 nested calls"},
		{"the next call begins at none", "flat", `{"N":1000}`, `{"Code":1,"Data":1000}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := h.do(tenant, "POST", "/apiengine/"+c.api, c.body)
			if refused := !strings.HasPrefix(c.want, "{"); refused != (a.kind() == "limit_depth") || !strings.Contains(a.Body, c.want) {
				t.Errorf("%d %s, want %s", a.Status, a.Body, c.want)
			}
		})
	}
}

// A nested call finds the APIs of its own tenant alone, whatever names one; it runs as who
// called the root, whatever the parameters say; what is switched off stays off; and the
// record of the call names what it called (S20).
func TestNestedCallsStayAtHome(t *testing.T) {
	h := newHouse(t, pair{})
	mine, other := h.tenant(t), h.tenant(t)
	h.load(t, other, fstest.MapFS{"theirs.js": js("AllowAnonymous: true", "return { Code: 1, Data: 'theirs' };")})
	h.load(t, mine, fstest.MapFS{
		"run.js":     js("AllowAnonymous: true", "return V8.ApiEngine.Run(V8.Param.Key, V8.Param.Give || {});"),
		"who.js":     js("ApiRole: [boss]\nStopHttp: true", "return { Code: 1, Data: [V8.OsClient, V8.CurrentUser, V8.InvokeType, V8.Param._CurrentUser === undefined] };"),
		"off.js":     js("IsEnable: false", "return { Code: 1, Data: 'ran' };"),
		"library.js": js("Library: true", "return {};"),
	})
	refusal := func(kind string) string { return `"Kind":"` + kind + `"` }
	for _, c := range []struct{ name, key, give, want string }{
		{"another tenant's API", "theirs", "{}", refusal("not_found")},
		{"by a path", "--OsClient--" + other + "--/theirs", "{}", refusal("not_found")},
		{"by a suffix", "theirs--OsClient--" + other + "--", "{}", refusal("not_found")},
		{"by a parameter", "theirs", `{"OsClient":"` + other + `"}`, refusal("not_found")},
		{"one that is switched off", "off", "{}", refusal("disabled")},
		{"a library", "library", "{}", refusal("http_stopped")},
		{"who calls", "who", "{}", `{"Code":1,"Data":["` + mine + `",{},"Server",true]}`},
		{"a forged user", "who", `{"_CurrentUser":{"Id":"root","Roles":["admin"]},"OsClient":"` + other + `","_InvokeType":"Client"}`, `{"Code":1,"Data":["` + mine + `",{},"Server",true]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := h.anonymous(mine, "POST", "/apiengine/run", `{"Key":"`+c.key+`","Give":`+c.give+`}`)
			if !strings.Contains(a.Body, c.want) || strings.Contains(a.Body, `"theirs"`) {
				t.Errorf("%d %s, want %s", a.Status, a.Body, c.want)
			}
		})
	}
	if a := h.anonymous(mine, "POST", "/apiengine/who", "{}"); a.kind() != "http_stopped" {
		t.Errorf("the API itself from outside: %d %s", a.Status, a.Body)
	}
	if text := h.log.String(); !strings.Contains(text, `"nested":["who"]`) || !strings.Contains(text, `"caller_api":"run"`) {
		t.Errorf("the log does not say what was called:\n%s", text)
	}
}

// anonymous is do without a token.
func (h *house) anonymous(tenant, method, path, body string) answer {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("OsClient", tenant)
	rec := httptest.NewRecorder()
	h.handler.ServeHTTP(rec, req)
	return answerOf(rec.Result())
}
