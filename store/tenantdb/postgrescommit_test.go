package tenantdb_test

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

// cutter is a TCP proxy before PostgreSQL that loses COMMIT or the answer to it.
type cutter struct {
	net.Listener
	target string
	mode   atomic.Int32
	passed func() // called when a COMMIT was cut off, before the client notices; may be nil; set before mode
	wg     sync.WaitGroup
}

const (
	passOn    int32 = iota
	loseQuery       // COMMIT never reaches the server
	loseReply       // COMMIT is carried out, then its answer lost
	loseEarly       // the client is cut off while COMMIT is being carried out
)

func newCutter(t *testing.T, target string) *cutter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, target: target}
	c.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); c.wg.Wait() })
	return c
}

func (c *cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer server.Close()
	replies := make(chan struct{})
	var cut atomic.Bool
	go func() { // ends when server is closed
		defer close(replies)
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if cut.Load() {
				return // requests, when it has done its part, lets the client notice
			}
			if err != nil {
				client.Close()
				return
			}
			client.Write(buf[:n])
		}
	}()
	c.requests(client, server, &cut, replies)
	server.Close()
	<-replies
}

func (c *cutter) requests(client, server net.Conn, cut *atomic.Bool, replies chan struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if bytes.Equal(buf[min(n, 4):min(n, 8)], []byte{0x04, 0xd2, 0x16, 0x2e}) {
			return // a CancelRequest: pgx sends one when it loses a connection, and COMMIT would heed it
		}
		if c.mode.Load() == passOn || !bytes.Contains(buf[:n], []byte("COMMIT\x00")) {
			server.Write(buf[:n])
			continue
		}
		mode := c.mode.Swap(passOn)
		cut.Store(true)
		if mode == loseQuery {
			server.Close() // which rolls back
		} else {
			server.Write(buf[:n])
			if mode == loseEarly {
				client.Close()
			}
			<-replies // the server has answered, so it has committed
		}
		if c.passed != nil {
			c.passed()
		}
		return
	}
}

func throughCutter(t *testing.T) (db *tenantdb.DB, c *cutter) {
	u, err := url.Parse(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	c = newCutter(t, u.Host)
	u.Host = c.Addr().String()
	db = openPostgres(t, newPool(t, u.String()))
	setup(t, db, "CREATE TABLE t (n int)")
	return db, c
}

func TestLostCommit(t *testing.T) {
	for _, test := range []struct {
		name  string
		mode  int32
		guard bool
		key   bool // the transaction completes an Idempotency-Key
		newer bool // a newer holder gets in before the outcome is asked for
		want  fault.Kind
		rows  string
	}{
		{"answer lost", loseReply, true, false, false, "", `[{"n":1}]`},
		{"COMMIT lost", loseQuery, true, false, false, fault.StoreUnavailable, `[]`},
		{"answer lost, newer holder there", loseReply, true, false, true, "", `[{"n":1}]`},
		{"COMMIT lost, newer holder there", loseQuery, true, false, true, fault.StoreUnavailable, `[]`},
		// The id of the transaction was asked for in the flush that is lost: nobody can tell.
		{"answer lost, no lock", loseReply, false, false, false, fault.OutcomeUnknown, `[{"n":1}]`},
		{"COMMIT lost, no lock", loseQuery, false, false, false, fault.OutcomeUnknown, `[]`},
		{"answer lost, a key", loseReply, false, true, false, "", `[{"n":1}]`},
		{"COMMIT lost, a key", loseQuery, false, true, false, fault.StoreUnavailable, `[]`},
		{"answer lost, a key and a lock with a newer holder", loseReply, true, true, true, "", `[{"n":1}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			db, c := throughCutter(t)
			g := tenantdb.Guard{Owner: "me"}
			if test.guard {
				// A row that this owner wrote before must not be taken for this commit's.
				commit(t, begin(t, db, tenantdb.Guard{Key: "k", Token: 5, Owner: "me"}))
				g = tenantdb.Guard{Key: "k", Token: 5, Owner: "me"}
			}
			tx := begin(t, db, g)
			exec(t, tx, "INSERT INTO t VALUES (1)")
			if test.newer {
				c.passed = func() {
					newer, err := db.Begin(context.Background(), tenantdb.Guard{Key: "k", Token: 6, Owner: "newer"})
					if err != nil {
						t.Error(err)
						return
					}
					if err := newer.Commit(context.Background()); err != nil {
						t.Error(err)
					}
				}
			}
			if test.key {
				if err := tx.Complete(t.Context(), claim(t, db, claimOf("k", "run")), firstAnswer); err != nil {
					t.Fatal(err)
				}
			}
			c.mode.Store(test.mode)
			wantKind(t, "Commit", tx.Commit(context.Background()), test.want)
			if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT * FROM t"); got != test.rows {
				t.Errorf("rows: %s", got)
			}
		})
	}
}

// The server carries a commit out slowly; the witness waits for it.
func TestTheWitnessWaitsForACommitUnderWay(t *testing.T) {
	db, c := throughCutter(t)
	// The deferred trigger makes COMMIT itself take a while.
	if _, err := db.ApplySchema(context.Background(), []tenantdb.SchemaFile{file("1_slow.sql", up+`
-- +goose StatementBegin
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END';
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow();
`)}); err != nil {
		t.Fatal(err)
	}
	tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
	exec(t, tx, "INSERT INTO t VALUES (1)")
	c.mode.Store(loseEarly)
	started := time.Now()
	if err := tx.Commit(context.Background()); err != nil {
		t.Error(err)
	}
	if d := time.Since(started); d < 400*time.Millisecond {
		t.Errorf("answered after %v, before the commit can have ended", d)
	}
	if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT * FROM t"); got != `[{"n":1}]` {
		t.Errorf("rows: %s", got)
	}
}
