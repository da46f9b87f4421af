package redis_test

import (
	"fmt"
	"strings"
	"testing"

	"apiengine/internal/testserver"
	"apiengine/lockwrap/redis"
)

// What real servers say and what their users may do.
func TestCheck(t *testing.T) {
	s := testserver.NewRedis(t)
	a := admin(t, s)
	user := func(name, rules string) string {
		if err := a.Do(t.Context(), append([]any{"ACL", "SETUSER", name, "reset", "on", ">pw"}, anys(strings.Fields(rules))...)...).Err(); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("redis://%s:pw@127.0.0.1:%d", name, s.Port)
	}
	set := func(t *testing.T, name, value string) {
		old := a.ConfigGet(t.Context(), name).Val()[name]
		if err := a.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.ConfigSet(t.Context(), name, old) })
	}
	for _, c := range []struct {
		name, url string
		prepare   func(*testing.T)
		want      []string // in the findings, in their order
		fatal     bool     // the last one is
	}{
		{name: "a good server", url: s.URL()},
		{name: "eviction", url: s.URL(), prepare: func(t *testing.T) { set(t, "maxmemory-policy", "allkeys-lru") }, want: []string{"maxmemory-policy is allkeys-lru"}},
		{name: "eviction that nothing starts", url: s.URL(), prepare: func(t *testing.T) { set(t, "maxmemory-policy", "volatile-lru") }},
		{name: "a replica", url: s.URL(), prepare: replica(s), want: []string{"1 replicas and no min-replicas-to-write"}},
		{name: "all that is needed", url: user("enough", "~p:* &* +@all -@dangerous +info")},
		{name: "no channels", url: user("mute", "~p:* resetchannels +@all"), want: []string{"may not publish"}},
		{name: "no scripts", url: user("dull", "~p:* &* +@all -@scripting"), want: []string{"may not take a lock"}, fatal: true},
		{name: "other keys", url: user("astray", "~q:* &* +@all"), want: []string{"may not take a lock"}, fatal: true},
		{name: "no INFO", url: user("blind", "~p:* &* +@all -info"), want: []string{"cannot be checked"}},
		{name: "a wrong password", url: strings.Replace(user("late", "~p:* &* +@all"), ":pw@", ":other@", 1), want: []string{"cannot be checked", "may not take"}, fatal: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.prepare != nil {
				c.prepare(t)
			}
			got, err := open(t, redis.Config{URL: c.url}).Check(t.Context(), "p")
			if err != nil || len(got) != len(c.want) {
				t.Fatalf("found %q, %v, want %q", got, err, c.want)
			}
			for i, f := range got {
				if !strings.Contains(f.String(), c.want[i]) || f.Fatal != (c.fatal && i == len(got)-1) {
					t.Errorf("finding %d: %+v, want %q", i, f, c.want[i])
				}
			}
		})
	}
	if n := a.DBSize(t.Context()).Val(); n > 9 { // counters, for five seconds
		t.Errorf("%d keys are left behind", n)
	}
	s.Kill()
	if got, err := open(t, redis.Config{URL: s.URL()}).Check(t.Context(), "p"); err == nil {
		t.Errorf("a server that is down: %v", got)
	}
}

// replica starts one of s and waits until s knows it.
func replica(s *testserver.RedisServer) func(*testing.T) {
	return func(t *testing.T) {
		testserver.NewRedis(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", s.Port))
		a := admin(t, s)
		for !strings.Contains(a.Info(t.Context(), "replication").Val(), "connected_slaves:1") {
			if err := t.Context().Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
