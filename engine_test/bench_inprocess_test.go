package engine_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"apiengine/internal/app"
)

// BenchmarkInProcess is one call without the network: time, bytes and allocations of the
// whole way from the request to the answer.
func BenchmarkInProcess(b *testing.B) {
	h := newHouse(b, pair{}, func(s *app.Settings) { s.LogLevel = "warn" })
	tenant := h.tenant(b)
	h.load(b, tenant, fstest.MapFS{
		"hello.js":  js("AllowAnonymous: true", "return { Code: 1, Data: { Hello: 'world' } };"),
		"locked.js": js("AllowAnonymous: true\nLock: true\nLockKey: Id", "return { Code: 1, Data: { Hello: V8.Param.Id } };"),
		"seed.js":   js("AllowAnonymous: true", "V8.Cache.Set('x', V8.Param.Value); return { Code: 1 };"),
		"cached.js": js("AllowAnonymous: true", "return { Code: 1, Data: JSON.parse(V8.Cache.Get('x')) };"),
	})
	h.do(tenant, "POST", "/apiengine/seed", asJSON(map[string]any{"Value": benchProduct}))
	for _, c := range []struct{ name, body string }{{"hello", "{}"}, {"locked", `{"Id":"a"}`}, {"cached", "{}"}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest(http.MethodPost, "/apiengine/"+c.name, strings.NewReader(c.body))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("OsClient", tenant)
				w := &sink{header: http.Header{}}
				h.handler.ServeHTTP(w, req)
				if w.status != http.StatusOK {
					b.Fatal(w.status)
				}
			}
		})
	}
	b.Run("bare handler", func(b *testing.B) {
		r := helloPeer()
		b.ReportAllocs()
		for b.Loop() {
			req := httptest.NewRequest(http.MethodPost, "/apiengine/hello", strings.NewReader("{}"))
			req.Header.Set("Content-Type", "application/json")
			r.ServeHTTP(&sink{header: http.Header{}}, req)
		}
	})
}

// sink is a ResponseWriter that keeps nothing.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return io.Discard.Write(p) }
func (s *sink) WriteHeader(status int)      { s.status = status }

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain maps of strings encode
	}
	return string(text)
}
