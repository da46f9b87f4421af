package testserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Cluster is a Redis Cluster of three primaries.
type Cluster struct {
	Servers []*RedisServer
}

const slots = 16384

// NewCluster starts the servers, joins them, and waits until each of them serves.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	const n = 3
	c := &Cluster{}
	for range n {
		bus, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		c.Servers = append(c.Servers, NewRedis(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "5000"))
	}
	for i, s := range c.Servers {
		c.must(t, s, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		c.must(t, s, "CLUSTER", "ADDSLOTSRANGE", i*slots/n, (i+1)*slots/n-1)
	}
	first := c.Servers[0]
	for _, s := range c.Servers[1:] {
		c.must(t, first, "CLUSTER", "MEET", "127.0.0.1", s.Port, s.busPort(t))
	}
	for _, s := range c.Servers {
		eventually(t, "the cluster", s.Process, func(ctx context.Context) error {
			return s.ask(ctx, func(r *redis.Client) error {
				return contains(r.ClusterInfo(ctx), "cluster_state:ok", "cluster_known_nodes:3", "cluster_slots_ok:16384")
			})
		})
	}
	return c
}

// URL is the cluster's address as the settings take it.
func (c *Cluster) URL() string {
	var hosts []string
	for _, s := range c.Servers {
		hosts = append(hosts, s.Addr())
	}
	return "redis-cluster://" + strings.Join(hosts, ",")
}

// MoveSlot moves the slot of key from the server that has it to the next one, key by key,
// as an operator's resharding does while clients go on. during, if not nil, is called
// when the slot is open at both and its keys have not been moved.
func (c *Cluster) MoveSlot(t testing.TB, key string, during func()) {
	t.Helper()
	slot := c.must(t, c.Servers[0], "CLUSTER", "KEYSLOT", key).(int64)
	from := c.owner(t, slot)
	to := (from + 1) % len(c.Servers)
	source, target := c.Servers[from], c.Servers[to]
	sourceID, targetID := c.must(t, source, "CLUSTER", "MYID"), c.must(t, target, "CLUSTER", "MYID")
	c.must(t, target, "CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID)
	c.must(t, source, "CLUSTER", "SETSLOT", slot, "MIGRATING", targetID)
	if during != nil {
		during()
	}
	for {
		keys := c.must(t, source, "CLUSTER", "GETKEYSINSLOT", slot, 1).([]any)
		if len(keys) == 0 {
			break
		}
		c.must(t, source, "MIGRATE", "127.0.0.1", target.Port, keys[0], 0, 5000)
	}
	// The target first, so that no server sends a client to one that knows nothing of it.
	for _, s := range []*RedisServer{target, source, c.Servers[(from+2)%len(c.Servers)]} {
		c.must(t, s, "CLUSTER", "SETSLOT", slot, "NODE", targetID)
	}
}

// owner is the index of the server that has the slot.
func (c *Cluster) owner(t testing.TB, slot int64) int {
	t.Helper()
	for _, x := range c.must(t, c.Servers[0], "CLUSTER", "SLOTS").([]any) {
		part := x.([]any)
		if part[0].(int64) > slot || slot > part[1].(int64) {
			continue
		}
		for i, s := range c.Servers {
			if part[2].([]any)[1].(int64) == int64(s.Port) {
				return i
			}
		}
	}
	t.Fatalf("testserver: nobody has slot %d", slot)
	return 0
}

func (c *Cluster) must(t testing.TB, s *RedisServer, args ...any) any {
	t.Helper()
	ctx := context.Background()
	var val any
	if err := s.ask(ctx, func(r *redis.Client) (err error) {
		val, err = r.Do(ctx, args...).Result()
		return err
	}); err != nil {
		t.Fatalf("testserver: %s: %v", fmt.Sprint(args...), err)
	}
	return val
}

// busPort is the port at which the server talks to its cluster.
func (s *RedisServer) busPort(t testing.TB) (port string) {
	t.Helper()
	for i, arg := range s.args {
		if arg == "--cluster-port" {
			return s.args[i+1]
		}
	}
	t.Fatal("testserver: no server of a cluster")
	return ""
}
