package engine_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
)

// commits matches what a node sends to PostgreSQL to commit a run.
var commits = faultproxy.Contains("COMMIT\x00")

// proxiedDatabase is an empty database, its address through a proxy and its own.
func proxiedDatabase(t testing.TB) (p *faultproxy.Proxy, through, direct string) {
	t.Helper()
	direct = testserver.Database(t)
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	p = faultproxy.New(t, faultproxy.Config{Target: u.Host, Chunks: true})
	u.Host = p.Addr()
	return p, u.String(), direct
}

// proxied puts a proxy before a node's HTTP; the node that it returns speaks through it.
func (n *node) proxied(t testing.TB) (*faultproxy.Proxy, *node) {
	t.Helper()
	p := faultproxy.New(t, faultproxy.Config{Target: strings.TrimPrefix(n.URL, "http://"), Chunks: true})
	return p, &node{URL: "http://" + p.Addr(), cmd: n.cmd, log: n.log, done: n.done}
}

// caught waits until a request has met the trap's fault.
func caught(t testing.TB, trap *faultproxy.Trap) {
	t.Helper()
	select {
	case <-trap.Seen():
	case <-time.After(20 * time.Second):
		t.Fatal("nothing has met the fault in 20 s")
	}
}
