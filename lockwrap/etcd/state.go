package etcd

import (
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"apiengine/lockwrap"
)

// state is a lock as <lock>:s tells it, in JSON, with what <lock>:l adds. Times are of the
// clocks of the nodes that wrote them, so they are for show only.
type state struct {
	Token  int64    `json:"token"`
	Holder string   `json:"holder,omitempty"` // the last one, who may be gone
	API    string   `json:"api,omitempty"`
	Since  int64    `json:"since,omitempty"` // us
	Until  int64    `json:"until,omitempty"` // us
	TTL    int64    `json:"ttl,omitempty"`   // us
	Kept   string   `json:"kept,omitempty"`  // the node that a free lock is kept for
	Turn   int64    `json:"turn,omitempty"`  // counts the times that it was kept
	Line   []string `json:"line,omitempty"`  // nodes that wait, the longest first
	// Came is since when each of them stands in line, in us.
	Came map[string]int64 `json:"came,omitempty"`

	alive       bool // <lock>:l exists: Holder has the lock
	lease       clientv3.LeaseID
	memory      clientv3.LeaseID // that <lock>:s hangs on
	known, held int64            // revisions of the two keys, 0 where there is none
}

func (s *state) owns(o lockwrap.Owner) bool {
	return s.alive && s.Holder == o.Holder && (o.Token == 0 || s.Token == o.Token)
}

// grant gives the lock to c. etcd has no clock to ask: the time is this node's, and the
// token rises over the last one whatever it says.
func (s *state) grant(c *lockwrap.Claim) {
	now := time.Now().UnixMicro()
	s.Token = max(s.Token+1, c.Floor+1, now)
	s.Holder, s.API, s.Since, s.Kept = c.Holder, c.API, now, ""
	s.lives(c.TTL)
	s.leave(c.Node)
}

func (s *state) lives(ttl time.Duration) {
	s.TTL, s.Until = ttl.Microseconds(), time.Now().Add(ttl).UnixMicro()
}

func (s *state) join(node string) bool {
	if slices.Contains(s.Line, node) {
		return false
	}
	s.Line = append(s.Line, node)
	if s.Came == nil {
		s.Came = map[string]int64{}
	}
	s.Came[node] = time.Now().UnixMicro()
	return true
}

func (s *state) leave(node string) bool {
	before := len(s.Line)
	delete(s.Came, node)
	s.Line = slices.DeleteFunc(s.Line, func(n string) bool { return n == node })
	return len(s.Line) < before
}

// pass keeps a lock that nobody holds any more for the first in line.
func (s *state) pass() {
	s.Holder, s.API, s.Since, s.Until, s.TTL, s.Kept = "", "", 0, 0, 0, ""
	if len(s.Line) > 0 {
		s.Kept = s.Line[0]
		s.leave(s.Kept)
		s.Turn++
	}
}

// left is how long the lock stays taken, by the clock of the node that wrote it.
func (s *state) left() time.Duration {
	left := time.Duration(s.Until-time.Now().UnixMicro()) * time.Microsecond
	return min(max(left, 0), s.life())
}

// life is the lease's, as it was asked for.
func (s *state) life() time.Duration { return time.Duration(s.TTL) * time.Microsecond }
