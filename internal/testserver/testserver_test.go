package testserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"apiengine/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestServersAnswer(t *testing.T) {
	ctx := context.Background()
	opt, err := redis.ParseURL(testserver.Redis(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(opt)
	defer c.Close()
	if err := c.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
	pg, err := pgx.Connect(ctx, testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close(ctx)
	if err := pg.Ping(ctx); err != nil {
		t.Error(err)
	}
}

func TestARestartedRedisAnswersEmpty(t *testing.T) {
	ctx := context.Background()
	s := testserver.NewRedis(t)
	opt, _ := redis.ParseURL(s.URL())
	c := redis.NewClient(opt)
	defer c.Close()
	c.Set(ctx, "k", "v", 0)
	s.Restart(t)
	if err := c.Get(ctx, "k").Err(); err != redis.Nil {
		t.Errorf("got %v, want no key", err)
	}
}

func TestSentinelsPromoteALaggingReplica(t *testing.T) {
	ctx := context.Background()
	s := testserver.NewSentinel(t)
	one, two := redis.NewClient(&redis.Options{Addr: s.Primary.Addr()}), redis.NewClient(&redis.Options{Addr: s.Replica.Addr()})
	defer one.Close()
	defer two.Close()
	one.Set(ctx, "k", "seen", 0)
	if n := one.Wait(ctx, 1, 10*time.Second).Val(); n != 1 {
		t.Fatal("the replica does not follow")
	}
	s.StopReplication(t)
	one.Set(ctx, "k", "missed", 0)
	s.Failover(t)
	if got := two.Get(ctx, "k").Val(); got != "seen" {
		t.Errorf("the new primary has %q", got)
	}
	if err := two.Set(ctx, "k", "new", 0).Err(); err != nil {
		t.Error(err)
	}
}

func TestAClusterMovesASlot(t *testing.T) {
	ctx := context.Background()
	s := testserver.NewCluster(t)
	var addrs []string
	for _, one := range s.Servers {
		addrs = append(addrs, one.Addr())
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	defer c.Close()
	for i := range 6 { // round, and round again
		c.Set(ctx, "k", i, 0)
		s.MoveSlot(t, "k", func() { c.Incr(ctx, "k") })
		if got, err := c.Get(ctx, "k").Int(); got != i+1 {
			t.Errorf("after move %d the key is %d, %v", i, got, err)
		}
	}
}
