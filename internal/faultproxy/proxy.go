// Package faultproxy is a TCP line to a server that breaks where a test says so: a reply is
// lost after its command was done, a command is held back, a direction falls silent, the
// line is cut. It reads RESP, so that it knows which reply answers which command, also in a
// pipeline; for other protocols it goes by chunks.
//
//	p := faultproxy.New(t, faultproxy.Config{Target: "127.0.0.1:6379"})
//	trap := p.Add(faultproxy.Rule{Match: faultproxy.Script("order:42"), Times: 1, Fault: faultproxy.LoseReply})
//	... p.Addr() instead of the server's address ...
//	<-trap.Seen()
package faultproxy

import (
	"net"
	"sync"
	"testing"
)

// Config sets up a Proxy. Target is required.
type Config struct {
	Target string // host:port of the server
	Chunks bool   // not RESP: each chunk that the client sends counts as one request
}

// Proxy carries connections to one server. It is closed when its test ends.
type Proxy struct {
	chunks   bool
	listener net.Listener
	all      sync.WaitGroup
	gates    [2]*gate // by Direction

	mu      sync.Mutex
	target  string
	refuses bool
	closed  bool
	links   map[*link]bool
	traps   []*Trap
}

// Direction is one half of a line.
type Direction int

// The two halves.
const (
	ToServer Direction = iota
	ToClient
)

// New starts a proxy on a free loopback port.
func New(t testing.TB, cfg Config) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{chunks: cfg.Chunks, target: cfg.Target, listener: l, links: map[*link]bool{}, gates: [2]*gate{newGate(), newGate()}}
	p.all.Go(p.serve)
	t.Cleanup(p.close)
	return p
}

// Addr is the host:port for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Port is the port of Addr.
func (p *Proxy) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// Cut closes all connections. New ones are made as before.
func (p *Proxy) Cut() {
	for _, l := range p.open() {
		l.cut()
	}
}

// Refuse closes all connections, and every later one at once, until it is called with false.
func (p *Proxy) Refuse(yes bool) {
	p.mu.Lock()
	p.refuses = yes
	p.mu.Unlock()
	if yes {
		p.Cut()
	}
}

// HalfClose ends the half towards the client of every connection: the client reads an end,
// while the server hears nothing of it.
func (p *Proxy) HalfClose() {
	for _, l := range p.open() {
		l.endReplies()
	}
}

// Hold stops one direction of all connections, of later ones too, until Resume. Nothing is
// lost: what was sent meanwhile goes on then.
func (p *Proxy) Hold(d Direction) { p.gates[d].shut() }

// Resume ends Hold.
func (p *Proxy) Resume(d Direction) { p.gates[d].open() }

// BlackHole stops both directions until it is called with false.
func (p *Proxy) BlackHole(yes bool) {
	for _, g := range p.gates {
		if yes {
			g.shut()
		} else {
			g.open()
		}
	}
}

// Retarget sends later connections to another server; it cuts those of now.
func (p *Proxy) Retarget(addr string) {
	p.mu.Lock()
	p.target = addr
	p.mu.Unlock()
	p.Cut()
}

// Connections counts the open ones.
func (p *Proxy) Connections() int { return len(p.open()) }

func (p *Proxy) open() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*link, 0, len(p.links))
	for l := range p.links {
		all = append(all, l)
	}
	return all
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.Cut()
	p.all.Wait()
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.connect(client) })
	}
}

// connect makes the second half of a line and carries it to its end.
func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	target, refuses := p.target, p.refuses
	p.mu.Unlock()
	if refuses {
		client.Close()
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		client.Close()
		return
	}
	l := newLink(p, client.(*net.TCPConn), server.(*net.TCPConn))
	p.mu.Lock()
	if p.closed || p.refuses {
		p.mu.Unlock()
		l.cut()
		return
	}
	p.links[l] = true
	p.mu.Unlock()
	l.carry()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// gate is a door that many may wait at.
type gate struct {
	mu   sync.Mutex
	free chan struct{} // closed while the gate is open
}

func newGate() *gate {
	g := &gate{free: make(chan struct{})}
	close(g.free)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.free:
		g.free = make(chan struct{})
	default: // it is shut
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.free:
	default:
		close(g.free)
	}
}

// pass waits until the gate is open. It returns false when end came first.
func (g *gate) pass(end <-chan struct{}) bool {
	g.mu.Lock()
	free := g.free
	g.mu.Unlock()
	select {
	case <-free:
		return true
	case <-end:
		return false
	}
}
