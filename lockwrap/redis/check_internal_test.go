package redis

import (
	"strings"
	"testing"
	"time"
)

func TestCheckClock(t *testing.T) {
	sent := time.Now()
	heard := sent.Add(300 * time.Millisecond)
	for _, c := range []struct {
		theirs time.Time
		want   string // in the finding; empty: none
	}{
		{sent, ""}, {heard, ""}, {sent.Add(-1900 * time.Millisecond), ""}, {heard.Add(1900 * time.Millisecond), ""},
		{sent.Add(-time.Hour), "-1h0m0s"}, {heard.Add(3 * time.Second), "by 3s"},
	} {
		got := checkClock(c.theirs, sent, heard)
		if (len(got) == 0) != (c.want == "") || len(got) == 1 && !strings.Contains(got[0].Msg, c.want) {
			t.Errorf("%v: %v, want %q", c.theirs.Sub(sent), got, c.want)
		}
	}
}

func TestCheckInfo(t *testing.T) {
	good := map[string]string{"redis_version": "7.0.15", "maxmemory_policy": "noeviction", "maxmemory": "100", "connected_slaves": "0"}
	for _, c := range []struct {
		name, value, want string
		fatal             bool
	}{
		{"redis_version", "7.0.15", "", false},
		{"redis_version", "6.2.0", "", false},
		{"redis_version", "6.0.16", "6.2 is needed", true},
		{"redis_version", "5.0", "6.2 is needed", true},
		{"redis_version", "10.0.1", "", false},
		{"maxmemory_policy", "allkeys-lru", "noeviction", false},
		{"maxmemory_policy", "volatile-ttl", "noeviction", false}, // locks have a life
		{"connected_slaves", "2", "min-replicas-to-write", false},
	} {
		info := map[string]string{}
		for name, value := range good {
			info[name] = value
		}
		info[c.name] = c.value
		got := checkInfo(info)
		if (len(got) == 0) != (c.want == "") || len(got) == 1 && (!strings.Contains(got[0].Msg, c.want) || got[0].Fatal != c.fatal) || len(got) > 1 {
			t.Errorf("%s %s: %v, want %q", c.name, c.value, got, c.want)
		}
	}
}
