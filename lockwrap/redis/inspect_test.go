package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

// A look at the locks sees every server of a cluster, nodes that wait, and passes by keys
// of somebody else's making.
func TestInspect(t *testing.T) {
	single := testserver.NewRedis(t)
	clustered, _ := cluster(t)
	for _, c := range []struct {
		name, url string
		s         *testserver.RedisServer
	}{
		{"single", single.URL(), single},
		{"cluster", strings.Replace(clustered.URL(), "redis://", "redis-cluster://", 1), clustered},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, m := admin(t, c.s), node(t, c.url, "p[1]")
			const n = 1500 // more than one page of SCAN
			for i := range n {
				r := request(time.Minute, 0)
				r.Key.Value = fmt.Sprint(i)
				l := acquire(t, m, r)
				t.Cleanup(func() { l.Release(t.Context()) })
			}
			const lock = "p[1]:{acme:OrderId:7}"
			since := time.Now().Add(-3 * time.Second).Truncate(time.Microsecond)
			for i, node := range []string{"n8", "p[1]:w:n%2F9"} {
				z := goredis.Z{Member: node, Score: float64(since.Add(time.Duration(i) * time.Second).UnixMicro())}
				if err := a.ZAdd(t.Context(), lock+":q", z).Err(); err != nil {
					t.Fatal(err)
				}
			}
			for _, junk := range []func() error{
				func() error { return a.LPush(t.Context(), "p[1]:{acme:OrderId:list}:l", "x").Err() },
				func() error { return a.Set(t.Context(), "p[1]:{acme:OrderId:text}:l", "no lock of ours", 0).Err() },
				func() error { return a.Set(t.Context(), "p1:{acme:OrderId:7}:l", "1:n:a 1 api", 0).Err() }, // matches as a pattern
				func() error { return a.LPush(t.Context(), "p[1]:{acme:OrderId:8}:q", "x").Err() },
			} {
				if err := junk(); err != nil {
					t.Fatal(err)
				}
			}
			list, err := m.Locks(t.Context(), "")
			if err != nil || len(list) != n {
				t.Fatalf("%d locks of %d, %v", len(list), n, err)
			}
			one, err := m.Lock(t.Context(), "acme:OrderId:7")
			if err != nil {
				t.Fatal(err)
			}
			want := []lockwrap.Waiting{{Node: "n8", Since: since}, {Node: "n/9", Since: since.Add(time.Second)}}
			for i, w := range one.Waiting {
				if len(one.Waiting) != 2 || w.Node != want[i].Node || !w.Since.Equal(want[i].Since) {
					t.Fatalf("waiting: %+v, want %+v", one.Waiting, want)
				}
			}
			if len(one.Waiting) != 2 {
				t.Errorf("waiting: %+v", one.Waiting)
			}
		})
	}
}
