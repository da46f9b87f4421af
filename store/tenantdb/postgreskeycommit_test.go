package tenantdb_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"apiengine/fault"
	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

// On PostgreSQL the answer of a key and the COMMIT travel together.

// gated makes COMMITs of inserts into work wait for an advisory lock, which the connection
// that it returns has.
func gated(t *testing.T, db *tenantdb.DB, address string) *pgx.Conn {
	t.Helper()
	if _, err := db.ApplySchema(t.Context(), []tenantdb.SchemaFile{file("1_gate.sql", up+`
CREATE TABLE work (n int);
-- +goose StatementBegin
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(77); INSERT INTO seen VALUES (1); RETURN NULL; END';
-- +goose StatementEnd
CREATE TABLE seen (n int);
CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON work DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION gate();
`)}); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), address)
	if err == nil {
		_, err = c.Exec(t.Context(), "SELECT pg_advisory_lock(77)")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// A claim waits for the commit of an attempt whose lease ran out meanwhile, and then has
// its answer. What is checked at the commit finds the tenant's tables.
func TestAClaimWaitsForTheCommit(t *testing.T) {
	address := testserver.Database(t)
	db := openPostgres(t, newPool(t, address))
	gate := gated(t, db, address)
	c := claimOf("k", "run 1")
	c.Lease = time.Millisecond
	tx := begin(t, db, tenantdb.Guard{})
	exec(t, tx, "INSERT INTO work VALUES (1)")
	a := claim(t, db, c)
	committed := make(chan error, 1)
	go func() { committed <- completeAndCommit(t, tx, a) }()
	for waiting := 0; waiting == 0; {
		if err := gate.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND NOT granted").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan *tenantdb.Answer, 1)
	go func() {
		_, kept, err := db.Claim(context.Background(), claimOf("k", "run 2"))
		if err != nil {
			t.Error(err)
		}
		got <- kept
	}()
	select {
	case <-got:
		t.Error("the claim did not wait")
	case <-time.After(100 * time.Millisecond):
	}
	if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_unlock(77)"); err != nil {
		t.Fatal(err)
	}
	if err := <-committed; err != nil {
		t.Error(err)
	}
	if kept := <-got; kept == nil || kept.Execution != "run 1" {
		t.Errorf("kept %+v", kept)
	}
	if n := query(t, begin(t, db, tenantdb.Guard{}), "SELECT count(*) AS n FROM seen"); n != `[{"n":1}]` {
		t.Errorf("the check at the commit has written %s", n)
	}
}

// The connection breaks while answer and COMMIT are on their way: the run is told that
// nothing was written, and what arrives afterwards does not commit.
func TestACommitThatArrivesLate(t *testing.T) {
	u, err := url.Parse(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	p := faultproxy.New(t, faultproxy.Config{Target: u.Host, Chunks: true})
	u.Host = p.Addr()
	db := openPostgres(t, newPool(t, u.String()))
	workTable(t, db)
	a := claim(t, db, claimOf("k", "run 1"))
	tx := begin(t, db, tenantdb.Guard{})
	exec(t, tx, "UPDATE work SET n = n + 1")
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains("COMMIT\x00"), Times: 1, Fault: faultproxy.HoldCall})
	done := make(chan error, 1)
	go func() { done <- completeAndCommit(t, tx, a) }()
	<-trap.Seen()
	p.HalfClose()
	wantKind(t, "Commit", <-done, fault.StoreUnavailable)
	trap.Release()
	after := begin(t, db, tenantdb.Guard{})
	exec(t, after, "UPDATE work SET n = n") // waits until the server has ended the late transaction
	commit(t, after)
	if err := a.End(t.Context(), false); err != nil {
		t.Error(err)
	}
	finish(t, db, claim(t, db, claimOf("k", "run 2")))
	if n := work(t, db); n != `[{"n":1}]` {
		t.Errorf("the work is %s", n)
	}
}
