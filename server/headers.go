package server

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"apiengine/engine"
)

// AnswerPolicy is what a script may set on its answer through V8.Response (S69).
type AnswerPolicy struct {
	Headers       []string // allowed beside the built-in list, for example Set-Cookie
	RedirectHosts []string // hosts ("host" or "host:port") that Redirect may lead to, beside the own
}

// scriptHeaderNames are what a script may set, and any X- name that is not the
// platform's or a proxy's.
var scriptHeaderNames = []string{
	"Cache-Control", "Content-Disposition", "Content-Language", "Content-Type", "Deprecation",
	"Etag", "Expires", "Last-Modified", "Link", "Pragma", "Retry-After", "Sunset", "Warning",
}

// keptHeaders can be neither set by a script nor allowed by the policy: they are how
// messages are framed, or the platform's own word.
var keptHeaders = []string{
	"Connection", "Content-Length", "Date", "Idempotency-Replayed", "Keep-Alive", "Location", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "X-Content-Type-Options", "X-Execution-Id", "X-Fencing-Token", "X-Lock-Wait-Ms", "X-Request-Id",
}

// innerPrefixes are headers that a proxy in front obeys.
var innerPrefixes = []string{"X-Accel-", "X-Sendfile", "X-Lighttpd-", "X-Forwarded", "X-Real-Ip", "X-Reproxy-"}

func (p AnswerPolicy) check() error {
	for _, h := range p.Headers {
		name := http.CanonicalHeaderKey(h)
		if !isToken(h) || slices.Contains(keptHeaders, name) || strings.HasPrefix(name, "Access-Control-") {
			return fmt.Errorf("Config.Answers.Headers: %q cannot be left to scripts", h)
		}
	}
	for _, h := range p.RedirectHosts {
		if u, err := url.Parse("http://" + h); err != nil || u.Host != h || h == "" {
			return fmt.Errorf("Config.Answers.RedirectHosts: %q is no host", h)
		}
	}
	return nil
}

// Check says whether what a script returned and set can be sent: its status, headers,
// redirect and file. An engine that asks before it commits keeps a run from being done and yet
// answered with 500. The error is a result_invalid. host is the Host of the request, ""
// when the call is not from HTTP.
func (p AnswerPolicy) Check(res *engine.Result, host string) error {
	err := p.checkResponse(res, host)
	if err == nil && isFile(res) {
		_, err = readFile(res)
	}
	if err != nil {
		return err // as it is: a nil *refusal would be no nil error
	}
	return nil
}

func (p AnswerPolicy) checkResponse(res *engine.Result, host string) *refusal {
	r := &res.Response
	if r.Status != 0 && (r.Status < 200 || r.Status > 599) {
		return invalid("V8.Response.Status(%d): a status is from 200 to 599", r.Status)
	}
	for name, value := range r.Header {
		if err := p.checkHeader(name, value); err != nil {
			return err
		}
	}
	if r.Redirect == "" {
		return nil
	}
	if r.Status != 0 && r.Status != 301 && r.Status != 302 && r.Status != 303 && r.Status != 307 && r.Status != 308 {
		return invalid("V8.Response.Redirect goes with status 301, 302, 303, 307 or 308, not %d", r.Status)
	}
	return p.checkRedirect(r.Redirect, host)
}

func (p AnswerPolicy) checkHeader(name, value string) *refusal {
	canonical := http.CanonicalHeaderKey(name)
	if !isToken(name) || !p.allows(canonical) {
		return invalid("V8.Response.Header: a script cannot set the header %q", name)
	}
	for _, c := range []byte(value) {
		if c < 0x20 && c != '\t' || c == 0x7f {
			return invalid("V8.Response.Header: the value of %s has a control character", canonical)
		}
	}
	if len(value) > 4096 {
		return invalid("V8.Response.Header: the value of %s is longer than 4096 bytes", canonical)
	}
	if canonical == "Content-Type" {
		if _, _, err := mime.ParseMediaType(value); err != nil {
			return invalid("V8.Response.Header: %q is no Content-Type", value)
		}
	}
	return nil
}

func (p AnswerPolicy) allows(canonical string) bool {
	if slices.Contains(keptHeaders, canonical) {
		return false
	}
	for _, pre := range innerPrefixes {
		if strings.HasPrefix(canonical, pre) {
			return false
		}
	}
	return strings.HasPrefix(canonical, "X-") || slices.Contains(scriptHeaderNames, canonical) ||
		slices.ContainsFunc(p.Headers, func(h string) bool { return strings.EqualFold(h, canonical) })
}

// checkRedirect takes a path of this site, or an http(s) address of the own or an
// allowed host. A backslash is a slash to a browser, so it is not taken at all.
func (p AnswerPolicy) checkRedirect(to, host string) *refusal {
	for _, c := range []byte(to) {
		if c <= 0x20 || c >= 0x7f || c == '\\' {
			return invalid("V8.Response.Redirect: the address has a character that must be percent-encoded")
		}
	}
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return invalid("V8.Response.Redirect: %q is no address", to)
	case u.Scheme == "" && u.Host == "" && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//"):
		return nil
	case (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.Host != "" && (host != "" && strings.EqualFold(u.Host, host) ||
		slices.ContainsFunc(p.RedirectHosts, func(h string) bool { return strings.EqualFold(h, u.Host) })):
		return nil
	}
	return invalid("V8.Response.Redirect: %q is neither a path of this site nor on an allowed host", to)
}

// scriptHeaders sets what the script asked for; checkResponse has let it pass.
func (x *exchange) scriptHeaders(res *engine.Result, rep *reply) {
	for name, value := range res.Response.Header {
		if strings.EqualFold(name, "Content-Type") {
			rep.ctype = value
		} else {
			x.w.Header().Set(name, value)
		}
	}
}

// isToken reports whether s is a header name (RFC 9110 token).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if !isAlnum(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
