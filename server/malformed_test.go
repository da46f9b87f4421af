package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"apiengine/engine"
	"apiengine/server"
)

// What net/http refuses by itself carries the envelope too; an answer that only looks like
// such a refusal goes out as it is.
func TestMalformedRequests(t *testing.T) {
	const lookalike = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	answer := &engine.Result{ResponseType: "auto", IsText: true, Body: make([]byte, 4000), Execution: &engine.Execution{ID: "e"}}
	e := &fakeEngine{answer: answering(answer)}
	s := newServer(t, server.Config{Engine: e, MaxHeader: 4096})
	h := s.HTTPServer()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(s.Listener(l)) }()
	defer func() {
		h.Close()
		<-served
	}()
	// An answer whose last write to the connection, behind its first 4096 bytes, is the look-alike.
	raw, _ := exchanged(t, l.Addr(), "GET /apiengine/k HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	head := strings.Index(raw, "\r\n\r\n") + 4 - len("Connection: close\r\n")
	answer.Body = []byte(strings.Repeat("x", 4096-head) + lookalike)
	for _, c := range []struct {
		request string
		status  int
		kind    string
	}{
		{"GET /hello/%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"},
		{"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "bad_request"},
		{"GET / HTTP/1.1\r\n\r\n", 400, "bad_request"},
		{"nonsense\r\n\r\n", 400, "bad_request"},
		{"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 16<<10) + "\r\n\r\n", 431, "payload_too_large"},
		{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: odd\r\n\r\n", 501, "bad_request"},
		{"GET /apiengine/k HTTP/1.1\r\nHost: a\r\n\r\nGET /hello/%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"},
	} {
		raw, r := exchanged(t, l.Addr(), c.request)
		if strings.Contains(c.request, "/apiengine/k") {
			first, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(first.Body); err != nil || string(body) != string(answer.Body) {
				t.Errorf("the look-alike came as %q (%v)", body, err)
			}
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Errorf("%.60q: %v in %q", c.request, err, raw)
			continue
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != c.status || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") ||
			!strings.Contains(string(body), `"Kind":"`+c.kind+`"`) || !strings.Contains(string(body), res.Header.Get("X-Request-Id")) {
			t.Errorf("%.60q: %d %s (%v)", c.request, res.StatusCode, body, err)
		}
	}
}

// exchanged sends bytes and returns all that comes back.
func exchanged(t *testing.T, addr net.Addr, request string) (string, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, request)
	raw, err := io.ReadAll(conn)
	if err != nil && len(raw) == 0 {
		t.Errorf("%.60q: %v", request, err)
	}
	return string(raw), bufio.NewReader(strings.NewReader(string(raw)))
}
