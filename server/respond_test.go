package server_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/fault"
	"apiengine/server"
)

func TestContentByResponseType(t *testing.T) {
	const (
		js   = "application/json; charset=utf-8"
		text = "text/plain; charset=utf-8"
		html = "text/html; charset=utf-8"
	)
	for _, c := range []struct {
		name, responseType string
		body               string
		isText, nothing    bool
		wantType, wantBody string
	}{
		{name: "object", responseType: "auto", body: `{"Code":1}`, wantType: js, wantBody: `{"Code":1}`},
		{name: "a business answer is 200", responseType: "auto", body: `{"Code":0,"Msg":"no"}`, wantType: js, wantBody: `{"Code":0,"Msg":"no"}`},
		{name: "array", responseType: "auto", body: `[1]`, wantType: js, wantBody: `[1]`},
		{name: "number", responseType: "auto", body: `7`, wantType: js, wantBody: `7`},
		{name: "string", responseType: "auto", body: `hi`, isText: true, wantType: text, wantBody: `hi`},
		{name: "empty string", responseType: "auto", body: ``, isText: true, wantType: text, wantBody: ``},
		{name: "nothing", responseType: "auto", nothing: true, wantType: js, wantBody: `{"Code":1}`},
		{name: "unset type", responseType: "", body: `hi`, isText: true, wantType: text, wantBody: `hi`},
		{name: "HTML string", responseType: "HTML", body: `<p>`, isText: true, wantType: html, wantBody: `<p>`},
		{name: "HTML object", responseType: "HTML", body: `{"Code":0}`, wantType: js, wantBody: `{"Code":0}`},
		{name: "HTML nothing", responseType: "HTML", nothing: true, wantType: html, wantBody: ``},
		{name: "String string", responseType: "String", body: `hi`, isText: true, wantType: text, wantBody: `hi`},
		{name: "String object", responseType: "String", body: `{"a":1}`, wantType: text, wantBody: `{"a":1}`},
		{name: "String nothing", responseType: "String", nothing: true, wantType: text, wantBody: ``},
		{name: "JSON object", responseType: "JSON", body: `{"a":1}`, wantType: js, wantBody: `{"a":1}`},
		{name: "JSON text", responseType: "JSON", body: ` {"a":1} `, isText: true, wantType: js, wantBody: `{"a":1}`},
		{name: "JSON other text", responseType: "JSON", body: `say "hi"`, isText: true, wantType: js, wantBody: `"say \"hi\""`},
		{name: "JSON nothing", responseType: "JSON", nothing: true, wantType: js, wantBody: `{"Code":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := &engine.Result{ResponseType: c.responseType, IsText: c.isText, Execution: &engine.Execution{ID: "e"}}
			if !c.nothing {
				res.Body = []byte(c.body)
			}
			g := do(t, newServer(t, server.Config{Engine: &fakeEngine{answer: answering(res)}}).Handler(), ask{target: "/apiengine/k"})
			if g.status != 200 || g.header.Get("Content-Type") != c.wantType || g.body != c.wantBody {
				t.Errorf("%d %s %q", g.status, g.header.Get("Content-Type"), g.body)
			}
		})
	}
}

func TestFile(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	png := "\x89PNG\r\n\x1a\nrest"
	file := func(name, ctype, b string) string {
		return `{"Code":1,"Data":{"FileName":"` + name + `","ContentType":"` + ctype + `","FileByteBase64":"` + b + `"}}`
	}
	for _, c := range []struct {
		name, body   string
		status       int
		ctype, dispo string
		content      string
	}{
		{"image", file("a.png", "image/png", b64([]byte(png))), 200, "image/png", `inline; filename="a.png"`, png},
		{"jpg by its other name", file("a.jpg", "image/jpg", b64([]byte("\xff\xd8\xffx"))), 200, "image/jpeg", `inline; filename="a.jpg"`, "\xff\xd8\xffx"},
		{"pdf", file("a.pdf", "application/pdf", b64([]byte("%PDF-1.7"))), 200, "application/pdf", `inline; filename="a.pdf"`, "%PDF-1.7"},
		{"webp", file("a.webp", "image/webp", b64([]byte("RIFF1234WEBPx"))), 200, "image/webp", `inline; filename="a.webp"`, "RIFF1234WEBPx"},
		{"page is no picture", file("a.html", "text/html", b64([]byte("<script>"))), 200, "text/html", `attachment; filename="a.html"`, "<script>"},
		{"svg can hold script", file("a.svg", "image/svg+xml", b64([]byte("<svg>"))), 200, "image/svg+xml", `attachment; filename="a.svg"`, "<svg>"},
		{"no type", file("a", "", b64([]byte("x"))), 200, "application/octet-stream", `attachment; filename="a"`, "x"},
		{"empty file", file("a", "text/csv", ""), 200, "text/csv", `attachment; filename="a"`, ""},
		{"name of another script", file("报表 1.csv", "text/csv", b64([]byte("x"))), 200, "text/csv",
			`attachment; filename="__ 1.csv"; filename*=UTF-8''%E6%8A%A5%E8%A1%A8%201.csv`, "x"},
		{"name that breaks out", file(`../../etc/a\"\r\nX: y;b`, "text/csv", b64([]byte("x"))), 200, "text/csv", `attachment; filename="a_X: y;b"; filename*=UTF-8''a%22X%3A%20y%3Bb`, "x"},
		{"no name", file("..", "text/csv", b64([]byte("x"))), 200, "text/csv", "attachment", "x"},
		{"business answer", `{"Code":0,"Msg":"no such file"}`, 200, "application/json; charset=utf-8", "", `{"Code":0,"Msg":"no such file"}`},
		{"not what it says", file("a.png", "image/png", b64([]byte("<script>"))), 500, "", "", "no image/png"},
		{"bad base64", file("a", "text/csv", "%%%"), 500, "", "", "base64"},
		{"bad type", file("a", "text", "eA=="), 200, "text", `attachment; filename="a"`, "x"},
		{"type with a line", file("a", `text/csv\r\nX: y`, "eA=="), 500, "", "", "media type"},
		{"no data", `{"Code":1}`, 500, "", "", "Data.FileByteBase64"},
		{"data of other types", `{"Code":1,"Data":{"FileByteBase64":7}}`, 500, "", "", "Data.FileByteBase64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := &engine.Result{ResponseType: "File", Body: []byte(c.body), Execution: &engine.Execution{ID: "e", Committed: true}}
			g := do(t, newServer(t, server.Config{Engine: &fakeEngine{answer: answering(res)}}).Handler(), ask{target: "/apiengine/k"})
			if checked := (server.AnswerPolicy{}).Check(res, ""); g.status != c.status || (fault.Of(checked) == fault.ResultInvalid) != (c.status == 500) {
				t.Fatalf("%d %s; Check said %v", g.status, g.body, checked)
			}
			if c.status == 500 {
				env := g.envelope(t)
				if g.kind(t) != "result_invalid" || !strings.Contains(env.Msg, c.content) || env.DataAppend.Error["Committed"] != true ||
					!strings.Contains(env.Msg, "committed") || g.header.Get("Content-Disposition") != "" {
					t.Errorf("%s", g.body)
				}
				return
			}
			if g.header.Get("Content-Type") != c.ctype || g.header.Get("Content-Disposition") != c.dispo || g.body != c.content {
				t.Errorf("%s, %s: %q", g.header.Get("Content-Type"), g.header.Get("Content-Disposition"), g.body)
			}
		})
	}
}

