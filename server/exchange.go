package server

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"apiengine/fault"
)

// exchange is one request and what is known about it. It lives as long as its handler.
type exchange struct {
	s           *Server
	w           http.ResponseWriter
	r           *http.Request
	requestID   string
	executionID string // empty until a run began
	committed   bool   // that run has committed something
	always200   bool   // of this plane
	admin       bool   // the caller may see stacks
	streaming   func() // sends the body instead of reply.body; it has no end yet

	// Values of answer headers: one array instead of a slice for each header.
	values [8]string
	used   int
}

// reply is a whole answer; nothing is sent before it is complete, so a handler that
// fails or panics half-way has sent nothing.
type reply struct {
	status int
	ctype  string // empty: no Content-Type
	body   []byte
}

const (
	typeJSON = "application/json; charset=utf-8"
	typeText = "text/plain; charset=utf-8"
	typeHTML = "text/html; charset=utf-8"
)

// handle makes a handler of fn: request id, size of the target, panics, one write.
func (s *Server) handle(fn func(*exchange) reply) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{s: s, w: w, r: r, requestID: requestID(r)}
		x.send(x.run(fn))
	}
}

func (x *exchange) run(fn func(*exchange) reply) (rep reply) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			x.s.cfg.Log.ErrorContext(x.r.Context(), "panic in a handler",
				"request", x.requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			rep = x.fail(&fault.Error{K: fault.Internal})
		}
	}()
	if len(x.r.RequestURI) > x.s.cfg.MaxURI {
		e := refuse(fault.PayloadTooLarge, "the request target is longer than %d bytes", x.s.cfg.MaxURI)
		e.status = http.StatusRequestURITooLong
		return x.fail(e)
	}
	return fn(x)
}

// send writes rep. An error of the write is the client's leaving: there is nobody to tell.
func (x *exchange) send(rep reply) {
	x.set("X-Request-Id", x.requestID)
	x.set("X-Content-Type-Options", "nosniff")
	if rep.ctype != "" {
		x.set("Content-Type", rep.ctype)
	}
	if x.streaming != nil {
		x.stream(rep.status)
		return
	}
	bodyless := rep.status == http.StatusNoContent || rep.status == http.StatusNotModified
	if !bodyless {
		x.set("Content-Length", strconv.Itoa(len(rep.body)))
	}
	// A test's recorder has no deadlines: there the answer goes out without one.
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(x.s.cfg.WriteTimeout))
	x.w.WriteHeader(rep.status)
	if !bodyless && x.r.Method != http.MethodHead {
		_, _ = x.w.Write(rep.body)
	}
}

// set sets one header; name is in canonical form.
func (x *exchange) set(name, value string) {
	if x.used == len(x.values) {
		x.w.Header()[name] = []string{value}
		return
	}
	x.values[x.used] = value
	x.w.Header()[name] = x.values[x.used : x.used+1 : x.used+1]
	x.used++
}

// requestID is the caller's own when it is safe to repeat, else a new one. It is a name,
// not a secret.
func requestID(r *http.Request) string {
	if v := r.Header["X-Request-Id"]; len(v) == 1 && saneID(v[0]) {
		return v[0]
	}
	var raw [16]byte
	for i := 0; i < len(raw); i += 8 {
		n := rand.Uint64()
		for j := range 8 {
			raw[i+j] = byte(n >> (8 * j))
		}
	}
	return hex.EncodeToString(raw[:])
}

func saneID(s string) bool {
	if len(s) == 0 || len(s) > 128 {
		return false
	}
	for _, c := range []byte(s) {
		if !isAlnum(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// appendString appends s as a JSON string. What is not UTF-8 in it becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	out, err := jsontext.AppendQuote(b, s)
	if err != nil {
		return append(b, `""`...)
	}
	return out
}
