package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

func TestAnswersThatGetLost(t *testing.T) {
	s := testserver.NewRedis(t)
	p, a := proxied(t, s), admin(t, s)
	m, other := node(t, p.url(), "p"), node(t, s.URL(), "p")
	release(t, acquire(t, m, request(lease, 0)))
	for _, c := range []struct {
		name    string
		acquire []faultproxy.Fault
		release []faultproxy.Fault
	}{
		{"of the acquire", []faultproxy.Fault{faultproxy.LoseReply}, nil},
		{"of two acquires", []faultproxy.Fault{faultproxy.LoseReply, faultproxy.LoseReply}, nil},
		{"the acquire itself", []faultproxy.Fault{faultproxy.LoseCall}, nil},
		{"of the release", nil, []faultproxy.Fault{faultproxy.LoseReply}},
		{"the release itself", nil, []faultproxy.Fault{faultproxy.LoseCall}},
		{"all of them", []faultproxy.Fault{faultproxy.LoseCall, faultproxy.LoseReply}, []faultproxy.Fault{faultproxy.LoseReply, faultproxy.LoseCall}},
	} {
		t.Run(c.name, func(t *testing.T) {
			was, _ := a.Get(t.Context(), "p"+tokens).Int64()
			p.next(c.acquire...)
			l := acquire(t, m, request(lease, 10*time.Second))
			if now, _ := a.Get(t.Context(), "p"+tokens).Int64(); now != l.Token() || now <= was {
				t.Errorf("the counter is at %d, was at %d, the lease has %d: want one grant", now, was, l.Token())
			}
			if err := l.Confirm(t.Context()); err != nil {
				t.Error(err)
			}
			p.next(c.release...)
			release(t, l) // it was ours until we let go, and it says so
			release(t, acquire(t, other, request(lease, 0)))
		})
	}
}

func TestACallerThatLeavesMidCommandLeavesNoKey(t *testing.T) {
	s := testserver.NewRedis(t)
	p, a := proxied(t, s), admin(t, s)
	m := node(t, p.url(), "p")
	release(t, acquire(t, m, request(lease, 0)))
	held := p.next(faultproxy.HoldReply)[0]
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-held.Seen() // the server has done it, the client has not heard
		cancel()
	}()
	_, err := m.Acquire(ctx, request(lease, lease))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if n := a.Exists(t.Context(), "p"+lockKey).Val(); n != 1 {
		t.Fatal("the test is void: the lock was not taken")
	}
	held.Release()
	if err := m.Close(t.Context()); err != nil { // waits for the clean-up
		t.Fatal(err)
	}
	if n := a.Exists(t.Context(), "p"+lockKey).Val(); n != 0 {
		t.Error("the lock of a caller that left is still there")
	}
}

func TestAStoppedServer(t *testing.T) {
	s := testserver.NewRedis(t)
	m := node(t, s.URL(), "p")
	r := request(3*time.Second, 0)
	r.Key.Value, r.Plan.Renew, r.Plan.Hold = "renewed", time.Second, time.Hour
	kept := acquire(t, m, r)
	release(t, acquire(t, m, request(lease, 0)))

	if err := s.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err := m.Acquire(t.Context(), request(lease, 300*time.Millisecond))
	took := time.Since(began)
	if fault.Of(err) != fault.LockUnavailable || took < 250*time.Millisecond || took > time.Second {
		t.Errorf("acquire with a cap of 300 ms: %v after %v", err, took)
	}
	if err := m.Ready(t.Context()); fault.Of(err) != fault.LockUnavailable {
		t.Errorf("Ready: %v", err)
	}
	<-time.After(time.Until(began.Add(1500 * time.Millisecond))) // half of the renewed lease
	if err := s.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}

	l := acquire(t, m, request(lease, 10*time.Second)) // what the stopped server had in its buffers is cleaned up
	release(t, l)
	if err := m.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	first := kept.Deadline()
	for !kept.Deadline().After(first) {
		if err := kept.Err(); err != nil {
			t.Fatalf("half a lease of silence cost the renewed lock: %v", err)
		}
		<-time.After(5 * time.Millisecond)
	}
	release(t, kept)
}

func TestAMissingServer(t *testing.T) {
	s := testserver.NewRedis(t)
	m := node(t, s.URL(), "p")
	l := acquire(t, m, request(3*time.Second, 0))
	s.Kill()
	began := time.Now()
	_, err := m.Acquire(t.Context(), lockwrap.Request{Key: lockwrap.Key{Tenant: "a", Scope: "b"}, Plan: request(lease, 0).Plan})
	if fault.Of(err) != fault.LockUnavailable || time.Since(began) > 2*time.Second {
		t.Errorf("acquire: %v after %v", err, time.Since(began))
	}
	if strings.Contains(fault.Public(err), "127.0.0.1") {
		t.Errorf("the public text shows the address: %s", fault.Public(err))
	}
	wantLost(t, l.Confirm(t.Context()), lockwrap.ConfirmFailed)
	wantLost(t, l.Release(t.Context()), lockwrap.ConfirmFailed)
	s.Restart(t)
	release(t, acquire(t, m, request(lease, 10*time.Second)))
}

// line is a proxy before one server.
type line struct{ *faultproxy.Proxy }

func proxied(t *testing.T, s *testserver.RedisServer) line {
	return line{faultproxy.New(t, faultproxy.Config{Target: fmt.Sprintf("127.0.0.1:%d", s.Port)})}
}

func (p line) url() string { return "redis://" + p.Addr() }

// next says what happens to the coming script calls, one after the other.
func (p line) next(faults ...faultproxy.Fault) (traps []*faultproxy.Trap) {
	for _, f := range faults {
		traps = append(traps, p.Add(faultproxy.Rule{Match: faultproxy.Script("p:"), Times: 1, Fault: f}))
	}
	return traps
}
