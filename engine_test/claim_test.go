package engine_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"apiengine/internal/app"
)

// leaving is a keyed call whose caller can give it up.
func (h *house) leaving(ctx context.Context, tenant, path, key string) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		req := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader("{}"))
		req.Header.Set("OsClient", tenant)
		req.Header.Set("Authorization", "Bearer "+adminToken)
		req.Header.Set("Idempotency-Key", key)
		rec := httptest.NewRecorder()
		h.handler.ServeHTTP(rec, req)
		out <- answerOf(rec.Result())
	}()
	return out
}

// A caller that hangs up on a keyed call has its answer kept when the run had begun a
// transaction; else the run ends, and the key is free.
func TestHangingUpOnAKeyedCall(t *testing.T) {
	for _, p := range pairsWith {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			for _, c := range []struct {
				name, code string
				replayed   string
			}{
				{"in a transaction", countOnce + sayStarted + untilLetGo, "true"},
				{"before a transaction", sayStarted + untilLetGo + countOnce, ""},
			} {
				tenant := h.tenant(t)
				files := signals()
				files["run.js"] = js("Timeout: 30", c.code+"return { Code: 1, Data: NewGuid() };")
				h.load(t, tenant, files)
				ctx, leave := context.WithCancel(t.Context())
				run := h.leaving(ctx, tenant, "/apiengine/run", "k")
				await(t, "the script to run", func() bool { return h.data(tenant, "started") == "1" })
				leave()
				if c.replayed == "" { // else it waits to be let go
					<-run
				}
				h.do(tenant, "POST", "/apiengine/letgo", "{}")
				if c.replayed != "" {
					<-run
				}
				a := h.keyed(tenant, "/apiengine/run", "k", "{}")
				if a.JSON.Code != 1 || a.Header.Get("Idempotency-Replayed") != c.replayed {
					t.Errorf("%s: the repeat: %d %v %s", c.name, a.Status, a.Header, a.Body)
				}
				if n := h.data(tenant, "count"); n != "1" {
					t.Errorf("%s: done %s times", c.name, n)
				}
			}
		})
	}
}

// A run that lasts longer than the lease of its claim keeps it: the run renews it.
func TestALongRunKeepsItsKey(t *testing.T) {
	const lease = time.Second
	h := newHouse(t, pair{postgres: true}, func(s *app.Settings) { s.ClaimLease = lease })
	tenant := h.tenant(t)
	h.load(t, tenant, keyedAPIs())
	first := h.leaving(t.Context(), tenant, "/apiengine/slow", "k")
	await(t, "the script to run", func() bool { return h.data(tenant, "started") == "1" })
	asked := 0
	for began := time.Now(); time.Since(began) < 3*lease; asked++ {
		if a := h.keyed(tenant, "/apiengine/slow", "k", "{}"); a.Status != 409 || a.kind() != "idempotency_in_progress" {
			t.Fatalf("after %v: %d %s", time.Since(began), a.Status, a.Body)
		}
	}
	h.do(tenant, "POST", "/apiengine/letgo", "{}")
	a, again := <-first, h.keyed(tenant, "/apiengine/slow", "k", "{}")
	if a.Status != 200 || again.Body != a.Body || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%d %s, then %d %s", a.Status, a.Body, again.Status, again.Body)
	}
	if n := h.data(tenant, "count"); n != "1" {
		t.Errorf("done %s times", n)
	}
	t.Logf("refused %s repeats", fmt.Sprint(asked))
}
