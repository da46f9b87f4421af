package server

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// connLimit counts the open connections of each address and closes what is too many
// (S65). Trusted proxies are not limited: theirs are many people's.
type connLimit struct {
	max   int
	proxy func(netip.Addr) bool
	mu    sync.Mutex
	open  map[netip.Addr]int
	conns map[net.Conn]netip.Addr
}

func newConnLimit(cfg Config) *connLimit {
	trust := (&Server{cfg: cfg}).trusted
	return &connLimit{max: cfg.MaxConnsPerIP, proxy: trust, open: map[netip.Addr]int{}, conns: map[net.Conn]netip.Addr{}}
}

// state is http.Server's ConnState.
func (l *connLimit) state(c net.Conn, st http.ConnState) {
	if l.max < 0 {
		return
	}
	switch st {
	case http.StateNew:
		l.enter(c)
	case http.StateClosed, http.StateHijacked:
		l.leave(c)
	}
}

func (l *connLimit) enter(c net.Conn) {
	a, ok := parseAddr(c.RemoteAddr().String())
	if !ok || l.proxy(a) {
		return
	}
	l.mu.Lock()
	l.conns[c] = a
	l.open[a]++
	full := l.open[a] > l.max
	l.mu.Unlock()
	if full {
		_ = c.Close() // net/http sees it closed and reports StateClosed, which counts it out
	}
}

func (l *connLimit) leave(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.conns[c]
	if !ok {
		return
	}
	delete(l.conns, c)
	if l.open[a]--; l.open[a] == 0 {
		delete(l.open, a)
	}
}
