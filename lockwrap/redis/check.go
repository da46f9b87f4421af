package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/lockwrap"
)

// Finding is a way in which servers or rights are unfit for locks.
type Finding struct {
	Server string // host:port; empty: whichever keeps the probe
	Msg    string
	Fatal  bool // locks cannot work at all
}

func (f Finding) String() string {
	if f.Server == "" {
		return f.Msg
	}
	return f.Server + ": " + f.Msg
}

// Check looks at what an operator should know before the first lock is taken: version,
// eviction, replicas, clock, and whether the user may do what locks need below prefix, which
// it tries on a lock of its own. It returns an error, besides what it found until then, when
// a server does not answer; that says nothing about tomorrow.
func (b *Backend) Check(ctx context.Context, prefix string) ([]Finding, error) {
	var mu sync.Mutex
	var all []Finding
	err := b.eachServer(ctx, func(ctx context.Context, server *goredis.Client) error {
		found, err := checkServer(ctx, server)
		mu.Lock()
		defer mu.Unlock()
		for _, f := range found {
			f.Server = server.Options().Addr
			all = append(all, f)
		}
		return err
	})
	found, failed := b.checkRights(ctx, prefix)
	return append(all, found...), errors.Join(err, failed)
}

// forbidden reports that the server knows the user and does not let it, or does not know it.
func forbidden(err error) bool {
	for _, prefix := range []string{"NOPERM", "NOAUTH", "WRONGPASS"} {
		for e := err; e != nil; e = errors.Unwrap(e) {
			if goredis.HasErrorPrefix(e, prefix) {
				return true
			}
		}
	}
	return false
}

func checkServer(ctx context.Context, server *goredis.Client) ([]Finding, error) {
	text, err := server.Info(ctx, "everything").Result()
	if forbidden(err) {
		return []Finding{{Msg: "eviction and replicas cannot be checked: " + err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	found := checkInfo(infoOf(text))
	sent := time.Now()
	theirs, err := server.Time(ctx).Result()
	if forbidden(err) {
		return found, nil // the probe tells of it
	}
	if err == nil {
		found = append(found, checkClock(theirs, sent, time.Now())...)
	}
	return found, err
}

func infoOf(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// checkInfo judges a server by its INFO, which every user may read that may run anything;
// min_slaves_good_slaves is there only where min-replicas-to-write is set.
func checkInfo(info map[string]string) (found []Finding) {
	warn := func(format string, args ...any) { found = append(found, Finding{Msg: fmt.Sprintf(format, args...)}) }
	if v := info["redis_version"]; v != "" && olderThan(v, 6, 2) {
		found = append(found, Finding{Msg: "Redis " + v + " is too old for locks, 6.2 is needed", Fatal: true})
	}
	policy := info["maxmemory_policy"]
	if policy != "" && policy != "noeviction" && (info["maxmemory"] != "0" || strings.HasPrefix(policy, "allkeys-")) {
		warn("maxmemory-policy is %s: a full server removes locks under their holders, whose calls then fail; set noeviction", policy)
	}
	_, limited := info["min_slaves_good_slaves"]
	if n := info["connected_slaves"]; n != "" && n != "0" && !limited {
		warn("there are %s replicas and no min-replicas-to-write: a primary that is cut off goes on giving out locks that a new primary gives out too", n)
	}
	return found
}

func olderThan(version string, major, minor int) bool {
	parts := strings.SplitN(version+".0", ".", 3)
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a < major || a == major && b < minor)
}

// farClock is from how much on a difference of clocks is worth a word.
const farClock = 2 * time.Second

// checkClock compares a server's time with ours, as of somewhere between sent and heard.
func checkClock(theirs, sent, heard time.Time) []Finding {
	var off time.Duration
	switch {
	case theirs.Before(sent.Round(0)):
		off = theirs.Sub(sent.Round(0))
	case theirs.After(heard.Round(0)):
		off = theirs.Sub(heard.Round(0))
	}
	if off.Abs() < farClock {
		return nil
	}
	return []Finding{{Msg: fmt.Sprintf("its clock differs from this machine's by %v: leases do not depend on it, but tokens follow it, "+
		"and a server put in its place with an earlier clock could give out smaller ones", off.Round(time.Second))}}
}

// checkRights goes once through what a lock needs.
func (b *Backend) checkRights(ctx context.Context, prefix string) (found []Finding, err error) {
	lock := prefix + ":{check:" + rand.Text() + "}"
	claim := lockwrap.Claim{Lock: lock, Holder: "check:" + rand.Text(), TTL: 5 * time.Second, Keep: 5 * time.Second, API: "check", Node: lock}
	owner := lockwrap.Owner{Holder: claim.Holder}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"take", func() error {
			r, err := b.Acquire(ctx, claim)
			owner.Token = r.Token
			return err
		}},
		{"confirm", func() error { _, err := b.Confirm(ctx, lock, owner); return err }},
		{"renew", func() error { _, err := b.Renew(ctx, lock, owner, claim.TTL); return err }},
		{"release", func() error { _, err := b.Release(ctx, lock, owner, nil); return err }},
	} {
		if err := step.do(); forbidden(err) {
			return []Finding{{Msg: "the user may not " + step.name + " a lock: " + err.Error(), Fatal: true}}, nil
		} else if err != nil {
			return nil, err
		}
	}
	if err := b.client.Publish(ctx, lock, "").Err(); forbidden(err) {
		return []Finding{{Msg: "the user may not publish, so nodes do not tell each other of free locks and find them by asking: " + err.Error()}}, nil
	} else if err != nil {
		return nil, err
	}
	return nil, nil
}
