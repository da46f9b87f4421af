package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/server"
)

func TestConfig(t *testing.T) {
	ok := func(context.Context) error { return nil }
	for want, cfg := range map[string]server.Config{
		"Engine":            {},
		"MaxBody":           {Engine: &fakeEngine{}, MaxBody: -1},
		"BodyTimeout":       {Engine: &fakeEngine{}, BodyTimeout: -1},
		"TrustedProxies[0]": {Engine: &fakeEngine{}, TrustedProxies: []netip.Prefix{{}}},
		"Checks[1]":         {Engine: &fakeEngine{}, Checks: []server.Check{{"a", ok}, {"a", ok}}},
		"Transfer-Encoding": {Engine: &fakeEngine{}, Answers: server.AnswerPolicy{Headers: []string{"Transfer-Encoding"}}},
		"access-control":    {Engine: &fakeEngine{}, Answers: server.AnswerPolicy{Headers: []string{"access-control-allow-origin"}}},
		"http://x":          {Engine: &fakeEngine{}, Answers: server.AnswerPolicy{RedirectHosts: []string{"http://x"}}},
	} {
		if _, err := server.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestHealth(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	s := newServer(t, server.Config{CheckTimeout: 20 * time.Millisecond, Checks: []server.Check{
		{"store", func(context.Context) error {
			return fault.Wrap(fault.StoreUnavailable, errors.New("10.0.0.1"), "the database cannot be reached")
		}},
		{"locks", hang},
		{"migrations", func(context.Context) error { return nil }},
	}})
	g := do(t, s.Handler(), ask{target: "/readyz"})
	failed, _ := g.envelope(t).DataAppend.Error["Failed"].(map[string]any)
	if g.status != 503 || len(failed) != 2 || failed["store"] != "the database cannot be reached" || failed["locks"] == nil || g.kind(t) != "store_unavailable" || g.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", g.status, g.body)
	}
	if g := do(t, s.Handler(), ask{target: "/healthz"}); g.status != 200 || g.body != `{"Code":1}` {
		t.Errorf("%d %s", g.status, g.body)
	}
	if g := do(t, newServer(t, server.Config{}).Handler(), ask{target: "/readyz"}); g.status != 200 {
		t.Errorf("%d %s", g.status, g.body)
	}
	if g := do(t, s.Handler(), ask{method: "POST", target: "/healthz"}); g.status != 405 || g.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", g.status, g.header)
	}
}

func TestDrainLetsRunningCallsFinish(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	e := &fakeEngine{answer: func(context.Context, engine.Call) (*engine.Result, error) {
		close(begun)
		<-finish
		return jsonResult(`{"Code":1}`), nil
	}}
	s := newServer(t, server.Config{Engine: e})
	done := make(chan got)
	go func() { done <- do(t, s.Handler(), ask{target: "/apiengine/k"}) }()
	<-begun
	s.Drain()
	if g := do(t, s.Handler(), ask{target: "/apiengine/k"}); g.status != 503 || g.kind(t) != "draining" || g.header.Get("Retry-After") == "" {
		t.Errorf("a new call: %d %s", g.status, g.body)
	}
	if g := do(t, s.Handler(), ask{target: "/readyz"}); g.status != 503 || g.kind(t) != "draining" {
		t.Errorf("readyz: %d %s", g.status, g.body)
	}
	if g := do(t, s.Handler(), ask{target: "/healthz"}); g.status != 200 {
		t.Errorf("healthz: %d", g.status)
	}
	close(finish)
	if g := <-done; g.status != 200 {
		t.Errorf("the running call: %d %s", g.status, g.body)
	}
}

// listen serves s on loopback as it is served in production.
func listen(t *testing.T, s *server.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hs := s.HTTPServer()
	served := make(chan struct{})
	go func() { defer close(served); _ = hs.Serve(l) }()
	t.Cleanup(func() { _ = hs.Close(); <-served })
	return l.Addr().String()
}

// raw sends text on a new connection and returns the answer.
func raw(t *testing.T, addr, text string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res, string(b)
}

