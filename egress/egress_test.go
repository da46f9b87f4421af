package egress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"apiengine/egress"
	"apiengine/fault"
)

func client(t *testing.T, cfg egress.Config) *egress.Client {
	t.Helper()
	c, err := egress.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func allow(t *testing.T, entries ...string) []egress.Allow {
	t.Helper()
	var list []egress.Allow
	for _, e := range entries {
		a, err := egress.ParseAllow(e)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	return list
}

func get(t *testing.T, c *egress.Client, address string) (*egress.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return c.Do(ctx, egress.Request{Method: "GET", URL: address})
}

func refused(t *testing.T, what string, err error, say string) {
	t.Helper()
	var r *egress.RefusedError
	if !errors.As(err, &r) || fault.Of(err) != fault.Forbidden || !strings.Contains(err.Error(), say) {
		t.Errorf("%s: %v, want a refusal that says %q", what, err, say)
	}
}

// S50, S51, S54: what an address's text tells already.
func TestAddressesThatAreRefused(t *testing.T) {
	c := client(t, egress.Config{})
	for address, say := range map[string]string{
		"http://127.0.0.1/": "public", "http://127.0.0.1:8080/": "public", "http://localhost/": "public",
		"http://LOCALHOST/": "public", "http://127.8.9.10/": "public",
		"http://10.0.0.1/": "public", "http://172.16.0.1/": "public", "http://172.31.255.255/": "public", "http://192.168.1.1/": "public",
		"http://169.254.169.254/latest/meta-data/": "public", "http://100.64.0.1/": "public", "http://100.100.100.200/": "public",
		"http://0.0.0.0/": "public", "http://0.1.2.3/": "public", "http://224.0.0.1/": "public", "http://255.255.255.255/": "public",
		"http://198.18.0.1/": "public", "http://192.0.0.8/": "public", "http://203.0.113.1/": "public",
		"http://[::]/": "public", "http://[::1]/": "public", "http://[fe80::1]/": "public", "http://[fd00:ec2::254]/": "public",
		"http://[fc00::1]/": "public", "http://[ff02::1]/": "public", "http://[2001:db8::1]/": "public",
		"http://[::ffff:127.0.0.1]/": "public", "http://[::ffff:7f00:1]/": "public", "http://[::ffff:a9fe:a9fe]/": "public",
		"http://[::127.0.0.1]/": "public", "http://[64:ff9b::7f00:1]/": "public", "http://[64:ff9b::8.8.8.8]/": "public",
		"http://[64:ff9b:1::a00:1]/": "public", "http://[2002:7f00:1::]/": "public", "http://[2001:0:7f00:1::]/": "public",
		"http://[fe80::1%25eth0]/": "zone",
		"http://2130706433/":       "four decimal", "http://0x7f000001/": "four decimal", "http://0x7f.0.0.1/": "four decimal",
		"http://0177.0.0.1/": "four decimal", "http://127.1/": "four decimal", "http://127.0.0.1./": "public", "http://1/": "four decimal",
		"http://127.0.0.0x1/":  "four decimal",
		"http://user@8.8.8.8/": "user", "http://user:pw@8.8.8.8/": "user", "http://8.8.8.8@127.0.0.1/": "user",
		"file://host/etc/passwd": "scheme", "gopher://8.8.8.8/": "scheme", "ftp://8.8.8.8/": "scheme", "unix://socket/x": "scheme",
		"http+unix://socket/": "scheme", "ws://8.8.8.8/": "scheme",
		"http://１２７.０.０.１/": "public", "http://127。0。0。1/": "public", // the client turns both into ASCII
	} {
		_, err := get(t, c, address)
		refused(t, address, err, say)
	}
	for _, address := range []string{"", "/path", "http://", "http:///x", "://", "http://a b/", "http://:80/", "http://[::1/", "http://h:x/"} {
		if _, err := get(t, c, address); fault.Of(err) != fault.BadRequest {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"https://8.8.8.8/", "http://[2606:4700::1111]:8443/x", "https://example.com/a?b#c", "http://1e100.net/"} {
		if _, err := c.Check(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// S49: the administrator's list, by each form of its entries.
func TestAllowList(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer s.Close()
	port := s.URL[strings.LastIndex(s.URL, ":")+1:]
	named := "http://localhost:" + port
	for _, c := range []struct {
		entry, address string
		ok             bool
	}{
		{"127.0.0.1:" + port, s.URL, true}, {"127.0.0.1:" + port, named, true}, {"127.0.0.1", s.URL, true},
		{"127.0.0.0/8", s.URL, true}, {"localhost", named, true}, {"LocalHost.:" + port, named, true}, {"localhost", named + "/.", true},
		{"localhost", s.URL, false}, {"127.0.0.1:1", s.URL, false}, {"10.0.0.0/8", s.URL, false}, {"127.0.0.2", s.URL, false},
		{"ocalhost", named, false},
	} {
		res, err := get(t, client(t, egress.Config{Allow: allow(t, c.entry)}), c.address)
		if c.ok && (err != nil || string(res.Body) != "hello") {
			t.Errorf("%s with %s: %v", c.address, c.entry, err)
		} else if !c.ok {
			refused(t, c.address+" with "+c.entry, err, "public")
		}
	}
	for _, bad := range []string{"", ":80", "h:99999", "h:x", "10.0.0.1/8", "10.0.0.0/33", "http://h", "*.example.com", "a@b"} {
		if _, err := egress.ParseAllow(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// S57: not even an allowed address leads back to the server itself.
func TestOwnListenerIsNeverReached(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	own := netip.MustParseAddrPort(s.Listener.Addr().String())
	c := client(t, egress.Config{Allow: allow(t, "127.0.0.0/8", "localhost"), Own: func(a netip.AddrPort) bool { return a == own }})
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		_, err := get(t, c, fmt.Sprintf("http://%s:%d/", host, own.Port()))
		refused(t, host, err, "this server itself")
	}
}

// S52: the answer to the check is the one that is connected to. The name server gives a
// public address first and a loopback one from then on.
func TestRebinding(t *testing.T) {
	var asked, reached atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer s.Close()
	dns := nameServer(t, func() netip.Addr {
		if asked.Add(1) == 1 {
			return netip.MustParseAddr("192.0.2.1")
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	c := client(t, egress.Config{Resolver: dns, DialTimeout: 300 * time.Millisecond})
	for range 3 {
		_, err := get(t, c, "http://rebind.example:"+s.URL[strings.LastIndex(s.URL, ":")+1:])
		refused(t, "rebinding", err, "public")
	}
	if reached.Load() > 0 || asked.Load() < 2 {
		t.Errorf("asked %d times, reached %d times", asked.Load(), reached.Load())
	}
}

// nameServer answers every question for an A record with what next says.
func nameServer(t *testing.T, next func() netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			end := 12 + bytes.IndexByte(buf[12:n], 0) + 5 // the one question
			answer := append([]byte{}, buf[:end]...)
			copy(answer[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
			if binary.BigEndian.Uint16(buf[end-4:]) == 1 { // A
				ip := next().As4()
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ip[0], ip[1], ip[2], ip[3])
			}
			_, _ = conn.WriteTo(answer, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// S54: a proxy named by the environment is not used.
func TestNoProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	_, err := get(t, client(t, egress.Config{}), "http://10.0.0.1/")
	refused(t, "behind a proxy", err, "public")
}

// S53.
func TestRedirects(t *testing.T) {
	var other *httptest.Server
	seen := make(chan http.Header, 10)
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch to := r.URL.Query().Get("to"); {
		case to != "":
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		case r.URL.Path == "/count":
			n := len(r.URL.RawQuery)
			http.Redirect(w, r, "/count?"+strings.Repeat("x", n+1), http.StatusFound)
		default:
			seen <- r.Header
		}
	}))
	defer first.Close()
	other = httptest.NewServer(first.Config.Handler)
	defer other.Close()
	c := client(t, egress.Config{Allow: allow(t, "127.0.0.1")})
	do := func(address string) (*egress.Response, error) {
		return c.Do(t.Context(), egress.Request{Method: "POST", URL: address, Body: []byte("x"),
			Header:   map[string]string{"Authorization": "Bearer s", "X-Api-Key": "s", "Cookie": "s", "Accept": "text/plain"},
			Platform: map[string]string{"X-Fencing-Token": "7"}})
	}
	to := func(base, target string) string { return base + "/?to=" + url.QueryEscape(target) }

	if _, err := do(to(first.URL, first.URL+"/x")); err != nil {
		t.Fatal(err)
	}
	if h := <-seen; h.Get("Authorization") == "" || h.Get("X-Api-Key") == "" || h.Get("X-Fencing-Token") == "" {
		t.Errorf("the same host misses headers: %v", h)
	}
	for name, address := range map[string]string{
		"another host":          to(first.URL, other.URL+"/x"),
		"there and back":        to(first.URL, to(other.URL, first.URL+"/x")),
		"within the other host": to(first.URL, to(other.URL, other.URL+"/x")),
	} {
		if _, err := do(address); err != nil {
			t.Fatal(err)
		}
		if h := <-seen; h.Get("Authorization") != "" || h.Get("X-Api-Key") != "" || h.Get("Cookie") != "" || h.Get("X-Fencing-Token") != "" || h.Get("Accept") == "" {
			t.Errorf("%s gets %v", name, h)
		}
	}
	for target, say := range map[string]string{
		"http://127.0.0.2:1/": "public", "http://169.254.169.254/": "public", "http://[::1]:1/": "public", "http://2130706433/": "four decimal",
		"file:///etc/passwd": "", "gopher://127.0.0.1/": "scheme", "http://u:p@127.0.0.1/": "user",
	} {
		if res, err := do(to(first.URL, target)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("a redirect to %s: %v, %v", target, res, err)
		}
	}
	_, err := get(t, c, first.URL+"/count")
	refused(t, "endless redirects", err, "more than 3")
	res, err := c.Do(t.Context(), egress.Request{Method: "GET", URL: first.URL + "/count", NoRedirects: true})
	if err != nil || res.Status != http.StatusFound {
		t.Errorf("without redirects: %v, %v", res, err)
	}
	secure := httptest.NewTLSServer(first.Config.Handler)
	defer secure.Close()
	tls := client(t, egress.Config{Allow: allow(t, "127.0.0.1"), TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig})
	_, err = get(t, tls, to(secure.URL, first.URL+"/x"))
	refused(t, "a downgrade", err, "from https to http")
}

// S55: large, packed, endless and slow answers.
func TestAnswersAreBounded(t *testing.T) {
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fits":
			w.Write(make([]byte, 1<<20))
		case "/large":
			w.Write(make([]byte, 1<<20+1))
		case "/endless":
			for r.Context().Err() == nil {
				w.Write(make([]byte, 64<<10))
			}
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(make([]byte, 64<<20))
			z.Close()
		case "/header":
			w.Header().Set("X-Long", strings.Repeat("x", 100<<10))
		case "/drip":
			for {
				io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
	}))
	defer s.Close()
	defer close(stop)
	c := client(t, egress.Config{Allow: allow(t, "127.0.0.1"), MaxBody: 1 << 20})
	for path, say := range map[string]string{"/fits": "", "/large": "more than", "/endless": "more than", "/packed": "more than", "/header": "header"} {
		res, err := get(t, c, s.URL+path)
		if say == "" && (err != nil || len(res.Body) != 1<<20) || say != "" && (err == nil || !strings.Contains(err.Error(), say)) {
			t.Errorf("%s: %v", path, err)
		}
		if say != "" && fault.Of(err) != fault.ScriptError {
			t.Errorf("%s is a %s", path, fault.Of(err))
		}
	}
	_, err := c.Do(t.Context(), egress.Request{Method: "GET", URL: s.URL + "/drip", Timeout: 100 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "within the timeout") {
		t.Errorf("a slow answer: %v", err)
	}
	over := errors.New("the run is over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, over)
	defer cancel()
	if _, err := c.Do(ctx, egress.Request{Method: "GET", URL: s.URL + "/drip", Timeout: time.Hour}); !errors.Is(err, over) {
		t.Errorf("at the run's end: %v", err)
	}
}

// S56.
func TestHeadersThatAreRefused(t *testing.T) {
	got := make(chan *http.Request, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r }))
	defer s.Close()
	c := client(t, egress.Config{Allow: allow(t, "127.0.0.1")})
	do := func(name, value string) error {
		_, err := c.Do(t.Context(), egress.Request{Method: "GET", URL: s.URL, Header: map[string]string{name: value},
			Platform: map[string]string{"X-Apiengine-Hops": "1"}})
		return err
	}
	for _, name := range []string{"Host", "host", "Connection", "KEEP-ALIVE", "Proxy-Authorization", "proxy-x", "TE", "Trailer", "Transfer-Encoding",
		"Upgrade", "Content-Length", "Expect", "Via", "HTTP2-Settings", "X-Fencing-Token", "x-apiengine-hops", "Sec-WebSocket-Key",
		"", "a b", "a:b", "a\r\nX-Evil", "X-Évil", "a\x00"} {
		refused(t, "the header "+name, do(name, "1"), "")
	}
	for _, value := range []string{"a\r\nX-Evil: 1", "a\nb", "\x00", "\x7f"} {
		refused(t, fmt.Sprintf("the value %q", value), do("X-Ok", value), "control")
	}
	for _, c := range [][2]string{{"X-Ok", "1"}, {"Authorization", "Bearer x"}, {"X-Ok", "größe\tund"}, {"Accept-Encoding", "br"}, {"Idempotency-Key", "k"}} {
		if err := do(c[0], c[1]); err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		r := <-got
		if want := c[1]; c[0] != "Accept-Encoding" && r.Header.Get(c[0]) != want || r.Header.Get("Accept-Encoding") == "br" {
			t.Errorf("%v arrives as %v", c, r.Header)
		}
		if r.Header.Get("X-Apiengine-Hops") != "1" || r.UserAgent() != "apiengine" {
			t.Errorf("the platform's headers: %v", r.Header)
		}
	}
}

func TestFailures(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	l.Close()
	none := nameServer(t, func() netip.Addr { return netip.AddrFrom4([4]byte{}) })
	c := client(t, egress.Config{Allow: allow(t, "127.0.0.1"), Resolver: none})
	if _, err := get(t, c, closed); fault.Of(err) != fault.ScriptError || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
	_, err = get(t, c, "http://zero.example/")
	refused(t, "a name for 0.0.0.0", err, "public")
	for _, cfg := range []egress.Config{{MaxBody: -1}, {MaxRedirects: -1}, {DialTimeout: -1}} {
		if _, err := egress.New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
