package testserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sentinel is a primary with one replica, and three Sentinels that watch them.
type Sentinel struct {
	Primary, Replica *RedisServer // as they were at the start
	Sentinels        []*RedisServer
}

const sentinelMaster = "main"

// NewSentinel starts the five servers and waits until each Sentinel knows all others. args
// are further arguments of primary and replica.
func NewSentinel(t testing.TB, args ...string) *Sentinel {
	t.Helper()
	return NewSentinelBehind(t, func(primary *RedisServer) int { return primary.Port }, args...)
}

// NewSentinelBehind is NewSentinel where the Sentinels and their clients reach the first
// primary by the port that front opens before it.
func NewSentinelBehind(t testing.TB, front func(primary *RedisServer) (port int), args ...string) *Sentinel {
	t.Helper()
	for tries := 1; ; tries++ {
		s, err := startSentinel(t, front, args)
		if err == nil {
			return s
		}
		for _, one := range append(s.Sentinels, s.Replica, s.Primary) {
			one.Stop(syscall.SIGTERM)
		}
		if tries == 3 {
			t.Fatalf("testserver: %v", err)
		}
		t.Logf("testserver: once more: %v", err)
	}
}

// acquaintance is how long Sentinels may take to know each other. On a machine that stalls
// they may fail over before they do, and never look as they should.
const acquaintance = 20 * time.Second

func startSentinel(t testing.TB, front func(primary *RedisServer) (port int), args []string) (*Sentinel, error) {
	t.Helper()
	s := &Sentinel{Primary: NewRedis(t, args...)}
	s.Replica = NewRedis(t, append([]string{"--replicaof", "127.0.0.1 " + strconv.Itoa(s.Primary.Port)}, args...)...)
	eventually(t, "the replica to be in step", s.Replica.Process, func(ctx context.Context) error {
		return s.Replica.ask(ctx, func(c *redis.Client) error {
			return contains(c.Info(ctx, "replication"), "master_link_status:up")
		})
	})
	port := front(s.Primary)
	for range 3 {
		s.Sentinels = append(s.Sentinels, newSentinelServer(t, port))
	}
	for _, one := range s.Sentinels {
		err := awaitFor(acquaintance, one.Process, func(ctx context.Context) error {
			return one.ask(ctx, func(c *redis.Client) error {
				return contains(c.Info(ctx, "sentinel"), "status=ok", "slaves=1,sentinels=3")
			})
		})
		if err != nil {
			return s, fmt.Errorf("the Sentinels do not get to know each other: %w", err)
		}
	}
	return s, nil
}

// URL is the address of whoever is the primary, as the settings take it.
func (s *Sentinel) URL() string {
	var hosts []string
	for _, one := range s.Sentinels {
		hosts = append(hosts, "127.0.0.1:"+strconv.Itoa(one.Port))
	}
	return "redis-sentinel://" + strings.Join(hosts, ",") + "/" + sentinelMaster
}

// Failover kills the primary and waits until the replica is one in its stead, without
// what was written since StopReplication.
func (s *Sentinel) Failover(t testing.TB) {
	t.Helper()
	s.Primary.Kill()
	_ = s.Replica.Signal(syscall.SIGCONT) // it is there, stopped or not
	for _, one := range s.Sentinels {
		eventually(t, "the failover", one.Process, func(ctx context.Context) error {
			return one.ask(ctx, func(c *redis.Client) error {
				got, err := c.Do(ctx, "SENTINEL", "get-master-addr-by-name", sentinelMaster).StringSlice()
				if want := strconv.Itoa(s.Replica.Port); err == nil && (len(got) != 2 || got[1] != want) {
					err = fmt.Errorf("the primary is %v", got)
				}
				return err
			})
		})
	}
	eventually(t, "the replica's promotion", s.Replica.Process, func(ctx context.Context) error {
		return s.Replica.ask(ctx, func(c *redis.Client) error { return contains(c.Info(ctx, "replication"), "role:master") })
	})
}

// StopReplication makes the replica lag: it gets nothing more until Failover. That must
// follow soon, before Sentinel gives the replica up.
func (s *Sentinel) StopReplication(t testing.TB) {
	t.Helper()
	if err := s.Replica.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// What is on its way in a connection would be read later: there must be none.
	ctx := context.Background()
	if err := s.Primary.ask(ctx, func(c *redis.Client) error {
		return c.Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err()
	}); err != nil {
		t.Fatal(err)
	}
}

// newSentinelServer starts one Sentinel. It keeps its state in its configuration file.
func newSentinelServer(t testing.TB, primary int) *RedisServer {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := &RedisServer{Port: port, dir: t.TempDir()}
	config := filepath.Join(s.dir, "sentinel.conf")
	text := fmt.Sprintf(`port %d
bind 127.0.0.1
dir %s
sentinel monitor %[3]s 127.0.0.1 %[4]d 2
sentinel down-after-milliseconds %[3]s 1500
sentinel failover-timeout %[3]s 5000
`, port, s.dir, sentinelMaster, primary)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := Program("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	if s.Process, err = start(exec.Command(path, config, "--sentinel")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(syscall.SIGTERM) })
	return s
}

// ask runs f with a client of its own.
func (s *RedisServer) ask(ctx context.Context, f func(*redis.Client) error) error {
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Protocol: 2})
	defer c.Close()
	return f(c)
}

// eventually waits until ok returns nil, at most as long as a server may take to start.
func eventually(t testing.TB, what string, p *Process, ok func(context.Context) error) {
	t.Helper()
	if err := await(p, ok); err != nil {
		t.Fatalf("testserver: waiting for %s: %v", what, err)
	}
}

// contains is an error unless the text holds all of parts.
func contains(cmd *redis.StringCmd, parts ...string) error {
	text, err := cmd.Result()
	if err != nil {
		return err
	}
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return fmt.Errorf("no %s in %q", p, text)
		}
	}
	return nil
}
