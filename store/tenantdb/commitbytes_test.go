package tenantdb_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

// byteCutter is a proxy before PostgreSQL that carries only the first n bytes of COMMIT, or
// of the answer to it, and then cuts the connection, once.
type byteCutter struct {
	net.Listener
	target          string
	query, answer   atomic.Int64 // bytes to carry; -1: all
	querySeen, seen atomic.Int64 // bytes that COMMIT and its answer had when all was carried
}

func newByteCutter(t *testing.T, target string) *byteCutter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &byteCutter{Listener: l, target: target}
	c.query.Store(-1)
	c.answer.Store(-1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn) // ends with either connection, both of which the test closes
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return c
}

func (c *byteCutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer server.Close()
	var committing atomic.Bool
	go func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			if !committing.Swap(false) {
				client.Write(buf[:n])
				continue
			}
			c.seen.Store(int64(n))
			if keep := c.answer.Swap(-1); keep >= 0 {
				client.Write(buf[:min(int(keep), n)])
				return
			}
			client.Write(buf[:n])
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil || bytes.Equal(buf[min(n, 4):min(n, 8)], []byte{0x04, 0xd2, 0x16, 0x2e}) {
			return // a CancelRequest is not passed on: COMMIT would heed it
		}
		if bytes.Contains(buf[:n], []byte("COMMIT\x00")) {
			committing.Store(true)
			c.querySeen.Store(int64(n))
			if keep := c.query.Swap(-1); keep >= 0 {
				server.Write(buf[:min(int(keep), n)])
				return
			}
		}
		server.Write(buf[:n])
	}
}

// COMMIT, and the answer to it, cut off after each of their bytes: the run is known to be
// committed or known not to be, and the row agrees. Without a lock it may be unknown, but
// never told wrongly.
func TestCommitCutAtEveryByte(t *testing.T) {
	u, err := url.Parse(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	c := newByteCutter(t, u.Host)
	u.Host = c.Addr().String()
	db := openPostgres(t, newPool(t, u.String()))
	setup(t, db, "CREATE TABLE t (n int)")
	seen := map[string]int{}
	row := 0
	run := func(name string, guard bool, cut *atomic.Int64, at int64) {
		row++
		g := tenantdb.Guard{}
		if guard {
			g = tenantdb.Guard{Key: "k", Token: int64(row), Owner: "me"}
		}
		tx := begin(t, db, g)
		exec(t, tx, "INSERT INTO t VALUES (@n)", "n", int64(row))
		cut.Store(at)
		err := tx.Commit(context.Background())
		check := begin(t, db, tenantdb.Guard{})
		landed := query(t, check, "SELECT count(*) AS n FROM t WHERE n = @n", "n", int64(row)) == `[{"n":1}]`
		check.Rollback(context.Background())
		kind := fault.Of(err)
		known := kind == "" || kind == fault.StoreUnavailable
		if guard && !known || known && landed != (kind == "") || !known && kind != fault.OutcomeUnknown {
			t.Errorf("%s, cut after %d bytes: %q (%v), and the row landed: %v", name, at, kind, err, landed)
		}
		seen[fmt.Sprintf("%s landed=%v", name, landed)]++
	}
	run("whole", true, &c.answer, -1)
	answer, question := c.seen.Load(), c.querySeen.Load()
	if answer < 10 || question < 20 {
		t.Fatalf("COMMIT had %d bytes and its answer %d", question, answer)
	}
	for at := range answer {
		run("answer", true, &c.answer, at)
		run("answer without a lock", false, &c.answer, at)
	}
	for at := range question {
		run("COMMIT", true, &c.query, at)
		run("COMMIT without a lock", false, &c.query, at)
	}
	t.Log(seen)
	if seen["answer landed=true"] != int(answer) || seen["COMMIT landed=false"] == 0 {
		t.Errorf("the proxy did not cut where it should: %v", seen)
	}
}
