package engine_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"apiengine/internal/app"
)

// What a keyed call sends outside carries keys made from its own, one a request, the same
// when the call is repeated after a run that left nothing.
func TestKeysOfRequestsOutside(t *testing.T) {
	var seen []string // requests of one run come one after the other
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.Header.Get("Idempotency-Key"))
	}))
	defer s.Close()
	h := newHouse(t, pair{}, func(s *app.Settings) { s.HTTPAllow = []string{"127.0.0.1"} })
	tenant := h.tenant(t)
	const send = "V8.Http.Post('URL'); V8.Http.Put('URL'); V8.Http.Get('URL'); V8.Http.Post({Url: 'URL', Headers: {'idempotency-key': 'own'}});"
	h.load(t, tenant, fstest.MapFS{
		"undone.js": js("Category: x", strings.ReplaceAll(send, "URL", s.URL)+"return { Code: 0 };"),
		"off.js":    js("Idempotency: 'off'", strings.ReplaceAll(send, "URL", s.URL)+"return { Code: 1 };"),
	})
	keys := func(api, key string) []string {
		t.Helper()
		seen = nil
		if a := h.keyed(tenant, "/apiengine/"+api, key, "{}"); a.Status != 200 || len(seen) != 4 {
			t.Fatalf("%d %s, sent %q", a.Status, a.Body, seen)
		}
		return seen
	}
	for _, api := range []string{"undone", "off"} {
		first := keys(api, "k1")
		if first[0] == "POST " || first[1] == "PUT " || first[0][5:] == first[1][4:] || first[2] != "GET " || first[3] != "POST own" {
			t.Errorf("%s: sent %q", api, first)
		}
		if again := keys(api, "k1"); !slices.Equal(again, first) {
			t.Errorf("%s: sent %q, then %q", api, first, again)
		}
		if other := keys(api, "k2"); other[0] == first[0] {
			t.Errorf("%s: another call's request has the same key: %q", api, other)
		}
		if none := keys(api, ""); none[0] != "POST " || none[1] != "PUT " {
			t.Errorf("%s: a call without a key sent %q", api, none)
		}
	}
}
