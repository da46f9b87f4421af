package engine_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"apiengine/internal/testserver"
)

// The outbox and V8.Http on real nodes.

// mail are the APIs that send and receive. Every receipt is a row of ledger.
func mail() fstest.MapFS {
	return fstest.MapFS{
		"schema/0001_ledger.sql": {Data: []byte("-- +goose Up\nCREATE TABLE ledger (id TEXT, n INTEGER, token BIGINT);\n")},
		"send.js": js("Lock: true\nLockKey: Id",
			`var P = V8.Param, stored = V8.Outbox.Send({EventId: P.Id, Type: 'paid', Data: {n: P.N}, Target: P.Target, Key: P.Key});
			return { Code: P.Code, Data: stored };`),
		"lib.js": js("Library: true", "return {};"),
		"receive.js": js("StopHttp: false",
			`var P = V8.Param;
			if (V8.Cache.Get('broken ' + P.EventId) !== null && V8.Cache.GetAndRemove('broken ' + P.EventId) !== null) return { Code: 0, Msg: 'not yet' };
			if (!V8.Inbox.Once(P.EventId)) return { Code: 1, Data: 'again' };
			V8.Db.FromSql('INSERT INTO ledger (id, n, token) VALUES (@i, @n, @t)').AddInParameter('@i', P.EventId).AddInParameter('@n', P.Data.n).AddInParameter('@t', P.FencingToken).ExecuteNonQuery();
			return { Code: 1, Data: V8.Header['Idempotency-Key'] + ' ' + V8.InvokeType };`),
		"broken.js": js("Category: x", "V8.Cache.Set('broken ' + V8.Param.Id, '1'); return { Code: 1 };"),
		"never.js":  js("Category: x", "return { Code: V8.Cache.Exists('open') ? 1 : 0, Msg: 'closed' };"),
		"open.js":   js("Category: x", "V8.Cache.Set('open', '1'); return { Code: 1 };"),
	}
}

func (n *node) send(t *testing.T, id, target, key string, code int) answer {
	t.Helper()
	return n.call(t, "POST", "/apiengine/send", map[string]any{"Id": id, "N": 1, "Target": target, "Key": key, "Code": code})
}

// messages lists the outbox as the admin API shows it.
func (n *node) messages(t *testing.T, query string) []map[string]any {
	t.Helper()
	a := n.call(t, "GET", "/admin/api/v1/outbox"+query, nil)
	var out struct {
		Data struct{ Items []map[string]any }
	}
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil || a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return out.Data.Items
}

// databases are the flags of a node on each kind.
func mailNode(t *testing.T, kind string, args ...string) *node {
	t.Helper()
	args = append(args, "--data-dir", t.TempDir(), "--outbox-backoff", "20ms")
	if kind == "postgres" {
		args = append(args, "--database-url", testserver.Database(t))
	}
	return startNode(t, args...)
}

func TestOutboxToAnAPI(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			n := mailNode(t, kind)
			n.pushFiles(t, mail())
			if a := n.send(t, "undone", "receive", "", 0); a.Status != 200 {
				t.Fatal(a.Body)
			}
			for _, want := range []bool{true, false} {
				if a := n.send(t, "e1", "receive", "", 1); a.JSON.Data != want {
					t.Errorf("stored %v, want %v: %s", a.JSON.Data, want, a.Body)
				}
			}
			await(t, "e1 to be delivered", func() bool { return n.scalar(t, "SELECT count(*) FROM ledger WHERE id = 'e1' AND token > 0") == "1" })
			await(t, "e1 to be marked", func() bool { return n.messages(t, "?eventId=e1")[0]["State"] == "delivered" })
			if n.scalar(t, "SELECT count(*) FROM ledger") != "1" || len(n.messages(t, "")) != 1 {
				t.Error("a run that was rolled back has sent something")
			}
			for target, msg := range map[string]string{"nobody": "there is no API", "lib": "is a library", "http://10.0.0.1/": "no public address", "gopher://8.8.8.8/": "the scheme gopher", "": "Target is missing"} {
				if a := n.send(t, "x", target, "", 1); a.kind() != "script_error" || !strings.Contains(a.JSON.Msg, msg) {
					t.Errorf("to %q: %s", target, a.Body)
				}
			}
		})
	}
}

