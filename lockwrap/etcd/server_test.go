package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/etcd"
	"apiengine/lockwrap/locktest"
)

// What the tests of all backends share.
var (
	request = locktest.Request
	acquire = locktest.Acquire
	release = locktest.Release
)

func node(t *testing.T, name string, s *testserver.EtcdServer) *lockwrap.Manager {
	t.Helper()
	return locktest.Node(t, lockwrap.Config{Backend: open(t, etcd.Config{Endpoints: s.URL()}), Instance: name, Prefix: "p"})
}

const (
	lease    = 20 * time.Second
	lockName = "p:{acme:OrderId:42}"
)

// admin is a plain client for a look behind the scenes.
func admin(t *testing.T, s *testserver.EtcdServer) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.URL()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestALeaseOutlivesACrash(t *testing.T) {
	s := testserver.NewEtcd(t)
	m, other := node(t, "n1", s), node(t, "n2", s)
	last := int64(0)
	for range 2 {
		l := acquire(t, m, request(lease, 10*time.Second))
		if l.Token() <= last {
			t.Errorf("token %d after %d", l.Token(), last)
		}
		last = l.Token()
		s.Restart(t)
		if _, err := other.Acquire(t.Context(), request(lease, 3*time.Second)); fault.Of(err) != fault.LockBusy {
			t.Errorf("another node after the crash: %v, want lock_busy", err)
		}
		if err := l.Confirm(t.Context()); err != nil {
			t.Errorf("confirm after the crash: %v", err)
		}
		release(t, l)
	}
}

func TestAMissingServer(t *testing.T) {
	s := testserver.NewEtcd(t)
	b, m := open(t, etcd.Config{Endpoints: s.URL()}), node(t, "n1", s)
	defer b.Close()
	release(t, acquire(t, m, request(lease, 0)))
	s.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var refused *lockwrap.BackendError
	if _, err := b.Acquire(ctx, claim(lockName, "n2:bb", lease)); !errors.As(err, &refused) {
		t.Errorf("acquire from a server that is not there: %v, want a *BackendError", err)
	}
	began := time.Now()
	if _, err := m.Acquire(t.Context(), request(lease, 300*time.Millisecond)); fault.Of(err) != fault.LockUnavailable || time.Since(began) > 2*time.Second {
		t.Errorf("acquire: %v after %v", err, time.Since(began))
	}
	if err := m.Ready(t.Context()); fault.Of(err) != fault.LockUnavailable {
		t.Errorf("Ready: %v", err)
	}
	s.Restart(t)
	release(t, acquire(t, m, request(lease, 20*time.Second)))
}

func TestTokensRiseWhenTheStateIsGone(t *testing.T) {
	s := testserver.NewEtcd(t)
	m, a := node(t, "n1", s), admin(t, s)
	last := int64(0)
	for range 3 {
		l := acquire(t, m, request(lease, 5*time.Second))
		if l.Token() <= last {
			t.Errorf("token %d after %d", l.Token(), last)
		}
		last = l.Token()
		if _, err := a.Delete(t.Context(), "p:", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		var lost *lockwrap.LostError
		if err := l.Release(t.Context()); !errors.As(err, &lost) {
			t.Errorf("release of what is gone: %v, want a *LostError", err)
		}
	}
}

func TestAStateThatIsNotALock(t *testing.T) {
	s := testserver.NewEtcd(t)
	b, a := open(t, etcd.Config{Endpoints: s.URL()}), admin(t, s)
	defer b.Close()
	if _, err := a.Put(t.Context(), lockName+":s", "somebody else's"); err != nil {
		t.Fatal(err)
	}
	var refused *lockwrap.BackendError
	if _, err := b.Acquire(t.Context(), claim(lockName, "n1:aa", lease)); !errors.As(err, &refused) {
		t.Errorf("got %v, want a *BackendError", err)
	}
	if r, err := a.Get(t.Context(), lockName+":s"); err != nil || string(r.Kvs[0].Value) != "somebody else's" {
		t.Errorf("a foreign key was changed: %v, %v", r, err)
	}
}

// Every key hangs on a lease, and what locks had of their own is given back.
func TestNothingStaysForEver(t *testing.T) {
	s := testserver.NewEtcd(t)
	b, a := open(t, etcd.Config{Endpoints: s.URL()}), admin(t, s)
	defer b.Close()
	ctx := t.Context()
	for i := range 20 {
		lock := fmt.Sprint("p:", i)
		r, err := b.Acquire(ctx, claim(lock, "n1:aa", time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Acquire(ctx, claim(lock, "n2:bb", time.Hour)); err != nil { // stands in line, so there is a notice
			t.Fatal(err)
		}
		o := lockwrap.Owner{Token: r.Token, Holder: "n1:aa"}
		if r, err := b.Renew(ctx, lock, o, 2*time.Hour); err != nil || !r.Held {
			t.Fatal(r, err)
		}
		if r, err := b.Release(ctx, lock, o, nil); err != nil || !r.Held {
			t.Fatal(r, err)
		}
	}
	all, err := a.Get(ctx, "p:", clientv3.WithPrefix())
	if err != nil || len(all.Kvs) != 21 { // a state each, and the one node's last notice
		t.Fatalf("%d keys, %v", len(all.Kvs), err)
	}
	for _, kv := range all.Kvs {
		life, err := a.TimeToLive(ctx, clientv3.LeaseID(kv.Lease))
		if kv.Lease == 0 || err != nil || life.TTL <= 0 || life.TTL > 3*3600 {
			t.Errorf("%s lives for %+v, %v", kv.Key, life, err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(5 * time.Millisecond) {
		leases, err := a.Leases(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(leases.Leases) <= 3 { // of states, of notices, and of the helper open
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d leases are left", len(leases.Leases))
		}
	}
}

// A server that dies takes the watch along; the one that comes back tells of turns again.
func TestALostWatch(t *testing.T) {
	s := testserver.NewEtcd(t)
	a, b := node(t, "n1", s), node(t, "n2", s)
	l := acquire(t, a, request(30*time.Second, 0))
	got := make(chan error, 1)
	go func() {
		next, err := b.Acquire(t.Context(), request(lease, 25*time.Second))
		if err == nil {
			err = next.Release(t.Context())
		}
		got <- err
	}()
	c := admin(t, s)
	for { // until the waiter stands in line
		r, err := c.Get(t.Context(), lockName+":s")
		if err != nil {
			t.Fatal(err)
		}
		var line struct{ Line []string }
		if decode(t, r.Kvs[0].Value, &line); len(line.Line) > 0 {
			break
		}
		<-time.After(2 * time.Millisecond)
	}
	s.Restart(t)
	release(t, l)
	if err := <-got; err != nil {
		t.Errorf("who waited: %v", err)
	}
}

// A lease that is gone is an error, not a crash of the server.
func TestALeaseThatIsGone(t *testing.T) {
	s := testserver.NewEtcd(t)
	b, a := open(t, etcd.Config{Endpoints: s.URL()}), admin(t, s)
	defer b.Close()
	for range 2 {
		if _, err := b.Acquire(t.Context(), claim(lockName, "n1:aa", lease)); err != nil {
			t.Fatal(err)
		}
		leases, err := a.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range leases.Leases { // those that the backend keeps for many locks too
			_, _ = a.Revoke(t.Context(), x.ID) // it may end by itself meanwhile
		}
	}
	if r, err := b.Acquire(t.Context(), claim(lockName, "n1:aa", lease)); err != nil || !r.Held {
		t.Errorf("%+v, %v", r, err)
	}
}
