package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Config sets up a Client. A zero field takes its default.
type Config struct {
	Allow        []Allow                   // what may be reached beside public addresses
	Own          func(netip.AddrPort) bool // tells the server's own listeners, which are never reached; default none
	MaxBody      int64                     // bytes of an answer after decompression; default 10 MiB
	MaxRedirects int                       // default 3
	DialTimeout  time.Duration             // of one connection with its TLS; default 10 s
	Resolver     *net.Resolver             // default the system's
	TLS          *tls.Config               // of the connections; default the system's roots
}

// maxHeader bounds the header of an answer.
const maxHeader = 64 << 10

// Client sends requests. It is safe for concurrent use.
type Client struct {
	cfg    Config
	public *ssrf.Guardian
	http   *http.Client
}

// New returns a Client, or an error that names the first unusable field of cfg. The caller
// closes it.
func New(cfg Config) (*Client, error) {
	switch {
	case cfg.MaxBody < 0:
		return nil, fmt.Errorf("egress: Config.MaxBody is %d", cfg.MaxBody)
	case cfg.MaxRedirects < 0:
		return nil, fmt.Errorf("egress: Config.MaxRedirects is %d", cfg.MaxRedirects)
	case cfg.DialTimeout < 0:
		return nil, fmt.Errorf("egress: Config.DialTimeout is %v", cfg.DialTimeout)
	}
	cfg.MaxBody = cmp.Or(cfg.MaxBody, 10<<20)
	cfg.MaxRedirects = cmp.Or(cfg.MaxRedirects, 3)
	cfg.DialTimeout = cmp.Or(cfg.DialTimeout, 10*time.Second)
	c := &Client{cfg: cfg, public: ssrf.New(ssrf.WithAnyPort())}
	c.http = &http.Client{
		CheckRedirect: c.redirect,
		Transport: &http.Transport{
			Proxy:                  nil, // a proxy from the environment would connect for us, past the check
			DialContext:            c.dial,
			TLSClientConfig:        cfg.TLS,
			TLSHandshakeTimeout:    cfg.DialTimeout,
			MaxResponseHeaderBytes: maxHeader,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           100,
			MaxIdleConnsPerHost:    8,
			IdleConnTimeout:        time.Minute,
		},
	}
	return c, nil
}

// Close gives up the connections that wait for further requests.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// dial connects to the host of a URL and judges the address that is really connected to.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: c.cfg.DialTimeout, Resolver: c.cfg.Resolver,
		Control: func(_, resolved string, _ syscall.RawConn) error { return c.judge(canonical(host), resolved) }}
	return d.DialContext(ctx, network, address)
}

// judge decides about one connection, in the moment before it is made.
func (c *Client) judge(host, resolved string) error {
	to, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return &RefusedError{What: host, Why: "it has no address"}
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	switch {
	case to.Addr().Zone() != "":
		return &RefusedError{What: host, Why: "it is an address of the local network"}
	case c.cfg.Own != nil && c.cfg.Own(to):
		return &RefusedError{What: host, Why: "it is this server itself; use V8.ApiEngine.Run"}
	case c.allowed(host, to):
		return nil
	case c.public.SafeAddr(to.Addr()) != nil:
		return &RefusedError{What: host, Why: "it is no public address; --http-allow lets it through"}
	}
	return nil
}

func (c *Client) allowed(host string, to netip.AddrPort) bool {
	for _, a := range c.cfg.Allow {
		if a.covers(host, to) {
			return true
		}
	}
	return false
}
