package faultproxy

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault is what happens to one request.
type Fault int

// The faults. Those that lose something cut the connection; those that mute leave it open
// and silent for good; those that hold wait for Trap.Release.
const (
	LoseReply Fault = iota // the server does it, its reply is dropped
	LoseCall               // the server never gets it
	MuteReply              // the server does it; no reply comes on this connection any more
	MuteCall               // the server gets it no more, nor anything later on this connection
	HoldReply              // the server does it; the reply waits
	HoldCall               // the request waits
	Slow                   // the reply comes Rule.Delay later
	Watch                  // nothing; it is only counted
)

// Rule says which requests meet which fault. A zero Rule loses every reply.
type Rule struct {
	Match func(Request) bool // nil: every request
	Skip  int                // of the requests that match, so many pass first
	Times int                // then so many meet the fault; 0: all
	Fault Fault
	Delay time.Duration // of Slow
}

// Request is what a client sent: one RESP command, or one chunk.
type Request struct {
	Data []byte   // as sent
	Args [][]byte // of a RESP command, its name first
}

// Name is the command's name in capitals.
func (r Request) Name() string {
	if len(r.Args) == 0 {
		return ""
	}
	return strings.ToUpper(string(r.Args[0]))
}

// Command matches commands by name.
func Command(names ...string) func(Request) bool {
	return func(r Request) bool { return slices.Contains(names, r.Name()) }
}

// Script matches script calls of which some argument contains text.
func Script(text string) func(Request) bool {
	return func(r Request) bool {
		return (r.Name() == "EVAL" || r.Name() == "EVALSHA") &&
			slices.ContainsFunc(r.Args[1:], func(arg []byte) bool { return bytes.Contains(arg, []byte(text)) })
	}
}

// Contains matches chunks or commands that contain text.
func Contains(text string) func(Request) bool {
	return func(r Request) bool { return bytes.Contains(r.Data, []byte(text)) }
}

// Trap is a Rule at work.
type Trap struct {
	p    *Proxy
	rule Rule
	seen chan struct{}
	free *gate

	mu    sync.Mutex
	skip  int
	count int
	gone  bool
}

// Add puts a rule to work. A request meets the first trap that takes it, in the order in
// which they were added. A script call that the server does not know yet (NOSCRIPT) is not
// counted: the client sends it again with its text.
func (p *Proxy) Add(r Rule) *Trap {
	t := &Trap{p: p, rule: r, skip: r.Skip, seen: make(chan struct{}, 1000), free: newGate()}
	t.free.shut()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, t)
	return t
}

// Seen has one value for each request that met the fault: once the reply is there where the
// fault concerns it, else once the request is.
func (t *Trap) Seen() <-chan struct{} { return t.seen }

// Count is how many requests met the fault.
func (t *Trap) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// Left is how many of Rule.Times are still to come.
func (t *Trap) Left() int { return t.rule.Times - t.Count() }

// Release lets go what the trap holds, now and later.
func (t *Trap) Release() { t.free.open() }

// Remove ends the rule; what it holds stays held until Release.
func (t *Trap) Remove() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
}

// trap returns the trap that r has walked into, or nil.
func (p *Proxy) trap(r Request) *Trap {
	p.mu.Lock()
	traps := p.traps
	p.mu.Unlock()
	for _, t := range traps {
		if t.take(r) {
			return t
		}
	}
	return nil
}

func (t *Trap) take(r Request) bool {
	if t.rule.Match != nil && !t.rule.Match(r) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.gone, t.rule.Times > 0 && t.count >= t.rule.Times:
		return false
	case t.skip > 0:
		t.skip--
		return false
	}
	t.count++
	return true
}

// untake makes a request that did not count undone.
func (t *Trap) untake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count--
}

func (t *Trap) show() {
	select {
	case t.seen <- struct{}{}:
	default: // nobody counts that far
	}
}
