package redis_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/lockwrap/redis"
)

func TestParseURL(t *testing.T) {
	for _, c := range []struct {
		url   string
		addrs []string
		want  goredis.UniversalOptions
		tls   bool
	}{
		{"redis://localhost", []string{"localhost:6379"}, goredis.UniversalOptions{}, false},
		{"redis://127.0.0.1:7000/3", []string{"127.0.0.1:7000"}, goredis.UniversalOptions{DB: 3}, false},
		{"REDIS://me:p%40ss%2F%25@h:1/0", []string{"h:1"}, goredis.UniversalOptions{Username: "me", Password: "p@ss/%"}, false},
		{"redis://:secret@h", []string{"h:6379"}, goredis.UniversalOptions{Password: "secret"}, false},
		{"redis://[::1]:7000?db=2&pool_size=7&read_timeout=2s", []string{"[::1]:7000"},
			goredis.UniversalOptions{DB: 2, PoolSize: 7, ReadTimeout: 2 * time.Second}, false},
		{"rediss://h", []string{"h:6379"}, goredis.UniversalOptions{}, true},
		{"redis-sentinel://me:pw@h1,h2:7,[::1]/main?db=4&sentinel_username=su&sentinel_password=sp", []string{"h1:26379", "h2:7", "[::1]:26379"},
			goredis.UniversalOptions{MasterName: "main", Username: "me", Password: "pw", DB: 4, SentinelUsername: "su", SentinelPassword: "sp"}, false},
		{"rediss-sentinel://h1/main", []string{"h1:26379"}, goredis.UniversalOptions{MasterName: "main"}, true},
		{"redis-cluster://me:pw@h1,h2:7", []string{"h1:6379", "h2:7"}, goredis.UniversalOptions{IsClusterMode: true, Username: "me", Password: "pw"}, false},
		{"rediss-cluster://h1", []string{"h1:6379"}, goredis.UniversalOptions{IsClusterMode: true}, true},
	} {
		o, err := redis.ParseURL(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		w := c.want
		if !slices.Equal(o.Addrs, c.addrs) || o.DB != w.DB || o.Username != w.Username || o.Password != w.Password || o.MasterName != w.MasterName ||
			o.SentinelUsername != w.SentinelUsername || o.SentinelPassword != w.SentinelPassword || o.IsClusterMode != w.IsClusterMode ||
			o.PoolSize != w.PoolSize || o.ReadTimeout != w.ReadTimeout || (o.TLSConfig != nil) != c.tls {
			t.Errorf("%s: %+v", c.url, o)
		}
	}
}

func TestTLSNamesEachServer(t *testing.T) {
	one, err1 := redis.ParseURL("rediss://h1:7?skip_verify=true")
	many, err2 := redis.ParseURL("rediss-cluster://h1,h2")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if one.TLSConfig.ServerName != "h1" || !one.TLSConfig.InsecureSkipVerify {
		t.Errorf("one server: %q, skip %v", one.TLSConfig.ServerName, one.TLSConfig.InsecureSkipVerify)
	}
	if many.TLSConfig.ServerName != "" || many.TLSConfig.InsecureSkipVerify {
		t.Errorf("a cluster: %q, skip %v: the first one's name would be asked of all", many.TLSConfig.ServerName, many.TLSConfig.InsecureSkipVerify)
	}
}

func TestParseURLRefuses(t *testing.T) {
	for _, url := range []string{
		"", "localhost:6379", "http://hunter2@h", "redis-ring://hunter2@h", "redis:/h",
		"redis://h1,h2", "redis://me:hunter2@", "redis://me:hunter2@h:port", "redis://me:hunter2@h1,,h2",
		"redis://me:hunter2/@h:1", "redis://me:6379/hunter2@h", "redis://me:1?hunter2@h", "redis://me:1#hunter2@h", "redis://me:hunter2%@h",
		"redis://me:hunter2@h/zero", "redis://me:hunter2@h/1/2", "redis://me:hunter2@h?nonsense=1", "redis://me:hunter2@h?pool_size=many",
		"redis-sentinel://me:hunter2@h", "redis-sentinel://me:hunter2@h/a/b", "redis-cluster://me:hunter2@h/3", "redis-cluster://me:hunter2@h?db=3",
	} {
		_, err := redis.ParseURL(url)
		if err == nil {
			t.Errorf("%s was taken", url)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "redis: ") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, cfg := range map[string]redis.Config{
		"address":         {},
		"Config.Timeout":  {URL: "redis://h", Timeout: time.Millisecond},
		"Config.PoolSize": {URL: "redis://h", PoolSize: -1},
	} {
		if _, err := redis.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error about %s", cfg, err, want)
		}
	}
}
