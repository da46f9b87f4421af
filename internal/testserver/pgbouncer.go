package testserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// PgBouncer is a connection pooler in transaction mode.
type PgBouncer struct {
	*Process
	Port int
}

// URL is the address of one of the server's databases through the pooler.
func (b *PgBouncer) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", b.Port, database)
}

// NewPgBouncer starts a pooler before s for one test. It has ten connections to each database.
func NewPgBouncer(t testing.TB, s *PostgresServer) *PgBouncer {
	t.Helper()
	b, err := newPgBouncer(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Stop(syscall.SIGTERM) })
	return b
}

const bouncerConfig = `[databases]
* = host=127.0.0.1 port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 10
max_client_conn = 500
`

func newPgBouncer(s *PostgresServer) (*PgBouncer, error) {
	path, err := Program("pgbouncer")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := tempDir()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, fmt.Appendf(nil, bouncerConfig, s.Port, port), 0o644); err != nil {
		return nil, err
	}
	cred, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "-q", file)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	b := &PgBouncer{Port: port}
	if b.Process, err = start(cmd); err != nil {
		return nil, err
	}
	return b, await(b.Process, func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, b.URL("postgres"))
		if err != nil {
			return err
		}
		return c.Close(ctx)
	})
}
