package egress

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"apiengine/fault"
)

// Request is one request. Header is the author's: names of hops and of the platform are
// refused in it. Platform is ours and wins.
type Request struct {
	Method      string
	URL         string
	Header      map[string]string
	Platform    map[string]string
	Body        []byte        // nil: none
	Timeout     time.Duration // of the whole exchange; 0: as long as ctx lasts
	NoRedirects bool          // a redirect is the answer
	Rules       Rules         // of the tenant whose request it is
}

// Response is an answer that was read to its end.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request and reads the answer, redirects included, whatever its status. The
// error is a *RefusedError, a *FailedError, or ctx's cause.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	u, err := c.CheckFor(r.Rules, r.URL)
	if err != nil {
		return nil, err
	}
	outer := ctx
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(context.WithValue(ctx, redirectsKey{}, redirects{!r.NoRedirects, r.Rules}), r.Method, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, &RefusedError{What: u.Host, Why: "the request cannot be made: " + err.Error()}
	}
	if err := setHeader(req.Header, r); err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, failed(outer, ctx, u, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, c.cfg.MaxBody+1)) // after decompression
	switch {
	case err != nil:
		return nil, failed(outer, ctx, u, err)
	case int64(len(body)) > c.cfg.MaxBody:
		return nil, &FailedError{Host: u.Host, Msg: fmt.Sprintf("the answer has more than %d bytes", c.cfg.MaxBody)}
	}
	return &Response{Status: res.StatusCode, Header: res.Header, Body: body}, nil
}

type redirectsKey struct{}

// redirects says how the redirects of a request are judged.
type redirects struct {
	follow bool
	rules  Rules
}

// failed says in plain words why there is no answer.
func failed(outer, ctx context.Context, u *url.URL, err error) error {
	refused, dns := new(RefusedError), new(net.DNSError)
	switch {
	case outer.Err() != nil:
		return context.Cause(outer)
	case errors.As(err, &refused):
		return refused
	case ctx.Err() != nil:
		return &FailedError{Host: u.Host, Msg: "no answer within the timeout", Cause: err}
	case errors.As(err, &dns):
		return &FailedError{Host: u.Host, Msg: "the name cannot be resolved", Cause: err}
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return &FailedError{Host: u.Host, Msg: err.Error(), Cause: err}
}

// Check reports whether a request to the address could be let out at all, as far as its
// text tells: scheme, user, odd numbers, and addresses that are refused as they stand. It
// asks no name server.
func (c *Client) Check(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Hostname() == "" {
		return nil, fault.New(fault.BadRequest, "%.100q is no address such as https://shop.example.com/path", address)
	}
	shown := u.Host
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, &RefusedError{What: shown, Why: "the scheme " + u.Scheme + " is not http or https"}
	case u.User != nil:
		return nil, &RefusedError{What: shown, Why: "an address with user and password is not sent; use the header Authorization"}
	case strings.ContainsRune(u.Hostname(), '%'):
		return nil, &RefusedError{What: shown, Why: "an address with a zone belongs to the local network"}
	}
	host := canonical(u.Hostname())
	if addr, err := netip.ParseAddr(host); err == nil {
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		return u, c.judge(host, net.JoinHostPort(addr.String(), port))
	}
	if oddNumber.MatchString(host) {
		return nil, &RefusedError{What: shown, Why: "an address must be written as four decimal numbers"}
	}
	return u, nil
}

// CheckFor is Check for a tenant with rules of its own.
func (c *Client) CheckFor(r Rules, address string) (*url.URL, error) {
	u, err := c.Check(address)
	if err == nil {
		err = r.permit(u)
	}
	return u, err
}

// oddNumber is a host that some resolvers take for an IPv4 address: its last part is a
// number, as in 2130706433, 0x7f.1 or 127.1 (the URL standard's "ends in a number").
var oddNumber = regexp.MustCompile(`(?i)(^|\.)([0-9]+|0x[0-9a-f]*)$`)

// redirect judges the next hop. The author's headers were meant for the first host: another
// one gets those that hold no secret.
func (c *Client) redirect(req *http.Request, via []*http.Request) error {
	how, _ := req.Context().Value(redirectsKey{}).(redirects)
	if !how.follow {
		return http.ErrUseLastResponse
	}
	last := via[len(via)-1].URL
	switch {
	case len(via) > c.cfg.MaxRedirects:
		return &RefusedError{What: req.URL.Host, Why: fmt.Sprintf("more than %d redirects", c.cfg.MaxRedirects)}
	case last.Scheme == "https" && req.URL.Scheme != "https":
		return &RefusedError{What: req.URL.Host, Why: "a redirect leads from https to " + req.URL.Scheme}
	}
	if _, err := c.CheckFor(how.rules, req.URL.String()); err != nil {
		return err
	}
	elsewhere := func(r *http.Request) bool { return r.URL.Host != req.URL.Host || r.URL.Scheme != req.URL.Scheme }
	if slices.ContainsFunc(via, elsewhere) { // also on the way back: another host has chosen this path
		for name := range req.Header {
			if !slices.Contains(harmless, name) && !strings.HasPrefix(name, ours) {
				req.Header.Del(name)
			}
		}
	}
	req.Header.Del("Referer") // it can hold what the address's query held
	return nil
}
