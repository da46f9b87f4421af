package engine_test

import (
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/app"
)

// echoed is what the server of these tests says of a request: method and address, the
// headers that a script may have set, and the body, a multipart one part by part.
func echoed(r *http.Request) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s", r.Method, r.URL.RequestURI())
	kind := r.Header.Get("Content-Type")
	if at, ok := strings.CutPrefix(kind, "multipart/form-data; boundary="); ok {
		kind = "multipart/form-data"
		parts := multipart.NewReader(r.Body, at)
		for p, err := parts.NextPart(); err == nil; p, err = parts.NextPart() {
			body, _ := io.ReadAll(p)
			kind += fmt.Sprintf(" (%s %s=%s)", p.FormName(), p.FileName(), body)
		}
	}
	if kind != "" {
		out.WriteString(" | " + kind)
	}
	for _, name := range []string{"Authorization", "X-A", "Accept"} {
		if v := r.Header.Values(name); len(v) > 0 {
			fmt.Fprintf(&out, " | %s: %s", name, strings.Join(v, ","))
		}
	}
	if body, _ := io.ReadAll(r.Body); len(body) > 0 {
		fmt.Fprintf(&out, " | %s", body)
	}
	return out.String()
}

func echoServer(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bytes":
			w.Header().Set("X-Kind", "raw")
			w.WriteHeader(418)
			_, _ = w.Write([]byte{0xff, 0, 'a'})
		case "/slow":
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Second):
			}
		default:
			_, _ = io.WriteString(w, echoed(r))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

const form, object = "application/x-www-form-urlencoded", "application/json"

// TestHTTPOptions: every verb and every option of V8.Http in every spelling, against a real
// server, and every refusal. U stands for the server's address.
func TestHTTPOptions(t *testing.T) {
	s := echoServer(t)
	h := newHouse(t, pair{}, func(s *app.Settings) { s.HTTPAllow, s.HTTPMaxCalls = []string{"127.0.0.1"}, 1000 })
	tenant := h.tenant(t)
	files, want := fstest.MapFS{}, map[string]string{}
	add := func(code, answer string) {
		name := fmt.Sprintf("h%d", len(want))
		files[name+".js"] = js("Timeout: 30", "var U = '"+s.URL+"';\ntry { return { Code: 1, Data: "+code+" }; } catch (e) { return { Code: 1, Data: e.name + ': ' + e.message }; }")
		want[name] = answer
	}
	for _, c := range httpCases() {
		add(c[0], c[1])
	}
	for _, verb := range []string{"Get", "Post", "Put", "Patch", "Delete"} {
		up := strings.ToUpper(verb)
		add("V8.Http."+verb+"(U + '/a?b=1')", up+" /a?b=1")
		add("await V8.Http."+verb+"Async({ Url: U + '/a', GetParam: { b: 1 } })", up+" /a?b=1")
		add("(r => [r.StatusCode, r.Content, r.ErrorMessage, r.Headers['X-Kind'] || r.Headers['x-kind'], r.RawBytes])(V8.Http."+verb+"Response(U + '/bytes'))",
			`[418 �`+"\x00"+`a  raw /wBh]`)
		add("(await V8.Http."+verb+"ResponseAsync({ Url: U + '/x' })).Content", up+" /x")
		if verb == "Get" {
			continue
		}
		for _, own := range slices.Compact([]string{"Post", verb}) {
			add("V8.Http."+verb+"({ Url: U, "+own+"Param: { a: 'x y', b: [1, 2], c: null, d: true } })", up+" / | "+form+" | a=x+y&b=1&b=2&d=true")
			add("V8.Http."+verb+"({ Url: U, "+own+"ParamString: '<a/>', ParamType: 'xml' })", up+" / | application/xml | <a/>")
			add("V8.Http."+verb+"({ Url: U, "+own+"Param: { a: { b: [null] } }, ParamType: 'json' })", up+" / | "+object+` | {"a":{"b":[null]}}`)
		}
	}
	h.load(t, tenant, files)
	for name, answer := range want {
		a := h.do(tenant, "POST", "/apiengine/"+name, "{}")
		if got := fmt.Sprint(a.JSON.Data); a.JSON.Code != 1 || got != answer && !(strings.HasSuffix(answer, "*") && strings.HasPrefix(got, strings.TrimSuffix(answer, "*"))) {
			t.Errorf("%s\n got %s %q\nwant %q", files[name+".js"].Data, a.kind(), got, answer)
		}
	}
}

