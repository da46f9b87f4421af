package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/fault"
	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
)

// cluster starts a cluster of one server.
func cluster(t *testing.T) (*testserver.RedisServer, *goredis.Client) {
	t.Helper()
	s := testserver.NewRedis(t, "--cluster-enabled", "yes")
	a := admin(t, s)
	if err := a.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(a.ClusterInfo(t.Context()).Val(), "cluster_state:ok"); {
		if time.Now().After(deadline) {
			t.Fatal("the cluster does not come up")
		}
		<-time.After(20 * time.Millisecond)
	}
	return s, a
}

func TestCluster(t *testing.T) {
	s, _ := cluster(t)
	m := node(t, strings.Replace(s.URL(), "redis://", "redis-cluster://", 1), "p")
	for i := range 50 { // over many slots; a script with keys of two slots would be refused
		r := request(lease, 0)
		r.Key.Value = fmt.Sprintf("{%d}", i)
		l := acquire(t, m, r)
		if err := l.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Acquire(t.Context(), r); fault.Of(err) != fault.LockBusy {
			t.Errorf("a second holder: %v", err)
		}
		release(t, l)
	}
}

// A cluster's client repeats what it did not get an answer to, unless it is told not to: a
// release repeated behind the manager's back would look like a lost lease.
func TestClusterWithALostAnswer(t *testing.T) {
	s, a := cluster(t)
	p := proxied(t, s)
	for name, value := range map[string]string{"cluster-announce-ip": "127.0.0.1", "cluster-announce-port": fmt.Sprint(p.Port())} {
		if err := a.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	m := node(t, strings.Replace(p.url(), "redis://", "redis-cluster://", 1), "p")
	release(t, acquire(t, m, request(lease, 0)))
	for range 5 {
		traps := p.next(faultproxy.LoseReply)
		l := acquire(t, m, request(lease, 10*time.Second))
		traps = append(traps, p.next(faultproxy.LoseReply)...)
		release(t, l)
		if traps[0].Left()+traps[1].Left() > 0 {
			t.Fatal("the test is void: the client goes another way")
		}
	}
}
