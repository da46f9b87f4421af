package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"apiengine/fault"
)

func TestRunAndPlan(t *testing.T) {
	_, c := newFake(t)
	r, err := c.Run(t.Context(), RunRequest{Key: "a/b", Param: json.RawMessage(`{"x":1}`), Version: 3})
	if err != nil || r.Failed() {
		t.Fatalf("%v %+v", err, r)
	}
	expect(t, "answer", r.String(), "{\n  \"Code\": 1,\n  \"Got\": {\n    \"Param\": {\n      \"x\": 1\n    },\n    \"Version\": 3\n  }\n}\n")
	expect(t, "console", r.ConsoleText(), "log   line 3: hi\n")
	r, err = c.Run(t.Context(), RunRequest{Key: "fails"})
	if err != nil || !r.Failed() {
		t.Fatalf("%v %+v", err, r)
	}
	expect(t, "failure", r.String(), "fails.js:7:3: boom \\x1b[31m (script_error, status 500)\nat f\n")
	p, err := c.Plan(t.Context(), PlanRequest{Key: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "plan", p.String(), "lock           p:{shop:OrderId:7}\nscope          OrderId\nvalue          7\nlease          10s\nwait cap       10s\nlongest hold   10s\nrenewed        never\nmargin         100ms\nrun deadline   9.9s\nwhy            because\n")
}

func TestAdmin(t *testing.T) {
	f, c := newFake(t)
	token, err := c.CreateToken(t.Context(), NewToken{Name: "ci", Roles: []string{"author"}})
	if err != nil || token.String() != "aek_new\n" {
		t.Errorf("%v %+v", err, token)
	}
	list, err := c.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "tokens", list.String(), "ID  TENANT  NAME  ROLES          SCOPES  CREATED            EXPIRES  REVOKED\nt1  (all)   ci    author,viewer          2026-01-02 03:04Z  -        -\n")
	if err := c.RevokeToken(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
	tenant, err := c.CreateTenant(t.Context(), "shop")
	if err != nil || tenant.Name != "shop" {
		t.Errorf("%v %+v", err, tenant)
	}
	tenants, err := c.Tenants(t.Context())
	if err != nil || tenants.String() != "NAME  CREATED\nshop  -\n" {
		t.Errorf("%v %s", err, tenants)
	}
	rows, err := c.SQL(t.Context(), "", "SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "rows", rows.String(), "id                    note\n12345678901234567890  a\\tb\\x1b[0m\nNULL                  {\"x\":1}\n2 rows\n")
	if rows, err = c.SQL(t.Context(), "", "UPDATE x"); err != nil || rows.String() != "3 rows changed\n" {
		t.Errorf("%v %s", err, rows)
	}
	expect(t, "asked", f.changes(), "POST /tokens, DELETE /tokens/a%2Fb, POST /tenants, POST /sql, POST /sql")
}

func TestRefusals(t *testing.T) {
	f, c := newFake(t)
	for _, f.always200 = range []bool{false, true} {
		bad := *c
		bad.Token = "aek_other"
		_, err := bad.Tokens(t.Context())
		var s *ServerError
		if !errors.As(err, &s) || fault.Of(err) != fault.Unauthenticated || err.Error() != "the admin API needs a token" || s.Fields["RequestId"] != "r1" {
			t.Errorf("always200 %v: %v", f.always200, err)
		}
		bad.Token = ""
		if _, err := bad.Tokens(t.Context()); fault.Of(err) != fault.Unauthenticated || err.Error() != "the admin API needs a token; give one by --token or APIENGINE_TOKEN" {
			t.Errorf("without a token: %v", err)
		}
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	t.Cleanup(page.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for url, want := range map[string]string{
		page.URL: "no answer of the admin API", gone.URL: "cannot be reached", "localhost:8080": "is no address of a server", "ftp://x": "is no address of a server", "http://": "is no address of a server",
	} {
		if _, err := (&Client{URL: url}).Tenants(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted")
	cancel(stop)
	if _, err := c.Tenants(ctx); !errors.Is(err, stop) {
		t.Errorf("an ended command: %v", err)
	}
}
