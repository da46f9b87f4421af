package server

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"apiengine/fault"
)

// net/http answers a request that it cannot read by itself, in plain text and without
// asking any handler. On a Listener of this file such an answer carries the envelope.

// Listener returns l for Serve of HTTPServer's server.
func (s *Server) Listener(l net.Listener) net.Listener { return &worded{l, s} }

type worded struct {
	net.Listener
	s *Server
}

// Accept implements net.Listener.
func (l *worded) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &wordedConn{Conn: c, s: l.s}, nil
}

// wordedConn watches for net/http's own answers. In a handler nothing is one, whatever the
// bytes of the answer look like.
type wordedConn struct {
	net.Conn
	s      *Server
	inside atomic.Bool
}

// Write implements net.Conn.
func (c *wordedConn) Write(p []byte) (int, error) {
	if c.inside.Load() {
		return c.Conn.Write(p)
	}
	line, text, own := bytes.Cut(p, []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"))
	if !own || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(c.s.malformed(string(line), string(text))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// malformed is net/http's answer of that status line and text, in our form.
func (s *Server) malformed(line, text string) []byte {
	x := &exchange{s: s, requestID: requestID(&http.Request{})}
	kind, msg := fault.BadRequest, "the request line or a header is malformed"
	if strings.HasPrefix(line, "HTTP/1.1 431 ") {
		kind, msg = fault.PayloadTooLarge, "the headers are longer than "+strconv.Itoa(s.cfg.MaxHeader)+" bytes"
	} else if _, detail, ok := strings.Cut(text, ": "); ok {
		msg += ": " + detail
	}
	body := x.envelope(codeRefused, kind, msg, nil)
	return fmt.Appendf(nil, "%s\r\nContent-Type: %s\r\nContent-Length: %d\r\nX-Request-Id: %s\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n%s",
		line, typeJSON, len(body), x.requestID, body)
}

type connKey struct{}

// withConn is http.Server's ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// inside tells the connection that a handler answers, until it is idle again.
func inside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*wordedConn); ok {
			c.inside.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}

// state is http.Server's ConnState.
func (s *Server) state(c net.Conn, st http.ConnState) {
	if w, ok := c.(*wordedConn); ok && st == http.StateIdle {
		w.inside.Store(false)
	}
	s.conns.state(c, st)
}
