package testserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// PostgresServer is a PostgreSQL server of this process's own.
type PostgresServer struct {
	*Process
	Port int
	dir  string
	args []string
	cred *syscall.Credential // of the postgres user when the tests run as root
}

// URL is the address of one database as the settings take it.
func (s *PostgresServer) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.Port, database)
}

// Restart stops the server at once, as a crash would, and starts it again.
func (s *PostgresServer) Restart(t testing.TB) {
	t.Helper()
	s.Stop(syscall.SIGQUIT)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// NewPostgres starts a server for t alone, with further options in the form "-c", "name=value".
// Unlike the shared one it waits for the disk at every commit.
func NewPostgres(t testing.TB, options ...string) *PostgresServer {
	t.Helper()
	s, err := newPostgres(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(syscall.SIGINT) })
	return s
}

func newPostgres(options ...string) (*PostgresServer, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := tempDir()
	if err != nil {
		return nil, err
	}
	s := &PostgresServer{Port: port, dir: filepath.Join(dir, "pg"), args: options}
	path, err := Program("postgres")
	if err != nil {
		return nil, err
	}
	if s.cred, err = unprivileged(dir); err != nil {
		return nil, err
	}
	initdb := exec.Command(filepath.Join(filepath.Dir(path), "initdb"),
		"-D", s.dir, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync")
	initdb.Dir = dir
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("testserver: initdb: %w\n%s", err, out)
	}
	return s, s.start()
}

func (s *PostgresServer) start() error {
	path, err := Program("postgres")
	if err != nil {
		return err
	}
	cmd := exec.Command(path, append([]string{"-D", s.dir, "-p", strconv.Itoa(s.Port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=200"}, s.args...)...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	if s.Process, err = start(cmd); err != nil {
		return err
	}
	return await(s.Process, func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, s.URL("postgres"))
		if err != nil {
			return err
		}
		return c.Close(ctx)
	})
}

// unprivileged gives dir to the postgres user when the tests run as root, since
// PostgreSQL refuses to.
func unprivileged(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("testserver: %w", err)
	}
	uid, _ := strconv.Atoi(u.Uid) // user.Lookup gives decimal numbers on Unix
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "apiengine-test-")
	if err == nil {
		shared.add(func() { os.RemoveAll(dir) })
	}
	return dir, err
}

var (
	// What a killed server had written is in the system's memory, so nothing that tests can
	// see hangs on fsync; with it, the start after a crash syncs every file of every database,
	// which takes a busy machine half a minute.
	sharedPostgres = sync.OnceValues(func() (*PostgresServer, error) {
		s, err := newPostgres("-c", "fsync=off")
		if err == nil {
			shared.add(func() { s.Stop(syscall.SIGINT) })
		}
		return s, err
	})
	databases atomic.Int64
)

// Postgres returns the server that all tests of this process share.
func Postgres(t testing.TB) *PostgresServer {
	t.Helper()
	s, err := sharedPostgres()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Database makes an empty database on the shared server and returns its URL.
func Database(t testing.TB) string {
	t.Helper()
	s := Postgres(t)
	name := fmt.Sprintf("test_%d", databases.Add(1))
	ctx := context.Background()
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}
