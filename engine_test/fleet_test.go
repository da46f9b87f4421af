package engine_test

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fleet are nodes that are killed and started again while others go on.
type fleet struct {
	seats []*seat
}

// seat is a node's place: its flags, and the process that has them now.
type seat struct {
	args []string
	node atomic.Pointer[node]
}

// newFleet starts a node for each list of flags and waits until all are ready.
func newFleet(t *testing.T, flags ...[]string) *fleet {
	t.Helper()
	f := &fleet{}
	for _, args := range flags {
		s := &seat{args: args}
		s.launch(t)
		f.seats = append(f.seats, s)
	}
	for _, s := range f.seats {
		s.awaitReady(t)
	}
	return f
}

// any is one of the nodes; it may be dead, or not there yet.
func (f *fleet) any() *node { return f.seats[rand.IntN(len(f.seats))].node.Load() }

// ready is a node that answers.
func (f *fleet) ready(t *testing.T) *node {
	t.Helper()
	s := f.seats[0]
	s.awaitReady(t)
	return s.node.Load()
}

func (s *seat) launch(t *testing.T) { s.node.Store(launch(t, s.args...)) }

func (s *seat) kill() { s.node.Load().stop(syscall.SIGKILL) }

// awaitReady waits for the node. One whose port somebody else has taken meanwhile gets another.
func (s *seat) awaitReady(t *testing.T) {
	t.Helper()
	awaitLong(t, 3*time.Minute, "the node to be ready", func() bool {
		n := s.node.Load()
		select {
		case <-n.done:
			if !strings.Contains(n.log.tail(4000), "cannot be listened on") {
				t.Fatalf("the node ended:\n%s", n.log.tail(4000))
			}
			s.launch(t)
			return false
		default:
		}
		a, err := n.try(t.Context(), "GET", "/readyz", nil)
		return err == nil && a.Status == 200
	})
}
