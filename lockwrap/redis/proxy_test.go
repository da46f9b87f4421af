package redis_test

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy is a TCP line to a Redis server that does to scripts what a test asks for.
type proxy struct {
	target   string
	listener net.Listener
	all      sync.WaitGroup

	mu     sync.Mutex
	faults []lineFault
	conns  map[net.Conn]bool
	thaw   chan struct{} // closed when held replies may go on
	seen   chan struct{} // one for each fault that has begun
}

// lineFault is what happens to one script call.
type lineFault int

const (
	pass      lineFault = iota
	loseReply           // the server gets it, its reply is dropped and the line cut
	loseCall            // the line is cut before the server gets it
	holdReply           // the reply waits for release
)

func newProxy(t *testing.T, port int) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: fmt.Sprintf("127.0.0.1:%d", port), listener: l, conns: map[net.Conn]bool{},
		thaw: make(chan struct{}), seen: make(chan struct{}, 100)}
	p.all.Go(p.serve)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

// next says what happens to the coming script calls, one after the other.
func (p *proxy) next(faults ...lineFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
}

// left counts the faults that are still to come.
func (p *proxy) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.faults)
}

// release lets the held replies go.
func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.thaw)
	p.thaw = make(chan struct{})
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.release()
	p.all.Wait()
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.all.Go(func() { p.carry(client, server) })
	}
}

// carry moves requests one way and replies the other. A lock's client never pipelines
// scripts, so the reply after a script call is that call's.
func (p *proxy) carry(client, server net.Conn) {
	cut := func() { client.Close(); server.Close() }
	defer cut()
	var current atomic.Int64 // fault of the request under way
	p.all.Go(func() {
		defer cut()
		pump(client, server, func(reply []byte) bool {
			switch lineFault(current.Swap(int64(pass))) {
			case loseReply:
				return false
			case holdReply:
				p.mu.Lock()
				thaw := p.thaw
				p.mu.Unlock()
				p.seen <- struct{}{}
				<-thaw
			}
			return true
		})
	})
	pump(server, client, func(request []byte) bool {
		f := p.fault(request)
		current.Store(int64(f))
		return f != loseCall
	})
}

// pump copies chunk by chunk while each passes.
func pump(to, from net.Conn, passes func([]byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !passes(buf[:n]) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// fault returns what happens to this request: only script calls are counted.
func (p *proxy) fault(request []byte) lineFault {
	if !bytes.Contains(request, []byte("EVAL")) {
		return pass
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) == 0 {
		return pass
	}
	f := p.faults[0]
	p.faults = p.faults[1:]
	return f
}
