package testserver

import (
	"context"
	"crypto/tls"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// RedisServer is a redis-server of a test's own.
type RedisServer struct {
	*Process
	Port int
	dir  string
	args []string
	env  []string    // besides this process's own
	tls  *tls.Config // of this process's own look whether it is up; nil: in plain
}

// Addr is the server's host:port.
func (s *RedisServer) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.Port) }

// URL is the server's address as the settings take it.
func (s *RedisServer) URL() string { return "redis://" + s.Addr() }

// NewRedis starts a server for one test; args are further redis-server arguments such as
// "--maxmemory", "10mb". It is stopped when the test ends.
func NewRedis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return newRedis(t, &RedisServer{Port: port, args: args})
}

func newRedis(t testing.TB, s *RedisServer) *RedisServer {
	t.Helper()
	s.dir = t.TempDir()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(syscall.SIGTERM) })
	return s
}

// Restart kills the server and starts it again on the same port and folder. What was not
// persisted (see redis-server's --appendonly) is lost.
func (s *RedisServer) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

func (s *RedisServer) start() error {
	path, err := Program("redis-server")
	if err != nil {
		return err
	}
	args := append([]string{"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1",
		"--dir", s.dir, "--save", "", "--appendonly", "no"}, s.args...)
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), s.env...)
	if s.Process, err = start(cmd); err != nil {
		return err
	}
	return await(s.Process, func(ctx context.Context) error {
		c := redis.NewClient(&redis.Options{Addr: s.Addr(), TLSConfig: s.tls})
		defer c.Close()
		return c.Ping(ctx).Err()
	})
}

var sharedRedis = sync.OnceValues(func() (*RedisServer, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := tempDir()
	if err != nil {
		return nil, err
	}
	s := &RedisServer{Port: port, dir: dir}
	if err := s.start(); err != nil {
		return nil, err
	}
	shared.add(func() { s.Stop(syscall.SIGTERM) })
	return s, nil
})

// Redis returns the server that all tests of this process share. Use a prefix of your
// own, never FLUSHALL.
func Redis(t testing.TB) *RedisServer {
	t.Helper()
	s, err := sharedRedis()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