func TestLimits(t *testing.T) {
	e := &fakeEngine{}
	addr := listen(t, newServer(t, server.Config{Engine: e, MaxBody: 1000, BodyTimeout: 100 * time.Millisecond, MaxURI: 2000, MaxHeader: 8192}))
	head := "POST /apiengine/k HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
	fit := `{"a":"` + strings.Repeat("x", 991) + `"}`
	for _, c := range []struct {
		name, text string
		status     int
		kind       string
	}{
		{"fits", head + "Content-Length: 999\r\n\r\n" + fit, 200, ""},
		{"chunked, fits", head + "Transfer-Encoding: chunked\r\n\r\n3e7\r\n" + fit + "\r\n0\r\n\r\n", 200, ""},
		{"expect", head + "Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n", 413, "payload_too_large"},
		{"said too long, never sent", head + "Content-Length: 99999999999\r\n\r\n", 413, "payload_too_large"},
		{"chunked, too long", head + "Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + strings.Repeat("x", 2000) + "\r\n0\r\n\r\n", 413, "payload_too_large"},
		{"slow body", head + "Content-Length: 100\r\n\r\n{\"a\":", 400, "bad_request"},
		{"long address", "GET /apiengine/k?" + strings.Repeat("x", 2000) + " HTTP/1.1\r\nHost: h\r\n\r\n", 414, "payload_too_large"},
		{"long header", "GET /apiengine/k HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 20000) + "\r\n\r\n", 431, ""},
		{"two lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, ""},
		{"length and chunks", head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, body := raw(t, addr, c.text)
			if res.StatusCode != c.status {
				t.Fatalf("%d %s", res.StatusCode, body)
			}
			if c.kind != "" && (got{body: body}).kind(t) != c.kind {
				t.Errorf("%s", body)
			}
		})
	}
}

func TestARunMayOutlastTheBodyDeadline(t *testing.T) {
	e := &fakeEngine{answer: func(ctx context.Context, _ engine.Call) (*engine.Result, error) {
		select {
		case <-ctx.Done():
			return jsonResult(""), fmt.Errorf("the run was ended: %w", context.Cause(ctx))
		case <-time.After(300 * time.Millisecond): // longer than both deadlines below
			return jsonResult(`{"Code":1}`), nil
		}
	}}
	addr := listen(t, newServer(t, server.Config{Engine: e, BodyTimeout: 50 * time.Millisecond, WriteTimeout: 50 * time.Millisecond}))
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for range 2 { // the second on the same connection
		res, err := client.Post("http://"+addr+"/apiengine/k", "application/json", strings.NewReader(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 || string(b) != `{"Code":1}` {
			t.Errorf("%d %s", res.StatusCode, b)
		}
	}
}

func TestContinueAfterTheLastAnswersDeadline(t *testing.T) {
	const deadline = 20 * time.Millisecond
	addr := listen(t, newServer(t, server.Config{WriteTimeout: deadline}))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	br := bufio.NewReader(c)
	expect := func(send string, want int) {
		t.Helper()
		_, _ = io.WriteString(c, send)
		res, err := http.ReadResponse(br, nil)
		if err != nil || res.StatusCode != want {
			t.Fatalf("%v %v, want %d", res, err, want)
		}
		_, _ = io.Copy(io.Discard, res.Body)
	}
	expect("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n", 200)
	time.Sleep(2 * deadline) // the time that must have passed, not a wait for something
	expect("POST /apiengine/k HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n", 100)
	expect("{}", 200)
}

func TestAClientThatDoesNotReadIsLeft(t *testing.T) {
	const deadline, size = 20 * time.Millisecond, 64 << 20
	big := &engine.Result{Body: bytes.Repeat([]byte("x"), size), IsText: true, Execution: &engine.Execution{ID: "e"}}
	addr := listen(t, newServer(t, server.Config{Engine: &fakeEngine{answer: answering(big)}, WriteTimeout: deadline}))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, "GET /apiengine/k HTTP/1.1\r\nHost: h\r\n\r\n")
	br := bufio.NewReader(c)
	if _, err := br.Peek(1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * deadline) // the time in which nothing was read
	if n, _ := io.Copy(io.Discard, br); n >= size {
		t.Errorf("all of %d bytes were kept for a client that did not read", n)
	}
}

func TestAClientThatLeavesEndsTheContext(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	e := &fakeEngine{answer: func(ctx context.Context, _ engine.Call) (*engine.Result, error) {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return jsonResult(""), ctx.Err()
	}}
	addr := listen(t, newServer(t, server.Config{Engine: e}))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "POST /apiengine/k HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	<-begun
	c.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the context lives on")
	}
}

func TestConnectionsOfOneAddress(t *testing.T) {
	addr := listen(t, newServer(t, server.Config{MaxConnsPerIP: 2}))
	open := func() (net.Conn, error) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
		}
		return c, err
	}
	a, errA := open()
	b, errB := open()
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	defer a.Close()
	if _, err := open(); err == nil {
		t.Error("a third connection was served")
	}
	b.Close()
	for deadline := time.Now().Add(10 * time.Second); ; {
		c, err := open()
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a closed connection is still counted")
		}
	}
}

func TestHTTPServerLimits(t *testing.T) {
	hs := newServer(t, server.Config{}).HTTPServer()
	if hs.ReadHeaderTimeout != 5*time.Second || hs.IdleTimeout != time.Minute || hs.MaxHeaderBytes != 64<<10 || hs.Addr != "127.0.0.1:8080" {
		t.Errorf("%+v", hs)
	}
}

func BenchmarkCall(b *testing.B) {
	h := newServer(b, server.Config{Engine: &fakeEngine{answer: answering(jsonResult(`{"Code":1,"Data":"hello"}`))}}).Handler()
	body := `{"ProductId":"p-17","N":3}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/apiengine/hello", strings.NewReader(body))
		r.Header["Content-Type"] = []string{"application/json"}
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}