func httpCases() [][2]string {
	refused := "TypeError: V8.Http."
	return [][2]string{
		{"V8.Http.Get({ Url: U + '/a?x=1#f', GetParam: { b: 'ü &', c: [1, 2], d: null, e: false } })", "GET /a?x=1&b=%C3%BC+%26&c=1&c=2&e=false"},
		{"V8.Http.Get({ Url: U, Headers: { 'X-A': 5, Accept: 'text/x', Authorization: 'Bearer t' } })", "GET / | Authorization: Bearer t | X-A: 5 | Accept: text/x"},
		{"V8.Http.Get({ Url: U, Header: { 'x-a': 'old spelling' } })", "GET / | X-A: old spelling"},
		{"V8.Http.Get({ Url: U, Timeout: 5, PostParam: null, PostParamString: undefined })", "GET /"},
		{"V8.Http.Get({ Url: U, TimeOut: 5 })", "GET /"},
		{"V8.Http.Get({ Url: U, ParamType: 'json' })", "GET /"},
		{"V8.Http.Post({ Url: U })", "POST /"},
		{"V8.Http.Post({ Url: U, PostParam: {} })", "POST / | " + form},
		{"V8.Http.Post({ Url: U, PostParamString: 'a=1&b=%20' })", "POST / | " + form + " | a=1&b=%20"},
		{"V8.Http.Post({ Url: U, PostParamString: '{\"a\":1}', ParamType: 'JSON' })", "POST / | " + object + ` | {"a":1}`},
		{"V8.Http.Post({ Url: U, PostParam: [1, 2], ParamType: 'json' })", "POST / | " + object + " | [1,2]"},
		{"V8.Http.Post({ Url: U, PostParamString: btoa('raw'), ParamType: 'binary' })", "POST / | application/octet-stream | raw"},
		{"V8.Http.Post({ Url: U, PostParamString: 'x', Headers: { 'content-type': 'text/mine' } })", "POST / | text/mine | x"},
		{"V8.Http.Post({ Url: U, PostParam: { id: 7 }, FilesByteBase64: { 'b.txt': btoa('two'), 'a.txt': btoa('one') } })",
			"POST / | multipart/form-data (id =7) (a.txt a.txt=one) (b.txt b.txt=two)"},
		{"V8.Http.Put({ Url: U, FilesByteBase64: V8.FilesByteBase64.none === undefined ? { 'a b.bin': 'AA==' } : {} })", "PUT / | multipart/form-data (a b.bin a b.bin=\x00)"},
		{"V8.Http.PostResponse({ Url: U + '/slow', Timeout: 0.2 }).ErrorMessage.length > 5", "true"},
		{"(r => [r.StatusCode, r.Content, r.RawBytes, Object.keys(r.Headers).length])(V8.Http.GetResponse({ Url: U + '/slow', TimeOut: '0.2' === '' ? 0 : 0.2 }))", "[0   0]"},
		{"V8.Http.Get({ Url: U + '/slow', Timeout: 0.2 })", "Error: *"},
		{"V8.Http.Get({ Url: 'http://10.0.0.1/' })", "Error: *"},
		{"V8.Http.Get()", refused + "Get: argument \"options\" is missing"},
		{"V8.Http.Get({})", refused + "Get: Url is missing"},
		{"V8.Http.Get({ Url: '' })", refused + "Get: Url is missing"},
		{"V8.Http.Get([U])", refused + "Get: the argument must be an object with Url"},
		{"V8.Http.Get({ Url: U, Timeot: 5 })", refused + "Get has no option Timeot; did you mean Timeout?"},
		{"V8.Http.Post({ Url: U, PatchParam: {} })", refused + "Post has no option PatchParam*"},
		{"V8.Http.Get({ Url: U, Timeout: 0 })", refused + "Get: Timeout must be seconds, more than 0 and at most 86400"},
		{"V8.Http.Get({ Url: U, Timeout: 'soon' })", refused + "Get: Timeout must be seconds, more than 0 and at most 86400"},
		{"V8.Http.Get({ Url: U, PostParam: { a: 1 } })", refused + "Get sends no body; use GetParam"},
		{"V8.Http.GetResponse({ Url: U, FilesByteBase64: { a: '' } })", refused + "GetResponse sends no body; use GetParam"},
		{"V8.Http.Post({ Url: U, ParamType: 'yaml', PostParam: {} })", refused + "Post: ParamType must be form, json, xml or binary, not yaml"},
		{"V8.Http.Post({ Url: U, PostParam: {}, PostParamString: '' })", refused + "Post: PostParam and PostParamString exclude each other"},
		{"V8.Http.Post({ Url: U, PostParam: { a: {} } })", refused + "Post: PostParam.a must be a string or a number; use ParamType json for objects"},
		{"V8.Http.Post({ Url: U, PostParam: 'x' })", refused + "Post: PostParam must be an object"},
		{"V8.Http.Post({ Url: U, PostParam: {}, ParamType: 'xml' })", refused + "Post: ParamType xml needs PostParamString"},
		{"V8.Http.Post({ Url: U, PostParamString: '*', ParamType: 'binary' })", refused + "Post: PostParamString must be base64 with ParamType binary"},
		{"V8.Http.Post({ Url: U, PostParamString: {} })", refused + "Post: PostParamString must be a string"},
		{"V8.Http.Get({ Url: U, GetParam: 'a=1' })", refused + "Get: GetParam must be an object"},
		{"V8.Http.Get({ Url: U, Headers: [1] })", refused + "Get: Headers must be an object"},
		{"V8.Http.Post({ Url: U, FilesByteBase64: { a: '*' } })", refused + `Post: FilesByteBase64["a"] is not base64`},
		{"V8.Http.Post({ Url: U, FilesByteBase64: [] })", refused + "Post: FilesByteBase64 must be {'name.txt': base64, ...}"},
		{"V8.Http.Post({ Url: U, FilesByteBase64: { a: '' }, ParamType: 'json' })", refused + "Post: FilesByteBase64 goes with PostParam and ParamType form"},
		{"V8.Http.Post({ Url: U, FilesByteBase64: { a: '' }, PostParamString: 'x' })", refused + "Post: FilesByteBase64 goes with PostParam and ParamType form"},
	}
}
