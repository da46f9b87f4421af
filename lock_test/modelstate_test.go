package lock_test

import (
	"fmt"
	"slices"
	"time"

	"apiengine/lockwrap"
)

// model is one lock as it should be.
type model struct {
	lock   string
	owner  lockwrap.Owner // no Holder: free, or kept
	last   int64          // the last token
	prev   lockwrap.Owner // who handed it to owner, if that is how it came
	kept   string         // the node that it is kept for; then there is no owner
	line   []string       // nodes that wait, the longest first
	lo, hi time.Time      // the lease or the keeping ends between these
	joined time.Time      // when a node last came into the line
	unit   time.Duration  // of leases
	// How much later than its end a lease or a keeping may be over.
	slack, keepSlack time.Duration
	told             map[string][]string // what each node should hear
	unsure           bool                // the machine was so slow that nobody knows how the lock stands
}

// judge says what happened and what is wrong with the answer, and moves the model on.
func (m *model) judge(s step) (what, wrong string) {
	over := s.sent.Compare(m.hi) >= 0
	running := s.at.Before(m.lo)
	if !running && !over && m.kept != "" || len(m.line) > 0 && s.at.Sub(m.joined) > forgets {
		m.unsure = m.slack > 0
	}
	t := truth{
		alive: m.owner.Holder != "" && running, maybe: m.owner.Holder != "" && !over,
		keeps: m.kept != "" && running, mayKeep: m.kept != "" && !over,
	}
	what = fmt.Sprint(s.op, " ", s.reply.Held)
	switch s.op {
	case "acquire":
		return m.judgeAcquire(s, t, what)
	case "hand over", "yield":
		return m.judgeHandOver(s, t, what)
	case "leave":
		return m.left(s, t), ""
	}
	return what, m.judgeOwn(s, t)
}

// forgets is less than what a line lives on in Redis when nobody comes.
const forgets = 9 * time.Second

// truth is what is certain and what is possible at the time of a step.
type truth struct {
	alive, maybe   bool // it is held
	keeps, mayKeep bool // it is kept
}

func (m *model) judgeAcquire(s step, t truth, what string) (string, string) {
	own, node := m.owner.Holder == s.owner.Holder, nodeOf(s.owner.Holder)
	if s.reply.Held && s.reply.Token == m.owner.Token && own && t.maybe { // the same grant again
		m.begin(s, s.ttl)
		return what, ""
	}
	if s.reply.Held {
		if m.kept == node && t.mayKeep {
			what = "came to a keeping"
		}
		switch {
		case t.alive:
			return what, "granted beside a holder"
		case t.keeps && m.kept != node:
			return what, "granted while it is kept for another node"
		}
		return what, m.granted(s, s.owner.Holder, s.reply.Token)
	}
	if t.mayKeep {
		what = "refused by a keeping"
	}
	switch by := (s.reply.By != lockwrap.Holder{}); {
	case own && t.alive:
		return what, "the holder was refused"
	case t.keeps && m.kept == node:
		return what, "refused although it is kept for this node"
	case !t.maybe && !t.mayKeep:
		return what, "refused although free"
	case t.alive && s.reply.By.API != "api", t.keeps && by:
		return what, "busy with a wrong holder"
	case m.wrongLeft(s):
		return what, "busy with a wrong time left"
	}
	if s.queue {
		m.join(node, s.at)
	}
	return what, ""
}

func (m *model) wrongLeft(s step) bool {
	return s.reply.Left > m.hi.Sub(s.sent)+time.Millisecond || s.reply.Left < m.lo.Sub(s.at)-time.Millisecond
}

func (m *model) judgeOwn(s step, t truth) string {
	own := m.owner.Holder == s.owner.Holder && (m.owner.Token == s.owner.Token || s.op == "release" && s.owner.Token == 0)
	switch {
	case s.reply.Held && !own:
		return "a stranger was taken for the holder"
	case s.reply.Held && !t.maybe:
		return "the lease is over"
	case !s.reply.Held && own && t.alive:
		return "the holder was not recognised"
	case s.reply.Held && s.reply.Token != m.owner.Token:
		return "another token than the holder's"
	case !s.reply.Held && s.reply.Token != m.last && s.reply.Token != 0:
		return "a last token that never was"
	case s.reply.Held && s.op == "renew":
		m.begin(s, s.ttl)
	case s.reply.Held && s.op == "confirm" && m.wrongLeft(s):
		return "a wrong time left"
	case s.reply.Held && s.op == "release":
		m.pass(s)
	case own && !s.reply.Held:
		m.free()
	}
	return ""
}

func (m *model) judgeHandOver(s step, t truth, what string) (string, string) {
	own := m.owner == s.owner
	again := m.owner.Holder == s.next && m.owner.Holder != ""
	yields := s.op == "yield" && len(m.line) > 0
	switch {
	case again && s.reply.Held && t.maybe && s.reply.Next == m.owner.Token: // says what the first said
		m.begin(s, s.ttl)
	case again && t.alive:
		return what, "a repeated hand-over was not recognised"
	case s.reply.Held && !(own && t.maybe):
		return what, "handed over by a stranger, or after the end"
	case s.reply.Held && s.reply.Token != m.owner.Token:
		return what, "another token than the holder's"
	case s.reply.Held && yields != (s.reply.Next == 0):
		return what, "it yields where nobody waits, or does not where somebody does"
	case s.reply.Held && yields:
		if m.pass(s); s.queue {
			m.join(nodeOf(s.next), s.at)
		}
		return "yielded", ""
	case s.reply.Held:
		prev := m.owner
		wrong := m.granted(s, s.next, s.reply.Next)
		m.prev = prev
		return what, wrong
	case own && t.alive:
		return what, "the holder was not recognised"
	case own:
		m.free()
	}
	return what, ""
}

// left takes a node out of the line.
func (m *model) left(s step, t truth) string {
	node := nodeOf(s.owner.Holder)
	waited := slices.Contains(m.line, node)
	m.line = slices.DeleteFunc(m.line, func(n string) bool { return n == node })
	switch {
	case m.kept == node && t.keeps:
		m.pass(s)
		return "left a keeping"
	case waited:
		return "left the line"
	}
	return "left nothing"
}

// granted makes holder the owner.
func (m *model) granted(s step, holder string, token int64) string {
	if token <= m.last || token <= s.floor || token >= 1<<53 {
		return "a token that does not rise"
	}
	m.free()
	m.owner, m.last = lockwrap.Owner{Token: token, Holder: holder}, token
	m.line = slices.DeleteFunc(m.line, func(n string) bool { return n == nodeOf(holder) })
	m.begin(s, s.ttl)
	return ""
}

func (m *model) free() { m.owner, m.prev, m.kept = lockwrap.Owner{}, lockwrap.Owner{}, "" }

// pass keeps the lock for the first in line, who is told.
func (m *model) pass(s step) {
	m.free()
	if len(m.line) == 0 {
		return
	}
	m.kept, m.line = m.line[0], slices.Clone(m.line[1:])
	m.told[m.kept] = append(m.told[m.kept], m.lock)
	m.lo, m.hi = s.sent.Add(lockwrap.Grace), s.at.Add(lockwrap.Grace+m.keepSlack)
}

func (m *model) join(node string, at time.Time) {
	if m.joined = at; !slices.Contains(m.line, node) {
		m.line = append(m.line, node)
	}
}

// begin starts the life of the lease or the keeping.
func (m *model) begin(s step, life time.Duration) {
	m.lo, m.hi = s.sent.Add(life), s.at.Add(life+m.slack)
}
