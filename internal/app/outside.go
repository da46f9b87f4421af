package app

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"apiengine/egress"
	"apiengine/jsbridge"
)

// openOutside makes the one way out, for scripts and for the outbox.
func (a *App) openOutside(context.Context) error {
	a.reach = &reach{store: a.Store, known: map[string]knownRules{}}
	cfg := egress.Config{Own: a.own, MaxBody: a.Settings.HTTPMaxBody}
	for _, entry := range a.Settings.HTTPAllow {
		allow, err := egress.ParseAllow(entry)
		if err != nil {
			return &SettingError{"http-allow", err.Error()} // Settings.Check has parsed it
		}
		cfg.Allow = append(cfg.Allow, allow)
	}
	var err error
	if a.outside, err = egress.New(cfg); err != nil {
		return err
	}
	a.onClose(func(context.Context) error { a.outside.Close(); return nil })
	return nil
}

func allowProblem(entries []string) string {
	for _, e := range entries {
		if _, err := egress.ParseAllow(e); err != nil {
			return err.Error() + ", not " + e
		}
	}
	return ""
}

// listensAt notes the address that no request of ours may lead back to.
func (a *App) listensAt(addr net.Addr) {
	if at, err := netip.ParseAddrPort(addr.String()); err == nil {
		at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
		a.listening.Store(&at)
	}
}

// own reports whether a connection would lead to this process.
func (a *App) own(to netip.AddrPort) bool {
	at := a.listening.Load()
	switch {
	case at == nil || at.Port() != to.Port():
		return false
	case !at.Addr().IsUnspecified():
		return at.Addr() == to.Addr()
	case to.Addr().IsLoopback() || to.Addr().IsUnspecified():
		return true
	}
	local, err := net.InterfaceAddrs()
	if err != nil {
		return true // it cannot be told
	}
	for _, l := range local {
		if p, err := netip.ParsePrefix(l.String()); err == nil && p.Addr().Unmap().WithZone("") == to.Addr() {
			return true
		}
	}
	return false
}

// scriptHTTP turns the client into the engine's port.
type scriptHTTP struct{ a *App }

func (s scriptHTTP) Do(ctx context.Context, tenant string, r jsbridge.HTTPRequest, platform map[string]string) (jsbridge.HTTPResponse, error) {
	rules, err := s.a.reach.of(ctx, tenant)
	if err != nil {
		return jsbridge.HTTPResponse{}, err
	}
	res, err := s.a.outside.Do(ctx, egress.Request{Method: r.Method, URL: r.URL, Header: r.Header, Platform: platform, Body: r.Body, Timeout: r.Timeout, Rules: rules})
	var failed *egress.FailedError
	switch {
	case errors.As(err, &failed):
		return jsbridge.HTTPResponse{Failed: err}, nil
	case err != nil:
		return jsbridge.HTTPResponse{}, err
	}
	out := jsbridge.HTTPResponse{Status: res.Status, Body: res.Body, Header: map[string]string{}}
	for name, values := range res.Header {
		out.Header[name] = strings.Join(values, ", ")
	}
	return out, nil
}

// poster turns the client into the outbox's port.
type poster struct{ a *App }

// postLimit bounds one delivery to an address.
const postLimit = 30 * time.Second

func (p poster) Post(ctx context.Context, tenant, address string, header map[string]string, body []byte) (int, error) {
	rules, err := p.a.reach.of(ctx, tenant)
	if err != nil {
		return 0, err
	}
	res, err := p.a.outside.Do(ctx, egress.Request{Method: "POST", URL: address, Platform: header, Body: body,
		Timeout: postLimit, NoRedirects: true, Rules: rules})
	if err != nil {
		return 0, err
	}
	return res.Status, nil
}
