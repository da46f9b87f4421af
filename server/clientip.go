package server

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientIP is the address of the caller: the peer's, or, when the peer is a trusted
// proxy, the last address of X-Forwarded-For that is none (read from right to left,
// S40). No other header is ever looked at. A text that is no address ends the search at
// the proxy that wrote it.
func (s *Server) clientIP(r *http.Request) string {
	if len(s.cfg.TrustedProxies) == 0 {
		return hostOf(r.RemoteAddr)
	}
	at, ok := parseAddr(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusted(at); i-- {
		next, ok := parseAddr(strings.TrimSpace(hops[i]))
		if !ok {
			break
		}
		at = next
	}
	return at.String()
}

func (s *Server) trusted(a netip.Addr) bool {
	for _, p := range s.cfg.TrustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// hostOf cuts the port off an address of net/http; it allocates nothing.
func hostOf(addr string) string {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return addr
	}
	return strings.Trim(addr[:i], "[]")
}

// parseAddr reads an address with or without a port, without its zone, IPv4 in IPv6 as IPv4.
func parseAddr(s string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap().WithZone(""), err == nil
}
