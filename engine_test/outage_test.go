package engine_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"apiengine/internal/app"
)

// E8: a definition is saved while it runs: the running call ends with the version that it
// began with; the next has the new one.
func TestADefinitionSavedWhileItRuns(t *testing.T) {
	for _, p := range pairsWith {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			version := func(word string) fstest.MapFS {
				files := signals()
				files["run.js"] = js("Lock: true\nTimeout: 30", "if (V8.Param.Wait) {"+sayStarted+untilLetGo+"}\n"+countOnce+"return { Code: 1, Data: '"+word+"' };")
				return files
			}
			h.load(t, tenant, version("old"))
			run := h.begin(t, tenant, "run", `{"Wait":true}`)
			h.load(t, tenant, version("new"))
			h.do(tenant, "POST", "/apiengine/letgo", "{}")
			if a := <-run; a.JSON.Code != 1 || a.JSON.Data != "old" {
				t.Errorf("the running call: %d %s", a.Status, a.Body)
			}
			if a := h.do(tenant, "POST", "/apiengine/run", "{}"); a.JSON.Data != "new" {
				t.Errorf("the next call: %d %s", a.Status, a.Body)
			}
			if n := h.data(tenant, "count"); n != "2" {
				t.Errorf("the counter is %s", n)
			}
		})
	}
}

// E9: the database is down. Definitions that are known go on where they need none; what
// needs it is refused with store_unavailable, and works again when the database is back.
func TestTheStoreIsDown(t *testing.T) {
	p, through, _ := proxiedDatabase(t)
	h := newHouse(t, pair{}, func(s *app.Settings) { s.DatabaseURL, s.LockBackend = through, "embedded" })
	tenant := h.tenant(t)
	files := keyedAPIs()
	files["plain.js"] = js("Timeout: 5", "return { Code: 1 };")
	files["cached.js"] = js("Lock: true\nTimeout: 5", "V8.Cache.Set('x', '1'); return { Code: 1, Data: V8.Cache.Get('x') };")
	files["open.js"] = js("AllowAnonymous: true", "return { Code: 1 };")
	h.load(t, tenant, files)
	if a := h.do(tenant, "POST", "/apiengine/locked", `{"Id":1}`); a.JSON.Code != 1 {
		t.Fatalf("before: %d %s", a.Status, a.Body)
	}
	const down = "503 store_unavailable"
	cases := []struct{ method, path, key, want string }{
		{"POST", "/apiengine/plain", "", "200 <nil>"},
		{"POST", "/apiengine/cached", "", "200 <nil>"},
		{"POST", "/apiengine/open", "", "200 <nil>"},
		{"POST", "/apiengine/nobody", "", "404 not_found"},
		{"POST", "/apiengine/pay", "", down},
		{"POST", "/apiengine/locked", "", down},
		{"POST", "/apiengine/plain", "k", down}, // a key needs the database
		{"PUT", "/admin/api/v1/definitions/fresh", "", down},
	}
	p.Refuse(true)
	for _, c := range cases {
		body := `{"Id":1}`
		if c.method == "PUT" {
			body = `{"ApiV8Code":"return 1;"}`
		}
		a := h.keyed(tenant, c.path, c.key, body)
		if c.method == "PUT" {
			a = h.do(tenant, c.method, c.path, body)
		}
		if got := fmt.Sprintf("%d %s", a.Status, a.kind()); got != c.want || a.Status == 503 && a.Header.Get("Retry-After") == "" {
			t.Errorf("%s, the database down: %s %v, want %s: %s", c.path, got, a.Header, c.want, a.Body)
		}
	}
	if a := h.do(tenant, "GET", "/readyz", ""); a.Status != 503 {
		t.Errorf("/readyz: %d %s", a.Status, a.Body)
	}
	p.Refuse(false)
	for _, path := range []string{"plain", "pay", "locked"} {
		if a := h.keyed(tenant, "/apiengine/"+path, "k", `{"Id":1}`); a.Status >= 400 {
			t.Errorf("%s, the database back: %d %s", path, a.Status, a.Body)
		}
	}
	if n := h.data(tenant, "count"); n != "3" {
		t.Errorf("the counter is %s", n)
	}
}
