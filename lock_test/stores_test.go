package lock_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

// store is a server that keeps locks, and the harm that can be done to it.
type store struct {
	addr   string                   // host:port
	url    func(addr string) string // for nodes that reach it there
	life   time.Duration            // of leases: some requests fit into a sixth of it
	chunks string                   // what chunks with a request hold; empty: it talks RESP
	harms  []func(context.Context)
}

var stores = []struct {
	name string
	open func(testing.TB) store
}{
	{"redis", redisStore}, {"postgres", postgresStore}, {"etcd", etcdStore},
}

func redisStore(t testing.TB) store {
	s := testserver.NewRedis(t)
	a := admin(t, s)
	return store{addr: s.Addr(), url: func(addr string) string { return "redis://" + addr }, life: 200 * time.Millisecond,
		harms: []func(context.Context){
			func(context.Context) { s.Restart(t) },
			func(ctx context.Context) { a.FlushAll(ctx) },
			func(ctx context.Context) { a.ScriptFlush(ctx) },
			func(ctx context.Context) { // as if evicted
				if key, err := a.RandomKey(ctx).Result(); err == nil {
					a.Del(ctx, key)
				}
			},
		}}
}

func postgresStore(t testing.TB) store {
	s := testserver.NewPostgres(t, "-c", "fsync=off") // else its start after a crash takes a busy machine half a minute
	direct := s.URL("postgres")
	a, err := pgxpool.New(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	do := func(sql string) func(context.Context) {
		return func(ctx context.Context) { _, _ = a.Exec(ctx, sql) } // the table may not be there, the server be gone
	}
	makeTable(t, direct)
	addr := strings.Split(strings.TrimPrefix(direct, "postgres://postgres@"), "/")[0]
	return store{addr: addr, url: func(to string) string { return strings.Replace(direct, addr, to, 1) },
		life: 1200 * time.Millisecond, chunks: "lockwrap", // a new connection takes a busy server more than a tenth
		harms: []func(context.Context){
			func(context.Context) { s.Restart(t) },
			do("DELETE FROM lockwrap.locks"),
			do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"),
		}}
}

// makeTable takes longer than an attempt for a short lease has.
func makeTable(t testing.TB, url string) {
	b, err := open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Acquire(t.Context(), lockwrap.Claim{Lock: "first", Holder: "n0:aa", TTL: time.Millisecond, Keep: time.Hour, Node: "n0"}); err != nil {
		t.Fatal(err)
	}
}

func etcdStore(t testing.TB) store {
	s := testserver.NewEtcd(t)
	a, err := clientv3.New(clientv3.Config{Endpoints: []string{s.URL()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return store{addr: strings.TrimPrefix(s.URL(), "http://"), url: func(addr string) string { return "http://" + addr },
		life: 600 * time.Millisecond, chunks: prefix,
		harms: []func(context.Context){
			func(context.Context) { s.Restart(t) },
			func(ctx context.Context) { _, _ = a.Delete(ctx, prefix+":", clientv3.WithPrefix()) }, // the server may be gone
			func(ctx context.Context) {
				if r, err := a.Leases(ctx); err == nil && len(r.Leases) > 0 {
					_, _ = a.Revoke(ctx, r.Leases[0].ID) // it may have ended
				}
			},
		}}
}

// mischief is what disturb can do, and until when.
type mischief struct {
	store
	lines  []*faultproxy.Proxy // each is one node's
	enough func() bool
}

// disturb does one harm after the other until it is enough.
func disturb(ctx context.Context, random *rand.Rand, s mischief) {
	match := faultproxy.Script(prefix)
	if s.chunks != "" {
		match = faultproxy.Contains(s.chunks)
	}
	for !s.enough() {
		p := s.lines[random.IntN(len(s.lines))]
		span := time.Duration(random.IntN(300)) * time.Millisecond
		switch n := random.IntN(5 + len(s.harms)); n {
		case 0:
			p.Cut()
		case 1:
			p.Refuse(true)
			rest(ctx, span)
			p.Refuse(false)
		case 2:
			p.BlackHole(true)
			rest(ctx, span)
			p.BlackHole(false)
		case 3:
			p.Hold(faultproxy.ToClient)
			rest(ctx, span)
			p.Resume(faultproxy.ToClient)
		case 4:
			p.Add(faultproxy.Rule{Match: match, Times: 1 + random.IntN(3), Fault: faultproxy.Fault(random.IntN(4))})
		default:
			s.harms[n-5](ctx)
		}
		rest(ctx, time.Duration(50+random.IntN(200))*time.Millisecond)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
