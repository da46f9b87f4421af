package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/fault"
	"apiengine/server"
)

func TestCaller(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		status int
		caller string
	}{
		{"anonymous", nil, 200, ""},
		{"token", []string{"Authorization: Bearer aek_acme"}, 200, "id-acme"},
		{"scheme in any case", []string{"Authorization: bearer  aek_acme "}, 200, "id-acme"},
		{"unknown token", []string{"Authorization: Bearer aek_nobody"}, 401, ""},
		{"no token behind the scheme", []string{"Authorization: Bearer"}, 401, ""},
		{"JWT without an issuer", []string{"Authorization: Bearer a.b.c"}, 401, ""},
		{"huge", []string{"Authorization: Bearer aek_" + strings.Repeat("x", 9000)}, 401, ""},
		{"two", []string{"Authorization: Bearer aek_acme", "Authorization: Bearer aek_admin"}, 401, ""},
		{"somebody else's scheme", []string{"Authorization: Basic YTpi"}, 200, ""},
		{"names in other headers", []string{"X-User: root", "_CurrentUser: x", "Token: aek_admin"}, 200, ""},
	} {
		e := &fakeEngine{}
		g := do(t, newServer(t, server.Config{Engine: e}).Handler(), ask{target: "/apiengine/k", header: c.header})
		call, n := e.seen()
		if g.status != c.status || call.Caller.ID != c.caller || (n == 1) != (c.status == 200) {
			t.Errorf("%s: %d, %d calls by %q", c.name, g.status, n, call.Caller.ID)
		}
		if c.status == 401 && (g.envelope(t).Code != 1001 || g.header.Get("Www-Authenticate") == "") {
			t.Errorf("%s: %s", c.name, g.body)
		}
	}
}

// downTokens is a token store that cannot be reached.
type downTokens struct{}

func (downTokens) Authenticate(context.Context, string) (server.Identity, error) {
	return server.Identity{}, fault.Wrap(fault.StoreUnavailable, errors.New("dial 10.0.0.1"), "the database cannot be reached")
}

func TestTokenStoreDown(t *testing.T) {
	var log strings.Builder
	h := newServer(t, server.Config{Tokens: downTokens{}, Log: slog.New(slog.NewTextHandler(&log, nil))}).Handler()
	g := do(t, h, ask{target: "/apiengine/k", token: "acme"})
	if g.status != 503 || g.kind(t) != "store_unavailable" || strings.Contains(g.body, "10.0.0.1") || !strings.Contains(log.String(), "10.0.0.1") {
		t.Errorf("%d %s; log %s", g.status, g.body, log.String())
	}
	if g := do(t, h, ask{target: "/apiengine/k"}); g.status != 200 {
		t.Errorf("anonymous: %d %s", g.status, g.body)
	}
}

func TestGuessingIsSlowedNotTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, server.Config{AuthFailures: 3}).Handler()
		from := func(addr, token string) int {
			r := ask{target: "/apiengine/k", token: token}.request()
			r.RemoteAddr = addr
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		for i := range 3 {
			if st := from("1.1.1.1:1", "guess"); st != 401 {
				t.Fatalf("guess %d: %d", i, st)
			}
		}
		for name, c := range map[string]struct {
			addr, token string
			want        int
		}{
			"one too many":             {"1.1.1.1:2", "guess", 429},
			"good token, same address": {"1.1.1.1:3", "acme", 200},
			"anonymous, same address":  {"1.1.1.1:3", "", 200},
			"another address":          {"1.1.1.2:3", "guess", 401},
		} {
			if st := from(c.addr, c.token); st != c.want {
				t.Errorf("%s: %d", name, st)
			}
		}
		time.Sleep(time.Second) // of the bubble's clock
		if a, b := from("1.1.1.1:9", "guess"), from("1.1.1.1:9", "guess"); a != 401 || b != 429 {
			t.Errorf("a second later: %d, %d", a, b)
		}
		for i := range 5 { // one /64 is one caller
			want := 401
			if i >= 3 {
				want = 429
			}
			if st := from("[2001:db8::"+string(rune('1'+i))+"]:1", "guess"); st != want {
				t.Errorf("IPv6 guess %d: %d", i, st)
			}
		}
	})
}
