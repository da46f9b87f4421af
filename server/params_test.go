package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"apiengine/server"
)

const (
	ctJSON = "Content-Type: application/json"
	ctForm = "Content-Type: application/x-www-form-urlencoded"
	ctXML  = "Content-Type: application/xml"
)

func TestParam(t *testing.T) {
	for _, c := range []struct {
		name, query, ctype, body string
		want                     string // "" = no parameters
	}{
		{name: "nothing", want: ""},
		{name: "query", query: "a=1&b=x%20y", want: `{"a":"1","b":"x y"}`},
		{name: "repeated query", query: "a=2&a=1&a=3", want: `{"a":["2","1","3"]}`},
		{name: "JSON untouched", ctype: ctJSON, body: "{ \"n\" : 12345678901234567890, \"f\":1.50 }\n", want: `{ "n" : 12345678901234567890, "f":1.50 }`},
		{name: "JSON with a mark", ctype: ctJSON, body: "\xef\xbb\xbf{\"a\":1}", want: `{"a":1}`},
		{name: "JSON with charset", ctype: ctJSON + "; charset=UTF-8", body: `{"a":"ü"}`, want: `{"a":"ü"}`},
		{name: "JSON subtype", ctype: "Content-Type: application/vnd.x+json", body: `{"a":1}`, want: `{"a":1}`},
		{name: "JSON over query", query: "a=q&b=q", ctype: ctJSON, body: `{"a":1}`, want: `{"a":1,"b":"q"}`},
		{name: "empty JSON and query", query: "b=q", ctype: ctJSON, body: `{ }`, want: `{"b":"q"}`},
		{name: "escaped name wins too", query: "a=q", ctype: ctJSON, body: `{"\u0061":1}`, want: `{"a":1}`},
		{name: "null wins", query: "a=q", ctype: ctJSON, body: `{"a":null}`, want: `{"a":null}`},
		{name: "form over query", query: "a=q&b=q", ctype: ctForm, body: "a=f&c=f&c=g", want: `{"a":"f","b":"q","c":["f","g"]}`},
		{name: "no type, JSON", body: ` {"a":1}`, want: `{"a":1}`},
		{name: "text, JSON", ctype: "Content-Type: text/plain;charset=UTF-8", body: `{"a":1}`, want: `{"a":1}`},
		{name: "text, JSON with a mark", ctype: "Content-Type: text/plain", body: "\xef\xbb\xbf {\"a\":1}", want: `{"a":1}`},
		{name: "XML leaves", ctype: ctXML, body: "<?xml version=\"1.0\"?>\n<xml><id><![CDATA[7]]></id><o><item>a</item><item>b</item></o><e/><t>1 &lt; 2</t></xml>",
			want: `{"id":"7","item":["a","b"],"e":"","t":"1 < 2"}`},
		{name: "XML over query", query: "id=q&x=q", ctype: "Content-Type: text/xml", body: "<x><id>1</id></x>", want: `{"id":"1","x":"q"}`},
		{name: "names of JavaScript", query: "__proto__=1&constructor=2", want: `{"__proto__":"1","constructor":"2"}`},
		{name: "platform names are the engine's affair", ctype: ctJSON, body: `{"_CurrentUser":{"Id":1}}`, want: `{"_CurrentUser":{"Id":1}}`},
		{name: "deep, just", ctype: ctJSON, body: `{"a":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + "}",
			want: `{"a":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + "}"},
		{name: "brackets in a text are no depth", ctype: ctJSON, body: `{"a":"\"` + strings.Repeat("[{", 600) + `"}`, want: `{"a":"\"` + strings.Repeat("[{", 600) + `"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &fakeEngine{}
			g := do(t, newServer(t, server.Config{Engine: e}).Handler(), post(c.query, c.ctype, c.body))
			call, _ := e.seen()
			if g.status != 200 {
				t.Fatalf("%d %s", g.status, g.body)
			}
			if c.query == "" && string(call.Param) != c.want && !strings.Contains(c.ctype, "xml") {
				t.Fatalf("a single source was changed: %s", call.Param)
			}
			if c.want != "" && !sameJSON(t, string(call.Param), c.want) {
				t.Errorf("got %s, want %s", call.Param, c.want)
			}
		})
	}
}

func post(query, ctype, body string) ask {
	a := ask{method: http.MethodPost, target: "/apiengine/k", body: body}
	if query != "" {
		a.target += "?" + query
	}
	if ctype != "" {
		a.header = []string{ctype}
	}
	return a
}

func TestBadParams(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 512) + strings.Repeat("]", 512) + "}"
	for _, c := range []struct {
		name, query, ctype, body string
		want                     string // in Msg
	}{
		{"query encoding", "a=%zz", "", "", "query string"},
		{"query not UTF-8", "a=%ff", "", "", `"a" is not UTF-8`},
		{"query semicolon", "a=1;b=2", "", "", "query string"},
		{"JSON broken", "", ctJSON, "{\n \"a\": tru\n}", "line 2, column"},
		{"JSON ends early", "", ctJSON, `{"a":1`, "line 1, column 7"},
		{"JSON only space", "", ctJSON, "  ", "empty"},
		{"JSON twice", "", ctJSON, `{"a":1} {"b":2}`, "not valid JSON at line 1"},
		{"JSON then rubbish", "", ctJSON, `{"a":1}x`, "not valid JSON at line 1"},
		{"JSON duplicate", "", ctJSON, `{"a":1,"a":2}`, "duplicate"},
		{"JSON duplicate inside, escaped", "", ctJSON, `{"o":{"a":1,"\u0061":2}}`, "duplicate"},
		{"JSON not UTF-8", "", ctJSON, "{\"a\":\"\xff\"}", "UTF-8"},
		{"JSON lone surrogate", "", ctJSON, `{"a":"\ud800"}`, "line 1"},
		{"JSON array", "", ctJSON, `[1]`, "not an array"},
		{"JSON null", "", ctJSON, `null`, "not null"},
		{"JSON number", "", ctJSON, `1`, "not a number"},
		{"JSON too deep", "", ctJSON, deep, "deeper than 512 at line 1, column 517"},
		{"JSON a million deep", "", ctJSON, strings.Repeat("[", 1<<20), "deeper than 512"},
		{"form encoding", "", ctForm, "a=%zz", "form"},
		{"form that is JSON", "", ctForm, `{"a":1}`, "looks like JSON"},
		{"form not UTF-8", "", ctForm, "a=%ff", "not UTF-8"},
		{"text that is no JSON", "", "Content-Type: text/plain", "hello", "not understood"},
		{"no type and no JSON", "", "", "a=1", "not understood"},
		{"unknown type", "", "Content-Type: application/pdf", "%PDF-", "application/pdf"},
		{"broken type", "", "Content-Type: ;;", "{}", "cannot be read"},
		{"other charset", "", ctJSON + "; charset=gbk", `{}`, "UTF-8, not gbk"},
		{"XML broken", "", ctXML, "<a>\n<b></a>", "line 2"},
		{"XML not closed", "", ctXML, "<a><b>", "not closed"},
		{"XML empty", "", ctXML, " ", "no element"},
		{"XML two roots", "", ctXML, "<a/><b/>", "second element"},
		{"XML text outside", "", ctXML, "<a/>x", "outside"},
		{"XML document type", "", ctXML, `<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>`, "document type"},
		{"XML bomb", "", ctXML, `<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;">]><a>&y;</a>`, "document type"},
		{"XML unknown entity", "", ctXML, `<a>&x;</a>`, "entity"},
		{"XML other encoding", "", ctXML, `<?xml version="1.0" encoding="gbk"?><a/>`, "gbk"},
		{"XML too deep", "", ctXML, strings.Repeat("<a>", 513), "too deep"},
		{"multipart without boundary", "", "Content-Type: multipart/form-data", "x", "boundary"},
		{"multipart broken", "", "Content-Type: multipart/form-data; boundary=b", "--b\r\nrubbish", "part 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &fakeEngine{}
			g := do(t, newServer(t, server.Config{Engine: e}).Handler(), post(c.query, c.ctype, c.body))
			if _, n := e.seen(); g.status != 400 || g.kind(t) != "bad_request" || n != 0 || !strings.Contains(g.envelope(t).Msg, c.want) {
				t.Errorf("%d %s, want %q", g.status, g.body, c.want)
			}
		})
	}
}

func TestJSONErrorPosition(t *testing.T) {
	g := do(t, newServer(t, server.Config{}).Handler(), post("", ctJSON, "{\n  \"ü\": 1,\n  \"ü\": 2\n}"))
	d := g.envelope(t).DataAppend.Error
	if d["Line"] != 3.0 || d["Column"] != 3.0 {
		t.Errorf("%s", g.body)
	}
}

func TestMultipart(t *testing.T) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range []struct{ field, file, text string }{
		{"a", "", "1"}, {"a", "", "2"}, {"doc", "../up/räp.txt", "hello"}, {"doc", "x.txt", "one"}, {"doc", "x.txt", "two"},
	} {
		var part interface{ Write([]byte) (int, error) }
		if part, _ = w.CreateFormField(f.field); f.file != "" {
			part, _ = w.CreateFormFile(f.field, f.file)
		}
		fmt.Fprint(part, f.text)
	}
	w.Close()
	e := &fakeEngine{}
	g := do(t, newServer(t, server.Config{Engine: e}).Handler(), post("b=q", "Content-Type: "+w.FormDataContentType(), b.String()))
	call, _ := e.seen()
	want := map[string]string{"räp.txt": "aGVsbG8=", "x.txt": "b25l", "x (2).txt": "dHdv"}
	if g.status != 200 || !maps.Equal(call.Files, want) {
		t.Errorf("%d %s: files %v", g.status, g.body, call.Files)
	}
	var p map[string]any
	if err := json.Unmarshal(call.Param, &p); err != nil || fmt.Sprint(p["b"]) != "q" || !strings.HasPrefix(fmt.Sprint(p["a"]), "[1 2") {
		t.Errorf("param %s: %v", call.Param, err)
	}
}

func TestRunAddress(t *testing.T) {
	for _, c := range []struct {
		method, target, body string
		status               int
		key                  string
	}{
		{"POST", "/api/ApiEngine/Run", `{"ApiEngineKey":"order_pay","a":1}`, 200, "order_pay"},
		{"POST", "/api/apiengine/run", `{"ApiEngineKey":"order_pay"}`, 200, "order_pay"},
		{"POST", "/api/ApiEngine/Run--OsClient--acme--", `{"ApiEngineKey":"k"}`, 200, "k"},
		{"POST", "/api/ApiEngine/Run", `{"a":1}`, 400, ""},
		{"POST", "/api/ApiEngine/Run", `{"ApiEngineKey":7}`, 400, ""},
		{"GET", "/api/ApiEngine/Run?ApiEngineKey=k", "", 405, ""},
	} {
		e := &fakeEngine{}
		a := ask{method: c.method, target: c.target, body: c.body, header: []string{ctJSON}}
		g := do(t, newServer(t, server.Config{Engine: e}).Handler(), a)
		call, _ := e.seen()
		if g.status != c.status || call.Key != c.key || c.status == 200 && string(call.Param) != c.body {
			t.Errorf("%s %s: %d key %q param %s", c.method, c.target, g.status, call.Key, call.Param)
		}
	}
}

func TestWhatTheScriptSeesOfHeaders(t *testing.T) {
	e := &fakeEngine{}
	h := newServer(t, server.Config{Engine: e}).Handler()
	do(t, h, ask{target: "/apiengine/k", token: "acme", header: []string{"X-Sign: s", "Accept: a", "Accept: b", "Traceparent: 00-1-2-01"}})
	call, _ := e.seen()
	want := map[string]string{"X-Sign": "s", "Accept": "a, b", "Host": "example.com", "Traceparent": "00-1-2-01"}
	if !maps.Equal(call.Header, want) {
		t.Errorf("%v", call.Header)
	}
	do(t, h, ask{target: "/apiengine/k", header: []string{"Authorization: WECHATPAY2 sign=1"}})
	if call, _ = e.seen(); call.Header["Authorization"] != "WECHATPAY2 sign=1" || !call.Caller.Anonymous() {
		t.Errorf("a scheme of somebody else: %v", call.Header)
	}
}

func TestRefusedHeaders(t *testing.T) {
	for _, c := range []struct{ header, want string }{
		{"Content-Encoding: gzip", "uncompressed"},
	} {
		a := post("", ctJSON, `{}`)
		a.header = append(a.header, c.header)
		e := &fakeEngine{}
		g := do(t, newServer(t, server.Config{Engine: e}).Handler(), a)
		if _, n := e.seen(); g.status != 400 || n != 0 || !strings.Contains(g.body, c.want) {
			t.Errorf("%s: %d %s", c.header, g.status, g.body)
		}
	}
}

// FuzzParam: whatever comes in, what reaches the engine is one JSON object.
func FuzzParam(f *testing.F) {
	for _, s := range []struct{ ctype, query, body string }{
		{"application/json", "a=1", `{"a":{"b":[1,2,"x"]}}`},
		{"application/json", "%61=1", `{"\u0061":1 }`},
		{"application/x-www-form-urlencoded", "a=1&a=2", "b=%22&c"},
		{"application/xml", "", "<a><b>1</b></a>"},
		{"multipart/form-data; boundary=b", "x=1", "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n"},
		{"text/plain", "", " {}"},
	} {
		f.Add(s.ctype, s.query, s.body)
	}
	e := &fakeEngine{}
	h := newServer(f, server.Config{Engine: e}).Handler()
	f.Fuzz(func(t *testing.T, ctype, query, body string) {
		r := httptest.NewRequest(http.MethodPost, "/apiengine/k", strings.NewReader(body))
		r.Header["Content-Type"] = []string{ctype}
		r.URL.RawQuery = query
		_, before := e.seen()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		call, after := e.seen()
		var object map[string]json.RawMessage
		switch {
		case after == before:
			if w.Code < 400 || w.Code >= 500 {
				t.Fatalf("refused with %d: %s", w.Code, w.Body)
			}
		case call.Param != nil && (json.Unmarshal(call.Param, &object) != nil || object == nil):
			t.Fatalf("no object reached the engine: %q", call.Param)
		}
	})
}