func TestHead(t *testing.T) {
	res := &engine.Result{ResponseType: "File", Body: []byte(`{"Code":1,"Data":{"FileName":"a","FileByteBase64":"eHl6"}}`), Execution: &engine.Execution{ID: "e"}}
	e := &fakeEngine{answer: answering(res), defs: map[string]apis.Definition{
		"default file":   {ResponseType: "File"},
		"default plain":  {ResponseType: "auto", Methods: []string{"GET", "POST"}},
		"default /f.txt": {ResponseType: "File"},
	}}
	srv := httptest.NewServer(newServer(t, server.Config{Engine: e}).Handler())
	defer srv.Close()
	for path, want := range map[string]struct {
		status int
		length int64
		allow  string
	}{"/apiengine/file": {200, 3, ""}, "/f.txt": {200, 3, ""}, "/apiengine/plain": {200, 3, ""}, "/api/ApiEngine/Run": {405, -2, "POST"}} {
		r, err := http.Head(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != want.status || r.Header.Get("Allow") != want.allow || want.length >= 0 && r.ContentLength != want.length {
			t.Errorf("%s: %d, Allow %q, length %d", path, r.StatusCode, r.Header.Get("Allow"), r.ContentLength)
		}
	}
	if _, n := e.seen(); n != 3 {
		t.Errorf("%d runs, want 3", n)
	}
}

func TestMethods(t *testing.T) {
	for m, want := range map[string]int{"GET": 200, "POST": 200, "PUT": 200, "PATCH": 200, "DELETE": 200, "TRACE": 405, "CONNECT": 405, "BREW": 405} {
		e := &fakeEngine{}
		g := do(t, newServer(t, server.Config{Engine: e}).Handler(), ask{method: m, target: "/apiengine/k"})
		if call, _ := e.seen(); g.status != want || want == 200 && call.Method != m {
			t.Errorf("%s: %d, engine saw %q", m, g.status, call.Method)
		}
		if want == 405 && (g.kind(t) != "method_not_allowed" || g.header.Get("Allow") == "") {
			t.Errorf("%s: %s %v", m, g.body, g.header)
		}
	}
}

// scripted is a Result with what the script said through V8.Response.
func scripted(status int, redirect string, header map[string]string) *engine.Result {
	res := jsonResult(`{"Code":1}`)
	res.Response.Status, res.Response.Redirect, res.Response.Header = status, redirect, header
	return res
}

func TestScriptResponse(t *testing.T) {
	policy := server.AnswerPolicy{Headers: []string{"Set-Cookie"}, RedirectHosts: []string{"pay.example:8443"}}
	for _, c := range []struct {
		name           string
		status         int
		redirect       string
		header, value  string
		want           int
		wantBody, loc  string
		wantHeaderSame bool
	}{
		{name: "status", status: 201, want: 201, wantBody: `{"Code":1}`},
		{name: "no content", status: 204, want: 204},
		{name: "not modified", status: 304, want: 304},
		{name: "teapot", status: 418, want: 418, wantBody: `{"Code":1}`},
		{name: "informational", status: 101, want: 500},
		{name: "status 600", status: 600, want: 500},
		{name: "negative status", status: -1, want: 500},
		{name: "path", redirect: "/a?b=1#c", want: 302, loc: "/a?b=1#c"},
		{name: "path, 307", redirect: "/a", status: 307, want: 307, loc: "/a"},
		{name: "path, 200", redirect: "/a", status: 200, want: 500},
		{name: "own host", redirect: "https://example.com/x", want: 302, loc: "https://example.com/x"},
		{name: "allowed host", redirect: "https://PAY.example:8443/x", want: 302, loc: "https://PAY.example:8443/x"},
		{name: "other host", redirect: "https://evil.example/", want: 500},
		{name: "other port", redirect: "https://pay.example/", want: 500},
		{name: "userinfo", redirect: "https://example.com@evil.example/", want: 500},
		{name: "userinfo of the own host", redirect: "https://a@example.com/", want: 500},
		{name: "two slashes", redirect: "//evil.example", want: 500},
		{name: "slash, backslash", redirect: `/\evil.example`, want: 500},
		{name: "script", redirect: "javascript:alert(1)", want: 500},
		{name: "relative", redirect: "x", want: 500},
		{name: "line", redirect: "/a\r\nSet-Cookie: x", want: 500},
		{name: "tab", redirect: "/\t/evil.example", want: 500},
		{name: "own header", header: "X-Total", value: "7", want: 200, wantBody: `{"Code":1}`, wantHeaderSame: true},
		{name: "cache", header: "cache-control", value: "max-age=5", want: 200, wantBody: `{"Code":1}`, wantHeaderSame: true},
		{name: "type", header: "content-type", value: "application/xml", want: 200, wantBody: `{"Code":1}`, wantHeaderSame: true},
		{name: "allowed by the policy", header: "Set-Cookie", value: "a=1", want: 200, wantBody: `{"Code":1}`, wantHeaderSame: true},
		{name: "bad type", header: "Content-Type", value: "x/", want: 500},
		{name: "value with a line", header: "X-A", value: "a\r\nSet-Cookie: b", want: 500},
		{name: "value with NUL", header: "X-A", value: "a\x00", want: 500},
		{name: "name with a line", header: "X-A\r\nX-B", value: "a", want: 500},
		{name: "name with a colon", header: "X-A: b", value: "a", want: 500},
		{name: "empty name", header: "", value: "a", want: 500},
		{name: "long value", header: "X-A", value: strings.Repeat("a", 4097), want: 500},
		{name: "length", header: "Content-Length", value: "1", want: 500},
		{name: "chunked", header: "transfer-encoding", value: "chunked", want: 500},
		{name: "connection", header: "Connection", value: "close", want: 500},
		{name: "location", header: "Location", value: "/x", want: 500},
		{name: "cors", header: "access-control-allow-origin", value: "*", want: 500},
		{name: "csp", header: "Content-Security-Policy", value: "x", want: 500},
		{name: "hsts", header: "Strict-Transport-Security", value: "max-age=0", want: 500},
		{name: "our token", header: "X-Fencing-Token", value: "9", want: 500},
		{name: "our id", header: "x-request-id", value: "9", want: 500},
		{name: "sniffing", header: "X-Content-Type-Options", value: "x", want: 500},
		{name: "the proxy's", header: "X-Accel-Redirect", value: "/etc", want: 500},
		{name: "the proxy's too", header: "X-Sendfile", value: "/etc", want: 500},
		{name: "server", header: "Server", value: "x", want: 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			var header map[string]string
			if c.header != "" || c.value != "" {
				header = map[string]string{c.header: c.value}
			}
			res := scripted(c.status, c.redirect, header)
			g := do(t, newServer(t, server.Config{Engine: &fakeEngine{answer: answering(res)}, Answers: policy}).Handler(), ask{target: "/apiengine/k"})
			if g.status != c.want || g.header.Get("Location") != c.loc {
				t.Fatalf("%d %q %s", g.status, g.header.Get("Location"), g.body)
			}
			if checked := policy.Check(res, "example.com"); (fault.Of(checked) == fault.ResultInvalid) != (c.want == 500) {
				t.Errorf("Check said %v", checked)
			}
			if c.want == 500 {
				if g.kind(t) != "result_invalid" {
					t.Errorf("%s", g.body)
				}
				return
			}
			if g.body != c.wantBody || c.wantHeaderSame && g.header.Get(c.header) != c.value {
				t.Errorf("%v %q", g.header, g.body)
			}
		})
	}
}

