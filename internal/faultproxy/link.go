package faultproxy

import (
	"bufio"
	"bytes"
	"net"
	"strings"
	"sync"
	"time"
)

// link is one connection through the proxy.
type link struct {
	p              *Proxy
	client, server *net.TCPConn
	end            chan struct{} // closed when the link is cut
	once           sync.Once

	mu      sync.Mutex
	waiting []*Trap // of the requests whose replies are to come, nil for a plain one
	pushed  bool    // the server speaks unasked from now on: replies cannot be told apart
}

func newLink(p *Proxy, client, server *net.TCPConn) *link {
	return &link{p: p, client: client, server: server, end: make(chan struct{})}
}

func (l *link) cut() {
	l.once.Do(func() {
		close(l.end)
		l.client.Close()
		l.server.Close()
	})
}

func (l *link) endReplies() { _ = l.client.CloseWrite() } // it may be closed already

// carry moves requests one way and replies the other until either end is gone.
func (l *link) carry() {
	defer l.cut()
	var replies sync.WaitGroup
	replies.Go(func() {
		defer l.cut()
		l.pump(l.server, l.client, ToClient, l.reply)
	})
	l.pump(l.client, l.server, ToServer, l.request)
	l.cut()
	replies.Wait()
}

// pump copies frame by frame. What passes says for each whether it goes on.
func (l *link) pump(from, to *net.TCPConn, d Direction, passes func([]byte) bool) {
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		data, err := l.frame(r)
		if err != nil {
			return
		}
		if !passes(data) || !l.p.gates[d].pass(l.end) {
			return
		}
		if _, err := to.Write(data); err != nil {
			return
		}
	}
}

func (l *link) frame(r *bufio.Reader) ([]byte, error) {
	if !l.p.chunks {
		return readFrame(r, nil)
	}
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	data := make([]byte, r.Buffered())
	_, err := r.Read(data)
	return data, err
}

// request decides about one request.
func (l *link) request(data []byte) bool {
	r := Request{Data: data}
	if !l.p.chunks {
		r.Args = args(data)
	}
	t := l.p.trap(r)
	l.expect(t, strings.HasSuffix(r.Name(), "SUBSCRIBE") || r.Name() == "MONITOR")
	if t == nil {
		return true
	}
	switch t.rule.Fault {
	case LoseCall:
		t.show()
		return false
	case MuteCall:
		t.show()
		<-l.end
		return false
	case HoldCall:
		t.show()
		return t.free.pass(l.end)
	}
	return true
}

// expect notes whose reply comes next. Chunks are not counted: the next one that comes back
// answers the last one sent.
func (l *link) expect(t *Trap, pushes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pushed = l.pushed || pushes
	if l.p.chunks {
		l.waiting = l.waiting[:0]
	}
	l.waiting = append(l.waiting, t)
}

func (l *link) answered(data []byte) *Trap {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pushed || len(l.waiting) == 0 || !l.p.chunks && data[0] == '>' {
		return nil
	}
	t := l.waiting[0]
	l.waiting = l.waiting[1:]
	return t
}

// reply decides about one reply.
func (l *link) reply(data []byte) bool {
	t := l.answered(data)
	if t == nil {
		return true
	}
	if bytes.HasPrefix(data, []byte("-NOSCRIPT")) {
		t.untake()
		return true
	}
	switch t.rule.Fault {
	case LoseReply:
		t.show()
		return false
	case MuteReply:
		t.show()
		<-l.end
		return false
	case HoldReply:
		t.show()
		return t.free.pass(l.end)
	case Slow:
		t.show()
		return l.rest(t.rule.Delay)
	case Watch:
		t.show()
	}
	return true
}

func (l *link) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.end:
		return false
	}
}
