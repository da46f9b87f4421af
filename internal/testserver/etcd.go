package testserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// EtcdServer is an etcd server: a cluster of its own, or a member of an EtcdCluster.
type EtcdServer struct {
	*Process
	name, cluster string // as --initial-cluster has them
	port, peer    int
	dir           string
}

// URL is the server's address as the settings take it.
func (s *EtcdServer) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.port) }

// Restart kills the server and starts it again on what it had written.
func (s *EtcdServer) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// NewEtcd starts a server for one test.
func NewEtcd(t testing.TB) *EtcdServer {
	t.Helper()
	s, err := newEtcd()
	if err == nil {
		err = s.start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(syscall.SIGTERM) })
	return s
}

var sharedEtcd = sync.OnceValues(func() (*EtcdServer, error) {
	s, err := newEtcd()
	if err == nil {
		err = s.start()
	}
	if err == nil {
		shared.add(func() { s.Stop(syscall.SIGTERM) })
	}
	return s, err
})

// Etcd returns the server that all tests of this process share. Use a prefix of your own.
func Etcd(t testing.TB) *EtcdServer {
	t.Helper()
	s, err := sharedEtcd()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newEtcd readies a server with its data in memory where there is such a folder: nobody
// needs it after a power cut, and a killed server has written it.
func newEtcd() (*EtcdServer, error) {
	s, parent := &EtcdServer{name: "default"}, "/dev/shm"
	var err error
	if _, e := os.Stat(parent); e != nil {
		parent = ""
	}
	if s.dir, err = os.MkdirTemp(parent, "apiengine-test-"); err != nil {
		return nil, err
	}
	shared.add(func() { os.RemoveAll(s.dir) })
	if s.port, err = FreePort(); err != nil {
		return nil, err
	}
	if s.peer, err = FreePort(); err != nil {
		return nil, err
	}
	s.cluster = s.member()
	return s, nil
}

func (s *EtcdServer) peerURL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.peer) }

func (s *EtcdServer) member() string { return s.name + "=" + s.peerURL() }

// start returns when the server serves.
func (s *EtcdServer) start() error {
	if err := s.Launch(); err != nil {
		return err
	}
	return await(s.Process, s.healthy)
}

// Launch starts the server and does not wait until it serves, which takes a majority.
func (s *EtcdServer) Launch() error {
	path, err := Program("etcd")
	if err != nil {
		return err
	}
	cmd := exec.Command(path, "--name", s.name, "--data-dir", filepath.Join(s.dir, "etcd"), "--logger", "zap", "--log-level", "fatal",
		"--listen-client-urls", s.URL(), "--advertise-client-urls", s.URL(),
		"--listen-peer-urls", s.peerURL(), "--initial-advertise-peer-urls", s.peerURL(), "--initial-cluster", s.cluster)
	s.Process, err = start(cmd)
	return err
}

// healthy asks as etcdctl does: the answer takes a leader.
func (s *EtcdServer) healthy(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/health", nil)
	if err != nil {
		return err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	var text strings.Builder
	if err := a.Write(&text); err != nil {
		return err
	}
	if !strings.Contains(text.String(), `"health":"true"`) {
		return fmt.Errorf("testserver: etcd is not healthy: %s", a.Status)
	}
	return nil
}