// FuzzScriptHeader: what a script sets never makes more than one message, or a header
// that it did not name, on a real connection.
func FuzzScriptHeader(f *testing.F) {
	f.Add("X-A", "b", "")
	f.Add("X-A\r\nEvil", "b", "/x")
	f.Add("X-A", "b\r\n\r\nEvil: 1", "/x\nEvil: 1")
	f.Add("X-A\x00", "b\u2028", `\\evil`)
	e := &fakeEngine{}
	s := newServer(f, server.Config{Engine: e})
	f.Fuzz(func(t *testing.T, name, value, redirect string) {
		e.answer = answering(scripted(0, redirect, map[string]string{name: value}))
		client, conn := net.Pipe()
		hs := s.HTTPServer()
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = hs.Serve(&oneConn{conn: conn})
		}()
		go func() {
			_, _ = client.Write([]byte("GET /apiengine/k HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"))
		}()
		br := bufio.NewReader(client)
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		var rest bytes.Buffer
		_, _ = rest.ReadFrom(res.Body)
		if res.Header.Get("Evil") != "" || bytes.Contains(rest.Bytes(), []byte("HTTP/1.1")) || br.Buffered() > 0 {
			t.Fatalf("split: %v %q", res.Header, rest.String())
		}
		client.Close()
		_ = hs.Close()
		<-served
	})
}

// oneConn is a listener with one connection.
type oneConn struct{ conn net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
