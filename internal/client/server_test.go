package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"apiengine/apis"
	"apiengine/fault"
)

// fakeServer answers the admin API from memory, as contract.md and the server package
// describe it. A script of "syntax error" is refused as the compiler does.
type fakeServer struct {
	mu        sync.Mutex
	catalog   *apis.Catalog[struct{}]
	text      map[string]json.RawMessage // definitions by key in lower case
	version   map[string]int
	schema    map[string][]string // by database
	requests  []string            // method and path of what changes something, for the tests to look at
	header    http.Header
	always200 bool
}

func newFake(t *testing.T) (*fakeServer, *Client) {
	t.Helper()
	f := &fakeServer{schema: map[string][]string{}, text: map[string]json.RawMessage{}, version: map[string]int{},
		catalog: apis.NewCatalog(func(d apis.Definition) (struct{}, error) { return struct{}{}, testCompile(d) })}
	s := httptest.NewServer(f.routes())
	t.Cleanup(s.Close)
	return f, &Client{URL: s.URL + "/", Token: "aek_test", Tenant: "shop", HTTP: s.Client()}
}

// testCompile refuses scripts with the text "syntax error", at its place.
func testCompile(d apis.Definition) error {
	at := strings.Index(d.ApiV8Code, "syntax error")
	if at < 0 {
		return nil
	}
	line := strings.Count(d.ApiV8Code[:at], "\n") + max(1, d.FirstLine)
	err := fault.New(fault.ScriptSyntax, "%s:%d:1: unexpected word", d.FileName(), line)
	err.Fields = map[string]any{"File": d.FileName(), "Line": line, "Column": 1}
	return err
}

func (f *fakeServer) routes() http.Handler {
	m := http.NewServeMux()
	handle := func(pattern string, do func(r *http.Request, body []byte) (int, any)) {
		method, path, _ := strings.Cut(pattern, " ")
		m.HandleFunc(method+" /admin/api/v1"+path, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.header = r.Header
			if r.Method != http.MethodGet {
				f.requests = append(f.requests, r.Method+" "+strings.TrimPrefix(r.URL.EscapedPath(), "/admin/api/v1"))
			}
			var body json.RawMessage
			_ = json.NewDecoder(r.Body).Decode(&body)
			f.answer(w, r, body, do)
		})
	}
	handle("GET /definitions", func(*http.Request, []byte) (int, any) {
		out := []json.RawMessage{}
		for key := range f.text {
			out = append(out, f.shown(key))
		}
		return 200, out
	})
	handle("PUT /definitions/{key}", f.put)
	handle("DELETE /definitions/{key}", func(r *http.Request, _ []byte) (int, any) {
		key := strings.ToLower(r.PathValue("key"))
		if r.Header.Get("If-Match") != fmt.Sprintf(`"%d"`, f.version[key]) {
			return 409, fault.New(fault.VersionConflict, "the live version is %d", f.version[key])
		}
		f.drop(key)
		return 200, nil
	})
	handle("POST /schema", func(_ *http.Request, body []byte) (int, any) {
		var in struct {
			Database string
			Files    []SchemaFile
		}
		_ = json.Unmarshal(body, &in)
		applied := []string{}
		for _, file := range in.Files[len(f.schema[in.Database]):] {
			if strings.Contains(file.SQL, "broken") {
				return 400, fault.New(fault.BadRequest, "%s: no such table", file.Name)
			}
			applied = append(applied, file.Name)
		}
		f.schema[in.Database] = append(f.schema[in.Database], applied...)
		return 200, map[string]any{"Applied": applied}
	})
	handle("POST /definitions/{key}/run", func(r *http.Request, body []byte) (int, any) {
		if r.PathValue("key") == "fails" {
			return 200, json.RawMessage(`{"Status":500,"Error":{"Kind":"script_error","Msg":"boom \u001b[31m","File":"fails.js","Line":7,"Column":3,"Stack":"at f"},"Console":[],"Execution":{}}`)
		}
		return 200, json.RawMessage(`{"Status":200,"Result":{"Code":1,"Got":` + string(body) + `},"Console":[{"Level":"log","Time":"2026-01-02T03:04:05Z","Line":3,"Text":"hi"}],"Execution":{"Id":"x"}}`)
	})
	handle("POST /definitions/{key}/plan", func(*http.Request, []byte) (int, any) {
		return 200, json.RawMessage(`{"ApiEngineKey":"pay","Version":2,"Lock":{"Locked":true,"Scope":"OrderId","Value":"7","Identity":"p:{shop:OrderId:7}"},"LeaseMs":10000,"WaitMs":10000,"HoldMs":10000,"RunMs":9900,"MarginMs":100,"Why":["because"]}`)
	})
	handle("POST /tokens", func(_ *http.Request, body []byte) (int, any) {
		return 201, json.RawMessage(`{"Id":"t1","Tenant":"shop","Token":"aek_new","Name":"ci","Roles":["author"],"CreatedAt":"2026-01-02T03:04:05Z"}`)
	})
	handle("GET /tokens", func(*http.Request, []byte) (int, any) {
		return 200, json.RawMessage(`[{"Id":"t1","Tenant":"","Name":"ci","Roles":["author","viewer"],"CreatedAt":"2026-01-02T03:04:05Z"}]`)
	})
	handle("DELETE /tokens/{id}", func(r *http.Request, _ []byte) (int, any) { return 200, nil })
	handle("POST /tenants", func(*http.Request, []byte) (int, any) { return 201, json.RawMessage(`{"Name":"shop"}`) })
	handle("GET /tenants", func(*http.Request, []byte) (int, any) { return 200, json.RawMessage(`[{"Name":"shop"}]`) })
	handle("POST /sql", func(_ *http.Request, body []byte) (int, any) {
		if strings.Contains(string(body), "UPDATE") {
			return 200, json.RawMessage(`{"Columns":null,"Rows":null,"Affected":3}`)
		}
		return 200, json.RawMessage(`{"Columns":["id","note"],"Rows":[[12345678901234567890,"a\tb\u001b[0m"],[null,{"x":1}]],"Affected":0}`)
	})
	return m
}

