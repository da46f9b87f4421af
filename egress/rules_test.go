package egress_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"apiengine/egress"
	"apiengine/fault"
)

func rules(t *testing.T, text string) egress.Rules {
	t.Helper()
	r, err := egress.ParseRules([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// S49: a tenant's own rules, by scheme, host and port.
func TestRulesOfATenant(t *testing.T) {
	c := client(t, egress.Config{})
	list := rules(t, `{"Mode":"list","Allow":["https://API.example.com","http://example.com:8080/","https://[2606:4700::1111]","https://127.0.0.1"]}`)
	for _, test := range []struct {
		rules   egress.Rules
		address string
		say     string // empty: let out
	}{
		{egress.Rules{}, "https://anywhere.example/", ""},
		{rules(t, `{"Mode":"public"}`), "http://anywhere.example/", ""},
		{rules(t, `{"Mode":"off"}`), "https://anywhere.example/", "sends nothing"},
		{rules(t, `{"Mode":"list"}`), "https://anywhere.example/", "not on the list"},
		{list, "https://api.example.com/a?b", ""}, {list, "https://api.example.com:443/", ""}, {list, "https://API.Example.Com./", ""},
		{list, "http://example.com:8080/x", ""}, {list, "https://[2606:4700:0::1111]/", ""},
		{list, "http://api.example.com/", "not on the list"}, {list, "http://api.example.com:443/", "not on the list"},
		{list, "https://api.example.com:8443/", "not on the list"}, {list, "https://evil.api.example.com/", "not on the list"},
		{list, "https://api.example.com.evil/", "not on the list"}, {list, "http://example.com/", "not on the list"},
		{list, "https://api.example.com@evil.example/", "user"}, // what is refused to all stays refused
		{list, "https://127.0.0.1/", "public"}, {list, "gopher://api.example.com/", "scheme"},
	} {
		_, err := c.CheckFor(test.rules, test.address)
		if test.say == "" && err != nil {
			t.Errorf("%s: %v", test.address, err)
		} else if test.say != "" {
			refused(t, test.address, err, test.say)
		}
	}
	for _, bad := range []string{`{"Mode":"x"}`, `{"Mode":"off","Allow":["https://a.example"]}`, `{"Allow":["https://a.example"]}`, `{"mode_":"off"}`, `[]`, `x`,
		`{"Mode":"list","Allow":["a.example"]}`, `{"Mode":"list","Allow":["https://*.example"]}`, `{"Mode":"list","Allow":["ftp://a.example"]}`,
		`{"Mode":"list","Allow":["https://a.example/path"]}`, `{"Mode":"list","Allow":["https://u@a.example"]}`, `{"Mode":"list","Allow":["https://"]}`} {
		if r, err := egress.ParseRules([]byte(bad)); fault.Of(err) != fault.BadRequest {
			t.Errorf("%s is taken as %+v, %v", bad, r, err)
		}
	}
}

// Every hop of a redirect is judged by the tenant's rules.
func TestRulesOnRedirects(t *testing.T) {
	end := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "end") }))
	defer end.Close()
	start := httptest.NewServer(http.RedirectHandler(end.URL, http.StatusFound))
	defer start.Close()
	c := client(t, egress.Config{Allow: allow(t, "127.0.0.1")})
	for _, both := range []bool{true, false} {
		list := fmt.Sprintf("%q", start.URL)
		if both {
			list += fmt.Sprintf(",%q", end.URL)
		}
		res, err := c.Do(t.Context(), egress.Request{Method: "GET", URL: start.URL, Rules: rules(t, `{"Mode":"list","Allow":[`+list+`]}`)})
		if both && (err != nil || string(res.Body) != "end") {
			t.Errorf("to a host on the list: %v", err)
		} else if !both {
			refused(t, "to a host that is not on the list", err, hostOf(t, end.URL))
		}
	}
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
