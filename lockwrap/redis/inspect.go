package redis

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/lockwrap"
)

var _ lockwrap.Inspector = (*Backend)(nil)

// Locks is lockwrap.Inspector's. It walks over the keys of every server with SCAN, which
// stops nobody else, a thousand at a time.
func (b *Backend) Locks(ctx context.Context, prefix string) ([]lockwrap.Holding, error) {
	var mu sync.Mutex
	var list []lockwrap.Holding
	err := b.eachServer(ctx, func(ctx context.Context, server *goredis.Client) error {
		found, err := locksOn(ctx, server, prefix)
		mu.Lock()
		defer mu.Unlock()
		list = append(list, found...)
		return err
	})
	if err != nil {
		return nil, &lockwrap.BackendError{Op: "locks", Err: err}
	}
	return list, nil
}

// Lock is lockwrap.Inspector's.
func (b *Backend) Lock(ctx context.Context, lock string) (lockwrap.Holding, error) {
	list, err := holdings(ctx, b.client, []string{lock})
	if err != nil {
		return lockwrap.Holding{}, &lockwrap.BackendError{Op: "lock", Err: err}
	}
	return append(list, lockwrap.Holding{})[0], nil
}

// eachServer calls f with every server that takes writes; a cluster's side by side.
func (b *Backend) eachServer(ctx context.Context, f func(context.Context, *goredis.Client) error) error {
	own, _ := b.client.(*client) // New makes no other
	switch c := own.UniversalClient.(type) {
	case *goredis.ClusterClient:
		return c.ForEachMaster(ctx, f)
	case *goredis.Client:
		return f(ctx, c)
	}
	return nil
}

// page is how many keys a SCAN looks at.
const page = 1000

func locksOn(ctx context.Context, server *goredis.Client, prefix string) (list []lockwrap.Holding, err error) {
	seen := map[string]bool{} // SCAN may name a key twice
	for cursor := uint64(0); ; {
		var keys, locks []string
		if keys, cursor, err = server.Scan(ctx, cursor, globbed(prefix)+"*:l", page).Result(); err != nil {
			return nil, err
		}
		for _, key := range keys {
			if lock := strings.TrimSuffix(key, ":l"); !seen[lock] {
				seen[lock] = true
				locks = append(locks, lock)
			}
		}
		found, err := holdings(ctx, server, locks)
		if err != nil || cursor == 0 {
			return append(list, found...), err
		}
		list = append(list, found...)
	}
}

// globbed makes a pattern that matches text alone.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(text)
}

// mostWaiting is how many nodes in line are told of one lock.
const mostWaiting = 100

// holdings looks at locks in one round trip and leaves out those that nobody holds.
func holdings(ctx context.Context, c goredis.Cmdable, locks []string) (list []lockwrap.Holding, _ error) {
	if len(locks) == 0 {
		return nil, nil
	}
	type look struct {
		value *goredis.StringCmd
		left  *goredis.DurationCmd
		line  *goredis.ZSliceCmd
	}
	looks := make([]look, len(locks))
	_, _ = c.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, lock := range locks {
			looks[i] = look{p.Get(ctx, lock+":l"), p.PTTL(ctx, lock+":l"), p.ZRangeWithScores(ctx, lock+":q", 0, mostWaiting-1)}
		}
		return nil
	}) // each command keeps its own error
	for i, l := range looks {
		value, failed := l.value.Result()
		h, ok := holding(locks[i], value)
		switch {
		case failed == goredis.Nil || goredis.HasErrorPrefix(failed, "WRONGTYPE"): // free, or nothing of ours
			continue
		case failed != nil:
			return nil, failed
		case !ok:
			continue
		}
		h.Left = max(0, l.left.Val())
		for _, z := range l.line.Val() {
			node, _ := z.Member.(string)
			h.Waiting = append(h.Waiting, lockwrap.Waiting{Node: node, Since: time.UnixMicro(int64(z.Score))})
		}
		list = append(list, h)
	}
	return list, nil
}

// holding reads "<token>:<instance>:<nonce> <since> <api>".
func holding(lock, value string) (h lockwrap.Holding, ok bool) {
	owner, info, _ := strings.Cut(value, " ")
	token, name, ok := strings.Cut(owner, ":")
	n, err := strconv.ParseInt(token, 10, 64)
	return lockwrap.Holding{Lock: lock, Owner: lockwrap.Owner{Token: n, Holder: name}, By: holder(info)}, ok && err == nil
}
