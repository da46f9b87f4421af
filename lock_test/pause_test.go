package lock_test

import (
	"testing"
	"time"

	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

// P1, as far as the lock goes (the guard's part is engine_test's): a process stopped past
// its lease, renewed or not, hears of the loss when it goes on, and harms no later holder.
func TestAProcessStoppedPastItsLease(t *testing.T) {
	t.Parallel()
	for name, renews := range map[string]bool{"not renewed": false, "renewed": true} {
		t.Run(name, func(t *testing.T) {
			s := testserver.NewRedis(t)
			m := node(t, s.URL())
			w := startWorker(t, job{URL: s.URL(), Name: "w", Lease: time.Second, Renewed: renews})
			w.goOn()
			first := w.hear()
			if first.Error != "" {
				t.Fatal(first.Error)
			}
			w.stop()
			next := acquire(t, m, request(lease, lease)) // once the lease is over
			if next.Token() <= first.Token {
				t.Errorf("token %d after %d", next.Token(), first.Token)
			}
			w.cont()
			w.goOn()
			if s := w.hear(); s.Confirm == "" || s.Release == "" {
				t.Errorf("the stopped holder: %+v, want a loss", s)
			}
			if err := next.Confirm(t.Context()); err != nil {
				t.Errorf("the stopped holder met the next one: %v", err)
			}
			release(t, next)
		})
	}
}

// P2: a process stopped between sending its acquire and the reply does not believe a grant
// whose lease is over.
func TestAProcessStoppedInItsAcquire(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]faultproxy.Fault{"the reply waits": faultproxy.HoldReply, "the call waits": faultproxy.HoldCall} {
		t.Run(name, func(t *testing.T) {
			s := testserver.NewRedis(t)
			p := proxied(t, s)
			a, m := admin(t, s), node(t, s.URL())
			warm(t, m)
			held := p.Add(faultproxy.Rule{Match: faultproxy.Script(prefix), Times: 1, Fault: f})
			w := startWorker(t, job{URL: "redis://" + p.Addr(), Name: "w", Lease: 700 * time.Millisecond})
			w.goOn()
			<-held.Seen()
			w.stop()
			if f == faultproxy.HoldCall { // it is done now, while its sender sleeps
				held.Release()
				eventually(t, "the acquire to be done", func() bool { return a.Exists(t.Context(), lockKey()).Val() == 1 })
			}
			next := acquire(t, m, request(lease, lease))
			held.Release()
			w.cont()
			select {
			case s := <-w.out:
				t.Errorf("beside a holder the stopped process says %+v", s)
			case <-time.After(300 * time.Millisecond): // it waits, as it should
			}
			if err := next.Confirm(t.Context()); err != nil {
				t.Errorf("the late acquire met the next holder: %v", err)
			}
			release(t, next)
			if s := w.hear(); s.Token <= next.Token() {
				t.Errorf("afterwards the stopped process says %+v, the token before was %d", s, next.Token())
			}
			w.goOn()
			if s := w.hear(); !s.Done {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A process that is killed keeps others out for no longer than its lease.
func TestAKilledProcess(t *testing.T) {
	t.Parallel()
	s := testserver.NewRedis(t)
	m := node(t, s.URL())
	w := startWorker(t, job{URL: s.URL(), Name: "w", Lease: 900 * time.Millisecond, Renewed: true})
	w.goOn()
	first := w.hear()
	<-time.After(time.Second) // it is renewed at least once
	if _, err := m.Acquire(t.Context(), request(lease, 0)); err == nil {
		t.Fatal("the lease was not renewed")
	}
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	next := acquire(t, m, request(lease, lease))
	if took := time.Since(killed); took > 3*time.Second || next.Token() <= first.Token {
		t.Errorf("%v after the kill with token %d after %d", took, next.Token(), first.Token)
	}
	release(t, next)
}

// TLS with a checked certificate, and none without the authority.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := testserver.NewTLSRedis(t)
	j := job{URL: s.URL(), Name: "w", Lease: lease}
	w := startWorker(t, j, "SSL_CERT_FILE="+s.CAFile, "SSL_CERT_DIR=/nonexistent")
	w.goOn()
	if got := w.hear(); got.Error != "" || got.Token == 0 {
		t.Errorf("%+v", got)
	}
	w.goOn()
	if got := w.hear(); got.Confirm != "" || got.Release != "" {
		t.Errorf("%+v", got)
	}
	b, err := open(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Acquire(t.Context(), lockwrap.Claim{Lock: "p:{x}", Holder: "n:1", TTL: time.Second}); err == nil {
		t.Error("a certificate of an unknown authority was taken")
	}
}
