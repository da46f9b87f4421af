package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/fault"
	"apiengine/server"
)

// fakeEngine answers what a test tells it to and keeps the last call.
type fakeEngine struct {
	answer func(ctx context.Context, c engine.Call) (*engine.Result, error)
	defs   map[string]apis.Definition // by tenant + " " + key or path

	mu    sync.Mutex
	last  engine.Call
	calls int
}

func (f *fakeEngine) Invoke(ctx context.Context, c engine.Call) (*engine.Result, error) {
	f.mu.Lock()
	f.last, f.calls = c, f.calls+1
	f.mu.Unlock()
	if f.answer == nil {
		return jsonResult(`{"Code":1}`), nil
	}
	return f.answer(ctx, c)
}

func (f *fakeEngine) Describe(tenant, key, path string) (apis.Definition, bool) {
	d, ok := f.defs[tenant+" "+key+path]
	return d, ok
}

func (f *fakeEngine) seen() (engine.Call, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.calls
}

func jsonResult(body string) *engine.Result {
	r := &engine.Result{ResponseType: "auto", Execution: &engine.Execution{ID: "exec-1"}}
	if body != "" {
		r.Body = []byte(body)
	}
	return r
}

// failing answers every call with err.
func failing(err error) func(context.Context, engine.Call) (*engine.Result, error) {
	return func(context.Context, engine.Call) (*engine.Result, error) {
		return &engine.Result{Execution: &engine.Execution{ID: "exec-1"}}, err
	}
}

func answering(res *engine.Result) func(context.Context, engine.Call) (*engine.Result, error) {
	return func(context.Context, engine.Call) (*engine.Result, error) { return res, nil }
}

// fakeTokens knows aek_<name> for each of its identities.
type fakeTokens map[string]server.Identity

func (f fakeTokens) Authenticate(_ context.Context, plain string) (server.Identity, error) {
	id, ok := f[strings.TrimPrefix(plain, "aek_")]
	if !ok {
		return server.Identity{}, fault.New(fault.Unauthenticated, "unknown token")
	}
	return id, nil
}

func identity(tenant string, roles ...string) server.Identity {
	return server.Identity{Tenant: tenant, Caller: engine.Caller{ID: "id-" + tenant, Name: "Ann", Roles: roles}}
}

var people = fakeTokens{
	"admin":    identity("", "admin"),
	"author":   identity("", "author"),
	"viewer":   identity("", "viewer"),
	"none":     identity("", "clerk"),
	"acme":     identity("acme"),
	"acmeroot": identity("acme", "admin"),
}

// newServer makes a server of cfg; what it lacks is filled in.
func newServer(t testing.TB, cfg server.Config) *server.Server {
	t.Helper()
	if cfg.Engine == nil {
		cfg.Engine = &fakeEngine{}
	}
	if cfg.Tokens == nil {
		cfg.Tokens = people
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ask is one request; Header lines are "Name: value".
type ask struct {
	method, target, body string
	header               []string
	token                string
}

func (a ask) request() *http.Request {
	var body io.Reader
	if a.body != "" {
		body = strings.NewReader(a.body)
	}
	if a.method == "" {
		a.method = http.MethodGet
	}
	r := httptest.NewRequest(a.method, a.target, body)
	for _, h := range a.header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer aek_"+a.token)
	}
	return r
}

// got is an answer, read.
type got struct {
	status int
	header http.Header
	body   string
}

func do(t testing.TB, h http.Handler, a ask) got {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, a.request())
	return got{w.Code, w.Header(), w.Body.String()}
}

// envelope of an answer.
type envelope struct {
	Code       float64
	Msg        string
	Data       json.RawMessage
	DataAppend struct{ Error map[string]any }
}

func (g got) envelope(t testing.TB) envelope {
	t.Helper()
	var e envelope
	dec := json.NewDecoder(bytes.NewReader([]byte(g.body)))
	if err := dec.Decode(&e); err != nil {
		t.Fatalf("the answer is no envelope: %v: %q", err, g.body)
	}
	return e
}

func (g got) kind(t testing.TB) string {
	t.Helper()
	k, _ := g.envelope(t).DataAppend.Error["Kind"].(string)
	return k
}

func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%v: %q", err, a)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%v: %q", err, b)
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}
