// Package lock_test shows from outside that the lock keeps its word when replies are lost,
// servers fail and processes stop: docs/faults.md names the fault of each test.
// Tests that mostly wait for servers run beside each other.
package lock_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/fault"
	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/etcd"
	"apiengine/lockwrap/locktest"
	"apiengine/lockwrap/postgres"
	"apiengine/lockwrap/redis"
)

// What the tests of all backends share.
var (
	request  = locktest.Request
	acquire  = locktest.Acquire
	release  = locktest.Release
	wantLost = locktest.WantLost
)

// node opens a Manager of its own at url.
func node(t testing.TB, url string) *lockwrap.Manager {
	t.Helper()
	b, err := open(url)
	if err != nil {
		t.Fatal(err)
	}
	return locktest.Node(t, lockwrap.Config{Backend: b, Prefix: prefix, Instance: fmt.Sprintf("n%d", instances.Add(1))})
}

// TestMain also serves as the main function of the worker processes (worker_test.go).
func TestMain(m *testing.M) {
	if job := os.Getenv(workerEnv); job != "" {
		os.Exit(runWorker(job))
	}
	goredis.SetLogger(silence{}) // it tells of every failed dial
	testserver.Main(m)
}

type silence struct{}

// Printf implements go-redis' logger.
func (silence) Printf(context.Context, string, ...any) {}

// long reports whether the long form is asked for: make faults.
func long() bool { return os.Getenv("APIENGINE_FAULTS") == "long" }

// either picks by the form that runs.
func either[T any](short, extended T) T {
	if long() {
		return extended
	}
	return short
}

// open connects to the locks at an address, by its scheme.
func open(url string) (lockwrap.Backend, error) {
	switch scheme, _, _ := strings.Cut(url, ":"); scheme {
	case "postgres":
		return postgres.New(postgres.Config{URL: url})
	case "http":
		return etcd.New(etcd.Config{Endpoints: url})
	}
	return redis.New(redis.Config{URL: url})
}

// site is a lock store of a test's own.
type site struct {
	url   string              // for nodes
	lines []*faultproxy.Proxy // that url leads through; none: directly
}

// sites are the stores that the tests run on, each with a proxy before every server where
// that is said.
var sites = []struct {
	name string
	open func(t testing.TB) site
}{
	{"redis", func(t testing.TB) site {
		p := proxied(t, testserver.NewRedis(t))
		return site{"redis://" + p.Addr(), []*faultproxy.Proxy{p}}
	}},
	{"cluster", func(t testing.TB) site {
		c := testserver.NewCluster(t)
		s := site{}
		var hosts []string
		for _, one := range c.Servers {
			p := proxied(t, one)
			a := admin(t, one)
			for name, value := range map[string]string{"cluster-announce-ip": "127.0.0.1", "cluster-announce-port": fmt.Sprint(p.Port())} {
				if err := a.ConfigSet(context.Background(), name, value).Err(); err != nil {
					t.Fatal(err)
				}
			}
			s.lines, hosts = append(s.lines, p), append(hosts, p.Addr())
		}
		s.url = "redis-cluster://" + strings.Join(hosts, ",")
		eventually(t, "every server to tell the proxies' ports", func() bool {
			for _, one := range c.Servers {
				text := fmt.Sprint(admin(t, one).ClusterNodes(context.Background()).Val())
				for _, p := range s.lines {
					if !strings.Contains(text, p.Addr()) {
						return false
					}
				}
			}
			return true
		})
		return s
	}},
	{"sentinel", func(t testing.TB) site {
		var p *faultproxy.Proxy
		c := testserver.NewSentinelBehind(t, func(primary *testserver.RedisServer) int {
			p = proxied(t, primary)
			return p.Port()
		})
		return site{c.URL(), []*faultproxy.Proxy{p}}
	}},
}

func proxied(t testing.TB, s *testserver.RedisServer) *faultproxy.Proxy {
	return faultproxy.New(t, faultproxy.Config{Target: s.Addr()})
}

// admin is a plain client for a look behind the scenes.
func admin(t testing.TB, s *testserver.RedisServer) *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr()})
	t.Cleanup(func() { c.Close() })
	return c
}

// onAll sets a trap for the lock's scripts on every line. Only one line sees a lock.
func (s site) onAll(f faultproxy.Fault, times int) (traps traps) {
	for _, p := range s.lines {
		traps = append(traps, p.Add(faultproxy.Rule{Match: faultproxy.Script(prefix), Times: times, Fault: f}))
	}
	return traps
}

type traps []*faultproxy.Trap

func (ts traps) count() (n int) {
	for _, t := range ts {
		n += t.Count()
	}
	return n
}

func (ts traps) remove() {
	for _, t := range ts {
		t.Remove()
	}
}

const (
	prefix = "ft"
	lease  = 20 * time.Second // of a test in which it must not run out
)

var instances atomic.Int64

// renewed is a request for a lease that is kept alive.
func renewed(lease time.Duration) lockwrap.Request {
	r := request(lease, 10*time.Second)
	r.Plan.Renew, r.Plan.Hold = lease/3, time.Hour
	return r
}

// lockKey is the key of request's lock in Redis.
func lockKey() string { return prefix + ":{" + request(lease, 0).Key.String() + "}:l" }

// warm makes the server learn all scripts, so that a fault meets the call it is meant for.
func warm(t testing.TB, m *lockwrap.Manager) {
	t.Helper()
	l := acquire(t, m, renewed(900*time.Millisecond)) // a client of its own renews, which must first connect
	first := l.Deadline()
	eventually(t, "a renewal", func() bool { return l.Deadline().After(first) || l.Err() != nil })
	if err := l.Confirm(context.Background()); err != nil {
		t.Fatal(err)
	}
	release(t, l)
}

func wantKind(t testing.TB, err error, kind fault.Kind) {
	t.Helper()
	if fault.Of(err) != kind {
		t.Errorf("got %v, want %s", err, kind)
	}
}

// eventually asks until the answer is yes, for what only servers decide.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !ok(); <-tick.C {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}