func (f *fakeServer) put(r *http.Request, body []byte) (int, any) {
	key := strings.ToLower(r.PathValue("key"))
	live := f.version[key]
	if _, exists := f.text[key]; !exists {
		live = 0
	}
	want := fmt.Sprintf(`"%d"`, live)
	if (live > 0 && r.Header.Get("If-Match") != want) || (live == 0 && r.Header.Get("If-None-Match") != "*") {
		return 409, fault.New(fault.VersionConflict, "the live version is %d", live)
	}
	d, err := apis.DecodeJSON(body)
	if err == nil {
		err = f.catalog.Put("", 0, d)
	}
	if err != nil {
		return 400, err
	}
	f.text[key] = body
	f.version[key]++
	return 200, f.shown(key)
}

// shown is the definition with what the server knows of it.
func (f *fakeServer) shown(key string) json.RawMessage {
	return append(f.text[key][:len(f.text[key])-1:len(f.text[key])-1], fmt.Sprintf(`,"Version":%d,"SavedAt":"2026-01-02T03:04:05Z","SavedBy":"x"}`, f.version[key])...)
}

// save is a change by somebody else.
func (f *fakeServer) save(t *testing.T, src string, name string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := apis.ParseFile(name, []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := apis.EncodeJSON(d)
	if err := f.catalog.Put("", 0, d); err != nil {
		t.Fatal(err)
	}
	key := strings.ToLower(d.ApiEngineKey)
	f.text[key] = text
	f.version[key]++
}

func (f *fakeServer) drop(key string) {
	f.catalog.Delete("", key)
	delete(f.text, key)
}

func (f *fakeServer) answer(w http.ResponseWriter, r *http.Request, body []byte, do func(*http.Request, []byte) (int, any)) {
	status, data := do(r, body)
	envelope := map[string]any{"Code": 1, "Data": data}
	if r.Header.Get("Authorization") != "Bearer aek_test" || r.Header.Get("OsClient") != "shop" {
		status, data = 401, fault.New(fault.Unauthenticated, "the admin API needs a token")
	}
	if err, bad := data.(error); bad {
		details := map[string]any{"Kind": fault.Of(err), "RequestId": "r1"}
		for k, v := range fault.Details(err) {
			details[k] = v
		}
		envelope = map[string]any{"Code": 0, "Msg": fault.Public(err), "DataAppend": map[string]any{"Error": details}}
	}
	if f.always200 {
		status = 200
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(envelope)
}

// changes returns, and forgets, what was asked of the server.
func (f *fakeServer) changes() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := strings.Join(f.requests, ", ")
	f.requests = nil
	return out
}
