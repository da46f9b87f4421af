package egress

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Allow is one entry of the administrator's list of what may be reached although it is not
// public.
type Allow struct {
	network netip.Prefix // valid: any host in it; else
	host    string       // a name, or an address in its usual form
	port    uint16       // 0: any
}

// ParseAllow reads `host`, `host:port`, `10.0.0.0/8`, or an IPv6 address in brackets.
func ParseAllow(s string) (Allow, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		if p.Addr().Is4In6() || p.Masked() != p {
			return Allow{}, errors.New("must be a network in its usual form, such as 10.0.0.0/8")
		}
		return Allow{network: p}, nil
	}
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		host, text = strings.Trim(s, "[]"), "0"
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || host == "" || strings.ContainsAny(host, "/@?#*% \t") {
		return Allow{}, errors.New("must be host, host:port or a network such as 10.0.0.0/8")
	}
	return Allow{host: canonical(host), port: uint16(port)}, nil
}

// canonical is a host as it is compared: lower case, no dot at the end, addresses in one form.
func canonical(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return host
}

// covers reports whether the entry allows a connection to addr that was asked for as host.
func (a Allow) covers(host string, addr netip.AddrPort) bool {
	if a.network.IsValid() {
		return a.network.Contains(addr.Addr())
	}
	return (a.port == 0 || a.port == addr.Port()) && (a.host == host || a.host == addr.Addr().String())
}
