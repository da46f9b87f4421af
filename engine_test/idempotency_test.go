package engine_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// keyed sends a call with an Idempotency-Key; header lines are "Name: value".
func (h *house) keyed(tenant, path, key, body string, header ...string) answer {
	req := httptest.NewRequest("POST", path, strings.NewReader(body))
	req.Header.Set("OsClient", tenant)
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
		if value == "-" {
			req.Header.Del(name)
		}
	}
	rec := httptest.NewRecorder()
	h.handler.ServeHTTP(rec, req)
	return answerOf(rec.Result())
}

const countOnce = "V8.Db.FromSql(\"UPDATE counter SET n = n + 1 WHERE id = 'a'\").ExecuteNonQuery();\n"

func keyedAPIs() fstest.MapFS {
	files := signals()
	maps.Copy(files, fstest.MapFS{
		"pay.js":      js("AllowAnonymous: true", countOnce+"V8.Response.Status(201); V8.Response.Header('X-Paid', 'yes'); return { Code: 1, Data: { Id: NewGuid(), P: V8.Param } };"),
		"locked.js":   js("Lock: true\nLockKey: Id", countOnce+"return { Code: 1, Data: NewGuid() };"),
		"nodb.js":     js("Category: x", "return 'text ' + NewGuid();"),
		"html.js":     js("ResponseType: HTML", "return '<p>' + NewGuid() + '</p>';"),
		"file.js":     js("ResponseType: File", countOnce+"return { Code: 1, Data: { FileName: 'ä.bin', ContentType: 'application/octet-stream', FileByteBase64: 'AP/+AQ==' } };"),
		"redirect.js": js("Category: x", countOnce+"V8.Response.Redirect('/x?' + NewGuid());"),
		"none.js":     js("Transaction: none", countOnce+"return { Code: 1, Data: NewGuid() };"),
		"nested.js":   js("Category: x", "return V8.ApiEngine.Run('locked', { Id: 1 });"),
		"business.js": js("Category: x", countOnce+"return { Code: 0, Msg: 'no' };"),
		"throws.js":   js("Category: x", countOnce+"throw new Error('no');"),
		"big.js":      js("Category: x", countOnce+"return { Code: 1, Data: 'x'.repeat(2000000) };"),
		"required.js": js("Idempotency: required", countOnce+"return { Code: 1 };"),
		"off.js":      js("Idempotency: 'off'", countOnce+"return { Code: 1, Data: V8.Header['Idempotency-Key'] };"),
		"slow.js":     js("Timeout: 60", sayStarted+untilLetGo+countOnce+"return { Code: 1, Data: NewGuid() };"),
	})
	return files
}

// platformHeaders are those of one request.
func withoutRequest(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range []string{"X-Request-Id", "X-Lock-Wait-Ms", "Idempotency-Replayed", "Date"} {
		h.Del(name)
	}
	return h
}

// A repeat gets the first answer, byte for byte with status and headers, and does nothing.
func TestARepeatGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	for _, p := range backendPairs {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			for _, c := range []struct {
				api   string
				count string
			}{{"pay", "1"}, {"locked", "1"}, {"nodb", "0"}, {"html", "0"}, {"file", "1"}, {"redirect", "1"}, {"none", "1"}, {"nested", "1"}} {
				t.Run(c.api, func(t *testing.T) {
					tenant := h.tenant(t)
					h.load(t, tenant, keyedAPIs())
					first := h.keyed(tenant, "/apiengine/"+c.api, "k", `{"Id":1,"B":[1,{"x":12345678901234567890,"y":2}]}`)
					if first.Status >= 400 || first.Header.Get("Idempotency-Replayed") != "" {
						t.Fatalf("%d %s", first.Status, first.Body)
					}
					for range 2 { // written in another order
						again := h.keyed(tenant, "/apiengine/"+strings.ToUpper(c.api), "k", `{ "B":[1,{"y":2, "x":12345678901234567890}], "Id":1}`)
						if again.Header.Get("Idempotency-Replayed") != "true" || again.Status != first.Status || again.Body != first.Body ||
							fmt.Sprint(withoutRequest(again.Header)) != fmt.Sprint(withoutRequest(first.Header)) {
							t.Errorf("got %d %v %s\nwant %d %v %s", again.Status, again.Header, again.Body, first.Status, first.Header, first.Body)
						}
					}
					if n := h.data(tenant, "count"); n != c.count {
						t.Errorf("the work was done %s times, want %s", n, c.count)
					}
				})
			}
		})
	}
}

