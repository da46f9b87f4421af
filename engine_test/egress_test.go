package engine_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

// S49: what one tenant may reach is narrowed for its scripts and its messages, by whoever
// administers the server and not by the tenant.
func TestEgressOfATenant(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer s.Close()
	n := startNode(t, "--data-dir", t.TempDir(), "--http-allow", "127.0.0.1")
	n.pushFiles(t, fstest.MapFS{
		"get.js":  js("Category: x", "return { Code: 1, Data: V8.Http.Get(V8.Param.Url) };"),
		"send.js": js("Category: x", "return { Code: 1, Data: V8.Outbox.Send({EventId: NewGuid(), Type: 't', Target: V8.Param.Url}) };"),
	})
	try := func(api string) string {
		a := n.call(t, "POST", "/apiengine/"+api, map[string]any{"Url": s.URL})
		if a.JSON.Code == 1 {
			return "let out"
		}
		return a.kind()
	}
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, "let out"},
		{[]string{"--mode", "off"}, "script_error"},
		{[]string{"--allow", "https://api.example.com", "--allow", s.URL}, "let out"},
		{[]string{"--allow", strings.Replace(s.URL, "http:", "https:", 1)}, "script_error"},
		{[]string{"--mode", "public"}, "let out"},
	} {
		if c.flags != nil {
			n.command(t, append([]string{"tenant", "egress", "default"}, c.flags...)...)
		}
		await(t, "the rules to be live", func() bool { return try("get") == c.want })
		if got := try("send"); got != c.want {
			t.Errorf("%v: V8.Outbox.Send is %s, want %s", c.flags, got, c.want)
		}
	}
	if out := n.command(t, "tenant", "egress", "default"); out != "public\n" {
		t.Errorf("shown as %q", out)
	}
	own := strings.TrimSpace(n.command(t, "token", "create", "own", "--role", "admin"))
	for method, status := range map[string]int{"GET": 200, "PUT": 403} {
		req, err := http.NewRequestWithContext(t.Context(), method, n.URL+"/admin/api/v1/tenants/default/egress", strings.NewReader(`{"Mode":"public"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+own[strings.Index(own, "aek_"):])
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if a := answerOf(res); a.Status != status {
			t.Errorf("%s by the tenant's own administrator: %d %s", method, a.Status, a.Body)
		}
	}
	for _, bad := range []string{`{"Mode":"x"}`, `{"Mode":"list","Allow":["x"]}`, `{`} {
		if a := n.call(t, "PUT", "/admin/api/v1/tenants/default/egress", bad); a.Status != 400 {
			t.Errorf("%s: %d %s", bad, a.Status, a.Body)
		}
	}
	if a := n.call(t, "GET", "/admin/api/v1/audit", nil); strings.Count(a.Body, "tenant.egress") != 4 {
		t.Errorf("the audit trail: %s", a.Body)
	}
}