// Messages of one key arrive in their order although the first ones fail.
func TestOutboxKeepsTheOrderOfAKey(t *testing.T) {
	t.Parallel()
	n := mailNode(t, "postgres")
	n.pushFiles(t, mail())
	var want []string
	for i := range 6 {
		id := fmt.Sprint("e", i)
		want = append(want, id)
		if i%2 == 0 {
			n.call(t, "POST", "/apiengine/broken", map[string]any{"Id": id})
		}
	}
	for _, id := range want {
		n.send(t, id, "receive", "k", 1)
	}
	await(t, "all to be delivered", func() bool { return len(n.messages(t, "?state=delivered")) == len(want) })
	a := n.call(t, "POST", "/admin/api/v1/sql", map[string]any{"Sql": "SELECT string_agg(id, ' ' ORDER BY ctid) FROM ledger"})
	if !strings.Contains(a.Body, strings.Join(want, " ")) {
		t.Errorf("the order is %s", a.Body)
	}
	for _, m := range n.messages(t, "?key=k") {
		if even := strings.ContainsAny(m["EventId"].(string), "024"); even != (m["Attempts"] == 2.0) {
			t.Errorf("tries of %v: %v", m["EventId"], m["Attempts"])
		}
	}
}

func TestOutboxDeadLetters(t *testing.T) {
	t.Parallel()
	n := mailNode(t, "sqlite", "--outbox-attempts", "2")
	n.pushFiles(t, mail())
	n.send(t, "bad", "never", "k", 1)
	n.send(t, "other", "never", "", 1)
	await(t, "two dead letters", func() bool { return len(n.messages(t, "?state=dead")) == 2 })
	id := func(event string) string { return fmt.Sprint(n.messages(t, "?eventId="+event)[0]["Id"]) }
	if out := n.command(t, "outbox", "list", "--state", "dead"); !strings.Contains(out, "bad") || !strings.Contains(out, "closed") {
		t.Errorf("the list says\n%s", out)
	}
	n.call(t, "POST", "/apiengine/open", map[string]any{})
	n.command(t, "outbox", "retry", id("bad"))
	n.command(t, "outbox", "drop", id("other"))
	await(t, "the retry", func() bool { return n.messages(t, "?eventId=bad")[0]["State"] == "delivered" })
	if m := n.messages(t, "?eventId=other")[0]; m["State"] != "dropped" {
		t.Errorf("%v", m)
	}
	for path, status := range map[string]int{"/outbox/" + id("bad") + "/retry": 409, "/outbox/" + id("other") + "/drop": 409, "/outbox/999/retry": 404, "/outbox/x/drop": 404} {
		if a := n.call(t, "POST", "/admin/api/v1"+path, nil); a.Status != status {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	for _, q := range []string{"?state=x", "?limit=0", "?limit=1001", "?cursor=x"} {
		if a := n.call(t, "GET", "/admin/api/v1/outbox"+q, nil); a.Status != 400 {
			t.Errorf("%s: %d", q, a.Status)
		}
	}
	page := n.call(t, "GET", "/admin/api/v1/outbox?limit=1", nil)
	cursor := fmt.Sprint(page.JSON.Data.(map[string]any)["NextCursor"])
	if got := n.messages(t, "?limit=1&cursor="+cursor); len(got) != 1 || got[0]["EventId"] != "bad" {
		t.Errorf("the second page: %v", got)
	}
}

// E5: the node is killed when the receiver has taken the message and has not answered yet.
// Another node delivers it again, with the same EventId, and the inbox drops it.
func TestOutboxAfterAKillDeliversAgain(t *testing.T) {
	url := testserver.Database(t)
	var first, second *node
	var mu sync.Mutex
	var ids, tokens []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		ids, tokens = append(ids, r.Header.Get("Idempotency-Key")), append(tokens, r.Header.Get("X-Fencing-Token"))
		times := len(ids)
		mu.Unlock()
		to := first
		if times > 1 {
			to = second
		}
		if a, err := to.try(t.Context(), "POST", "/apiengine/receive", string(text)); err != nil || a.Status != 200 {
			t.Errorf("receive: %v %s", err, a.Body)
		}
		if times == 1 {
			first.stop(syscall.SIGKILL)
		}
	}))
	defer receiver.Close()
	args := func() []string {
		return []string{"--data-dir", t.TempDir(), "--database-url", url, "--http-allow", "127.0.0.1", "--outbox-lease", "1s"}
	}
	first = startNode(t, args()...)
	first.pushFiles(t, mail())
	_, _ = first.try(t.Context(), "POST", "/apiengine/send", map[string]any{"Id": "e", "N": 1, "Target": receiver.URL, "Key": "", "Code": 1}) // it may be killed before it answers
	<-first.done
	second = startNode(t, args()...)
	await(t, "the second delivery", func() bool { return second.messages(t, "?eventId=e")[0]["State"] == "delivered" })
	mu.Lock()
	defer mu.Unlock()
	if len(ids) != 2 || slices.Contains(ids[1:], ids[0]) == false || ids[0] != "e" || tokens[0] == "" || tokens[0] != tokens[1] {
		t.Errorf("delivered with %v, tokens %v", ids, tokens)
	}
	if got := second.scalar(t, "SELECT count(*) FROM ledger"); got != "1" {
		t.Errorf("the ledger has %s rows", got)
	}
}