// What belongs to one key: the tenant, the API, the caller and the very request.
func TestTheScopeOfAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	for _, p := range []pair{backendPairs[0], backendPairs[3]} {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant, other := h.tenant(t), h.tenant(t)
			h.load(t, tenant, keyedAPIs())
			h.load(t, other, keyedAPIs())
			h.keyed(tenant, "/apiengine/pay", "k", `{"Id":9007199254740993}`)
			for _, c := range []struct {
				name, tenant, path, key, body string
				header                        []string
				want                          string
			}{
				{"the same", tenant, "/apiengine/pay", "k", `{"Id":9007199254740993}`, nil, "201 replayed"},
				{"another value", tenant, "/apiengine/pay", "k", `{"Id":9007199254740992}`, nil, "422 idempotency_mismatch"},
				{"another parameter", tenant, "/apiengine/pay?x=1", "k", `{"Id":9007199254740993}`, nil, "422 idempotency_mismatch"},
				{"another key", tenant, "/apiengine/pay", "K", `{"Id":9007199254740993}`, nil, "201"},
				{"another API", tenant, "/apiengine/nodb", "k", `{"Id":9007199254740993}`, nil, "200"},
				{"another tenant", other, "/apiengine/pay", "k", `{"Id":9007199254740993}`, nil, "201"},
				{"another caller", tenant, "/apiengine/pay", "k", `{"Id":9007199254740993}`, []string{"Authorization: -"}, "201"},
				{"no key", tenant, "/apiengine/pay", "", `{"Id":9007199254740993}`, nil, "201"},
				{"required, missing", tenant, "/apiengine/required", "", `{}`, nil, "400 idempotency_key_missing"},
				{"required", tenant, "/apiengine/required", "k", `{}`, nil, "200"},
				{"off", tenant, "/apiengine/off", "k", `{}`, nil, "200"},
				{"off, again", tenant, "/apiengine/off", "k", `{}`, nil, "200"},
				{"not printable", tenant, "/apiengine/pay", "k\x01", `{}`, nil, "400 bad_request"},
				{"not ASCII", tenant, "/apiengine/pay", "ü", `{}`, nil, "400 bad_request"},
				{"longest", tenant, "/apiengine/pay", strings.Repeat("k", 255), `{}`, nil, "201"},
				{"too long", tenant, "/apiengine/pay", strings.Repeat("k", 256), `{}`, nil, "400 bad_request"},
			} {
				a := h.keyed(c.tenant, c.path, c.key, c.body, c.header...)
				got := fmt.Sprint(a.Status)
				if a.Status >= 400 {
					got += " " + a.kind()
				} else if a.Header.Get("Idempotency-Replayed") != "" {
					got += " replayed"
				}
				if got != c.want {
					t.Errorf("%s: %s, want %s: %s", c.name, got, c.want, a.Body)
				}
			}
		})
	}
}

// A run that was rolled back leaves no record: the next call with its key runs.
func TestWhatWasRolledBackRunsAgain(t *testing.T) {
	for _, p := range []pair{backendPairs[0], backendPairs[3]} {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			h.load(t, tenant, keyedAPIs())
			for _, c := range []struct{ api, want string }{
				{"business", "200 <nil>"}, {"throws", "500 script_error"}, {"big", "500 limit_output"}, {"locked", "400 lock_key_missing"},
			} {
				for range 2 {
					a := h.keyed(tenant, "/apiengine/"+c.api, "k", "{}")
					if got := fmt.Sprintf("%d %s", a.Status, a.kind()); got != c.want || a.Header.Get("Idempotency-Replayed") != "" {
						t.Errorf("%s: %s %v", c.api, got, a.Header)
					}
				}
			}
			if n := h.data(tenant, "count"); n != "0" {
				t.Errorf("the counter is %s", n)
			}
			// Another request is free to use the key, too.
			if a := h.keyed(tenant, "/apiengine/business", "k", `{"Other":1}`); a.Status != 200 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
}

// E1: one key from 50 clients at once: one effect, one answer; whoever comes too early is
// told that it still runs.
func TestOneKeyFromManyClients(t *testing.T) {
	t.Parallel()
	for _, p := range backendPairs {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			for _, api := range []string{"pay", "locked"} {
				tenant := h.tenant(t)
				h.load(t, tenant, keyedAPIs())
				var mu sync.Mutex
				seen := map[string]int{}
				var wg sync.WaitGroup
				for range 50 {
					wg.Go(func() {
						a := h.keyed(tenant, "/apiengine/"+api, "k", `{"Id":1}`)
						mu.Lock()
						defer mu.Unlock()
						if a.kind() == "idempotency_in_progress" && a.Status == 409 {
							return
						}
						seen[fmt.Sprint(a.Status, a.Body)]++
					})
				}
				wg.Wait()
				last := h.keyed(tenant, "/apiengine/"+api, "k", `{"Id":1}`)
				if len(seen) != 1 || seen[fmt.Sprint(last.Status, last.Body)] == 0 || last.Header.Get("Idempotency-Replayed") != "true" {
					t.Errorf("%s: answers %v, kept %s", api, seen, last.Body)
				}
				if n := h.data(tenant, "count"); n != "1" {
					t.Errorf("%s: done %s times", api, n)
				}
			}
		})
	}
}

// While the first call runs a repeat gets 409, another request 422.
func TestARepeatWhileTheFirstRuns(t *testing.T) {
	for _, p := range []pair{backendPairs[0], backendPairs[3]} {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			h.load(t, tenant, keyedAPIs())
			first := make(chan answer, 1)
			go func() { first <- h.keyed(tenant, "/apiengine/slow", "k", "{}") }()
			await(t, "the script to run", func() bool { return h.data(tenant, "started") == "1" })
			if a := h.keyed(tenant, "/apiengine/slow", "k", "{}"); a.Status != 409 || a.kind() != "idempotency_in_progress" {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			if a := h.keyed(tenant, "/apiengine/slow", "k", `{"x":1}`); a.Status != 422 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			h.do(tenant, "POST", "/apiengine/letgo", "{}")
			if a, again := <-first, h.keyed(tenant, "/apiengine/slow", "k", "{}"); a.Body != again.Body || again.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s, then %s", a.Body, again.Body)
			}
		})
	}
}
