package engine_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Every file in testdata/cases is one case: definition files, schema files, then requests
// with the answers that must come back, in order. It is run on every backend pair, in a
// tenant of its own.
//
//	-- name.js --                         a definition file
//	-- schema/0001_x.sql --               a schema file
//	-- POST /apiengine/name --            a request: header lines, a blank line, the body;
//	                                      "Anonymous: true" sends no token; a body of lines
//	                                      under multipart/form-data is sent with CRLF
//	-- 200 --                             its answer: header lines to look for ("*" anything,
//	                                      "-" not there), a blank line, the body; in JSON the
//	                                      string "*" matches anything, and a string that ends
//	                                      in "*" what begins like it
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, pair := range backendPairs {
		t.Run(pair.name, func(t *testing.T) {
			h := newHouse(t, pair)
			for _, file := range files {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runCase(t, h, file) })
			}
		})
	}
}

func runCase(t *testing.T, h *house, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(text)
	files, err := txtar.FS(&txtar.Archive{Files: sourceFiles(archive.Files)})
	if err != nil {
		t.Fatal(err)
	}
	tenant := h.tenant(t)
	h.load(t, tenant, files)
	var req *http.Request
	for _, f := range archive.Files {
		method, path, isRequest := strings.Cut(f.Name, " ")
		switch {
		case isRequest:
			req = caseRequest(t, tenant, method, path, f.Data)
		case len(f.Name) == 3 && f.Name[0] >= '1' && f.Name[0] <= '5':
			rec := httptest.NewRecorder()
			h.handler.ServeHTTP(rec, req)
			compare(t, req, rec, f)
		case !strings.Contains(f.Name, "."):
			t.Errorf("%s: the part %q is no file, request or answer", file, f.Name)
		}
	}
}

// sourceFiles leaves out requests and answers.
func sourceFiles(all []txtar.File) []txtar.File {
	var out []txtar.File
	for _, f := range all {
		if strings.Contains(f.Name, ".") && !strings.Contains(f.Name, " ") {
			out = append(out, f)
		}
	}
	return out
}

// head splits header lines from a body; a part that begins with a blank line or with JSON has none.
func head(t *testing.T, data []byte) (http.Header, string) {
	t.Helper()
	text := string(data)
	if first, _, _ := strings.Cut(text, "\n"); !strings.Contains(first, ": ") || strings.HasPrefix(first, "{") {
		return http.Header{}, strings.TrimSpace(text)
	}
	top, body, _ := strings.Cut(text+"\n", "\n\n")
	h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(top + "\n\n"))).ReadMIMEHeader()
	if err != nil {
		t.Fatalf("headers of a case: %v", err)
	}
	return http.Header(h), strings.TrimSpace(body)
}

func caseRequest(t *testing.T, tenant, method, path string, data []byte) *http.Request {
	t.Helper()
	headers, body := head(t, data)
	if strings.HasPrefix(headers.Get("Content-Type"), "multipart/") {
		body = strings.ReplaceAll(body, "\n", "\r\n") + "\r\n"
	}
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	if body == "" {
		req.Body, req.ContentLength = http.NoBody, 0
	} else if strings.HasPrefix(body, "{") {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("OsClient", tenant)
	req.Header.Set("Authorization", "Bearer "+adminToken)
	for name, values := range headers {
		req.Header[name] = values
	}
	if headers.Get("Anonymous") != "" {
		req.Header.Del("Authorization")
		req.Header.Del("Anonymous")
	}
	return req
}

func compare(t *testing.T, req *http.Request, rec *httptest.ResponseRecorder, f txtar.File) {
	t.Helper()
	headers, body := head(t, f.Data)
	what := req.Method + " " + req.URL.String()
	if got := fmt.Sprint(rec.Code); got != f.Name {
		t.Errorf("%s: status %s, want %s: %s", what, got, f.Name, rec.Body)
	}
	for name := range headers {
		got, want := rec.Header().Get(name), headers.Get(name)
		if got != want && (want != "*" || got == "") && (want != "-" || got != "") {
			t.Errorf("%s: header %s is %q, want %q", what, name, got, want)
		}
	}
	var got, want any
	if json.Unmarshal([]byte(body), &want) == nil && json.Unmarshal(rec.Body.Bytes(), &got) == nil {
		if !matches(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", what, rec.Body, body)
		}
	} else if text := strings.TrimSpace(rec.Body.String()); text != body {
		t.Errorf("%s:\n got %s\nwant %s", what, text, body)
	}
}

// matches compares JSON values; "*" in want stands for any value that is there.
func matches(got, want any) bool {
	switch w := want.(type) {
	case string:
		if prefix, ok := strings.CutSuffix(w, "*"); ok {
			g, isText := got.(string)
			return w == "*" || isText && strings.HasPrefix(g, prefix)
		}
		return got == want
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for name, member := range w {
			if v, has := g[name]; !has || !matches(v, member) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !matches(g[i], w[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(got, want)
}