func TestHttpOfAScript(t *testing.T) {
	seen := make(chan *http.Request, 50)
	bodies := make(chan string, 50)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		seen <- r
		bodies <- string(text)
		w.Header().Set("X-Say", "hi")
		if r.URL.Path == "/missing" {
			w.WriteHeader(404)
		}
		io.WriteString(w, "héllo")
	}))
	defer s.Close()
	n := startNode(t, "--data-dir", t.TempDir(), "--http-allow", "127.0.0.1")
	dir := t.TempDir()
	run := func(header, code string) answer {
		t.Helper()
		text := js(header, strings.ReplaceAll(strings.ReplaceAll(code, "OWN", n.URL), "URL", s.URL)).Data
		write(t, dir, "out.js", string(text))
		n.command(t, "push", dir)
		return n.call(t, "POST", "/apiengine/out", map[string]any{"Id": "1"})
	}
	a := run("Lock: true\nLockKey: Id", `return { Code: 1, Data: V8.Http.Post({Url: 'URL/p?a=1', GetParam: {b: 'x y'}, ParamType: 'json', PostParam: {n: [1]}, Headers: {'X-Mine': 'm'}}) };`)
	r, body := <-seen, <-bodies
	if a.JSON.Data != "héllo" || r.URL.RawQuery != "a=1&b=x+y" || body != `{"n":[1]}` || r.Header.Get("Content-Type") != "application/json" ||
		r.Header.Get("X-Mine") != "m" || r.Header.Get("X-Fencing-Token") != a.Header.Get("X-Fencing-Token") || r.Header.Get("X-Apiengine-Hops") != "1" {
		t.Errorf("%s\n%v %s %v", a.Body, r.URL, body, r.Header)
	}
	a = run("Category: x", `return { Code: 1, Data: V8.Http.PutResponse({Url: 'URL/missing', PutParam: {a: 1, b: null, c: ['x', 'y']}}) };`)
	r, body = <-seen, <-bodies
	data, _ := a.JSON.Data.(map[string]any)
	if data["StatusCode"] != 404.0 || data["Content"] != "héllo" || data["RawBytes"] != "aMOpbGxv" || data["ErrorMessage"] != "" ||
		data["Headers"].(map[string]any)["X-Say"] != "hi" || r.Method != "PUT" || body != "a=1&c=x&c=y" {
		t.Errorf("%s\n%s %s", a.Body, r.Method, body)
	}
	for code, want := range map[string]string{
		`return { Code: 1, Data: V8.Http.Get('URL') };`: `"Data":"héllo"`,
		`var r = V8.Http.GetResponse('http://127.0.0.1:1/'); return { Code: 1, Data: [r.StatusCode, r.ErrorMessage !== ''] };`:     `[0,true]`,
		`try { V8.Http.Get('http://127.0.0.1:1/'); } catch (e) { return { Code: 1, Data: 'caught' }; }`:                            `"caught"`,
		`return { Code: 1, Data: V8.Http.Get('http://169.254.169.254/latest') };`:                                                  `no public address`,
		`return { Code: 1, Data: V8.Http.Get('OWN/healthz') };`:                                                                    `this server itself`,
		`return { Code: 1, Data: V8.Http.Get({Url: 'URL', Headers: {Host: 'x'}}) };`:                                               `belongs to the connection`,
		`return { Code: 1, Data: V8.Http.Get({Url: 'URL', Header: {}, Tiemout: 1}) };`:                                             `did you mean Time`,
		`return { Code: 1, Data: V8.Http.Post({Url: 'URL', PostParam: {a: {}}}) };`:                                                `ParamType json`,
		`for (var i = 0; i < 21; i++) { try { V8.Http.Get('http://127.0.0.1:1/'); } catch (e) {} } return { Code: 1, Data: 'x' };`: `limit_output`,
		`return { Code: 1, Data: await V8.Http.GetAsync('URL') };`:                                                                 `"Data":"héllo"`,
	} {
		if a := run("Category: x", code); !strings.Contains(a.Body, want) {
			t.Errorf("%s\n%s", code, a.Body)
		}
	}
}
