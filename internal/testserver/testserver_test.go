package testserver_test

import (
	"context"
	"testing"

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
