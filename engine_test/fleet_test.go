package engine_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fleet are nodes that are killed and started again while others go on.
type fleet struct {
	seats []*seat
}

// seat is a node's place: its address and flags, and the process that has them now.
type seat struct {
	addr string
	args []string
	node atomic.Pointer[node]
}

// newFleet starts a node for each list of flags and waits until all are ready.
func newFleet(t *testing.T, flags ...[]string) *fleet {
	t.Helper()
	f := &fleet{}
	for _, args := range flags {
		s := &seat{args: args, addr: loopback()}
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

// loopback is an address of the machine that nobody else has, also while the node is dead:
// its port could be given to another fleet's, which would then be taken for it.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d:8080", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
}

func (s *seat) launch(t *testing.T) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s.node.Store(run(t, "http://"+s.addr, exec.Command(path, append([]string{"serve", "--addr", s.addr, "--admin-token", adminToken}, s.args...)...)))
}

func (s *seat) kill() { s.node.Load().stop(syscall.SIGKILL) }

func (s *seat) awaitReady(t *testing.T) {
	t.Helper()
	awaitLong(t, 3*time.Minute, "the node to be ready", func() bool {
		n := s.node.Load()
		select {
		case <-n.done:
			t.Fatalf("the node ended:\n%s", n.log.tail(4000))
		default:
		}
		a, err := n.try(t.Context(), "GET", "/readyz", nil)
		return err == nil && a.Status == 200
	})
}
