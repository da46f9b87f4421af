package server_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"apiengine/server"
)

func TestClientAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name    string
		trusted bool
		peer    string
		forward []string
		want    string
	}{
		{"no proxy configured", false, "10.0.0.1:5", []string{"1.2.3.4"}, "10.0.0.1"},
		{"IPv6 peer", false, "[2001:db8::1]:5", nil, "2001:db8::1"},
		{"peer is no proxy", true, "9.9.9.9:5", []string{"1.2.3.4"}, "9.9.9.9"},
		{"one proxy", true, "10.0.0.1:5", []string{"1.2.3.4"}, "1.2.3.4"},
		{"forged first", true, "10.0.0.1:5", []string{"6.6.6.6, 1.2.3.4"}, "1.2.3.4"},
		{"forged in a line of its own", true, "10.0.0.1:5", []string{"6.6.6.6", "1.2.3.4"}, "1.2.3.4"},
		{"chain of proxies", true, "10.0.0.1:5", []string{"6.6.6.6, 1.2.3.4, 10.0.0.2"}, "1.2.3.4"},
		{"only proxies", true, "10.0.0.1:5", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"rubbish on the right", true, "10.0.0.1:5", []string{"1.2.3.4, unknown"}, "10.0.0.1"},
		{"rubbish behind a proxy", true, "10.0.0.1:5", []string{"<x>, 10.0.0.2"}, "10.0.0.2"},
		{"none", true, "10.0.0.1:5", nil, "10.0.0.1"},
		{"with a port", true, "10.0.0.1:5", []string{"1.2.3.4:99"}, "1.2.3.4"},
		{"IPv6 in brackets", true, "[fd00::1]:5", []string{"[2001:db8::2]:7"}, "2001:db8::2"},
		{"IPv4 in IPv6", true, "[::ffff:10.0.0.1]:5", []string{"::ffff:1.2.3.4"}, "1.2.3.4"},
		{"zone", true, "10.0.0.1:5", []string{"fe80::1%eth0"}, "fe80::1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &fakeEngine{}
			cfg := server.Config{Engine: e}
			if c.trusted {
				cfg.TrustedProxies = proxies
			}
			h := newServer(t, cfg).Handler()
			r := httptest.NewRequest("GET", "/apiengine/k", nil)
			r.RemoteAddr = c.peer
			r.Header["X-Forwarded-For"] = c.forward
			for _, name := range []string{"X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Forwarded"} {
				r.Header.Set(name, "7.7.7.7")
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
			if call, _ := e.seen(); call.ClientIP != c.want {
				t.Errorf("got %q, want %q", call.ClientIP, c.want)
			}
		})
	}
}
