package redis_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
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

// carry moves one request, then its reply, and so on: a lock's client never pipelines.
func (p *proxy) carry(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		f := p.fault(buf[:n])
		if f == loseCall {
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
		if n, err = server.Read(buf); err != nil || f == loseReply {
			return
		}
		if f == holdReply {
			p.mu.Lock()
			thaw := p.thaw
			p.mu.Unlock()
			p.seen <- struct{}{}
			<-thaw
		}
		if _, err := io.Copy(client, bytes.NewReader(buf[:n])); err != nil {
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
