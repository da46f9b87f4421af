package tenantdb_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

func TestGuardLetsOnlyNewerHoldersIn(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		commit(t, begin(t, db, tenantdb.Guard{Key: "k", Token: 10, Owner: "a"}))
		for _, c := range []struct {
			token int64
			owner string
			ok    bool
		}{
			{9, "a", false}, {9, "b", false}, {10, "b", false}, {10, "a", true}, {11, "b", true}, {10, "a", false}, {1 << 52, "c", true},
		} {
			tx, err := db.Begin(context.Background(), tenantdb.Guard{Key: "k", Token: c.token, Owner: c.owner})
			if c.ok {
				if err != nil {
					t.Errorf("%+v: %v", c, err)
					continue
				}
				commit(t, tx)
				continue
			}
			wantKind(t, fmt.Sprintf("%+v", c), err, fault.StaleFence)
			if err == nil {
				tx.Rollback(context.Background()) // else the next one waits for it
			}
			if e := new(tenantdb.StaleError); errors.As(err, &e) && e.Stored < 10 {
				t.Errorf("%+v: the stored token is given as %d", c, e.Stored)
			}
		}
		commit(t, begin(t, db, tenantdb.Guard{Key: "another", Token: 1, Owner: "a"}))
		for _, g := range []tenantdb.Guard{{Key: "k", Token: 0, Owner: "a"}, {Key: "k", Token: 1}} {
			_, err := db.Begin(context.Background(), g)
			wantKind(t, "a guard that claims nothing", err, fault.Internal)
			wantKind(t, "the same, nested", begin(t, db, tenantdb.Guard{}).Guard(context.Background(), g), fault.Internal)
		}
	})
}

func TestRolledBackGuardLeavesNoTrace(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 10, Owner: "a"})
		tx.Rollback(context.Background())
		commit(t, begin(t, db, tenantdb.Guard{Key: "k", Token: 5, Owner: "b"}))
	})
}

// The newer holder's guard waits for the older one's open transaction, then sees its data:
// read-modify-write under the guard loses nothing.
func TestANewerHolderWaitsAndSees(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		setup(t, db, "CREATE TABLE stock (n int)", "INSERT INTO stock VALUES (0)")
		old := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "old"})
		exec(t, old, "UPDATE stock SET n = 1")
		entered := make(chan string)
		go func() {
			tx, err := db.Begin(context.Background(), tenantdb.Guard{Key: "k", Token: 2, Owner: "new"})
			if err != nil {
				entered <- err.Error()
				return
			}
			defer tx.Rollback(context.Background())
			n, err := tx.Scalar(context.Background(), "SELECT n FROM stock", nil)
			entered <- fmt.Sprint(string(n), err)
		}()
		select {
		case got := <-entered:
			t.Fatalf("the newer holder did not wait: %s", got)
		case <-time.After(100 * time.Millisecond):
		}
		commit(t, old)
		if got := <-entered; got != "1<nil>" {
			t.Errorf("the newer holder saw %s", got)
		}
	})
}

func TestGuardedReadModifyWriteLosesNothing(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		setup(t, db, "CREATE TABLE stock (n int)", "INSERT INTO stock VALUES (0)")
		var tokens sync.Mutex
		token, done := int64(0), 0
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for {
					tokens.Lock() // tokens rise, but the transactions race
					token++
					g := tenantdb.Guard{Key: "k", Token: token, Owner: fmt.Sprint(token)}
					tokens.Unlock()
					tx, err := db.Begin(context.Background(), g)
					if fault.Of(err) == fault.StaleFence {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					n, err := tx.Scalar(context.Background(), "SELECT n FROM stock", nil)
					if err != nil {
						t.Error(err)
					}
					if _, err := tx.Exec(context.Background(), "UPDATE stock SET n = "+string(n)+" + 1", nil); err != nil {
						t.Error(err)
					}
					if err := tx.Commit(context.Background()); err != nil {
						t.Error(err)
					}
					tokens.Lock()
					done++
					tokens.Unlock()
					return
				}
			})
		}
		wg.Wait()
		if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT n FROM stock"); got != fmt.Sprintf(`[{"n":%d}]`, done) || done != 20 {
			t.Errorf("%d commits, the row says %s", done, got)
		}
	})
}

func TestNestedGuardAndSavepoints(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		setup(t, db, "CREATE TABLE t (n int)")
		tx := begin(t, db, tenantdb.Guard{Key: "outer", Token: 5, Owner: "me"})
		exec(t, tx, "INSERT INTO t VALUES (1)")
		outer, err := tx.Savepoint(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Guard(ctx, tenantdb.Guard{Key: "inner", Token: 5, Owner: "me"}); err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "INSERT INTO t VALUES (2)")
		inner, err := tx.Savepoint(ctx)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "INSERT INTO t VALUES (3)")
		if err := tx.ReleaseSavepoint(ctx, inner); err != nil {
			t.Fatal(err)
		}
		if err := tx.RollbackTo(ctx, outer); err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "INSERT INTO t VALUES (4)")
		commit(t, tx)
		if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT n FROM t ORDER BY n"); got != `[{"n":1},{"n":4}]` {
			t.Errorf("got %s", got)
		}
		_, err = db.Begin(ctx, tenantdb.Guard{Key: "inner", Token: 4, Owner: "late"})
		wantKind(t, "a guard taken in a nested call that was undone", err, fault.StaleFence)

		tx = begin(t, db, tenantdb.Guard{})
		wantKind(t, "a nested guard that is stale", tx.Guard(ctx, tenantdb.Guard{Key: "inner", Token: 4, Owner: "late"}), fault.StaleFence)
		wantKind(t, "a commit after it", tx.Commit(ctx), fault.StaleFence)
	})
}

func TestSavepointsBeforeTheFirstWrite(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		setup(t, db, "CREATE TABLE t (n int)")
		tx := begin(t, db, tenantdb.Guard{})
		a, _ := tx.Savepoint(ctx)
		query(t, tx, "SELECT * FROM t")
		b, _ := tx.Savepoint(ctx)
		if err := tx.RollbackTo(ctx, a); err != nil {
			t.Fatal(err)
		}
		wantKind(t, "a savepoint that was undone", tx.ReleaseSavepoint(ctx, b), byDialectKind(db))
		tx = begin(t, db, tenantdb.Guard{})
		a, _ = tx.Savepoint(ctx)
		exec(t, tx, "INSERT INTO t VALUES (1)")
		if err := tx.RollbackTo(ctx, a); err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "INSERT INTO t VALUES (2)")
		commit(t, tx)
		if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT n FROM t"); got != `[{"n":2}]` {
			t.Errorf("got %s", got)
		}
	})
}

// byDialectKind: a savepoint that does not exist is the engine's mistake; the databases say it differently.
func byDialectKind(db *tenantdb.DB) fault.Kind {
	if db.Dialect() == "sqlite" {
		return fault.Internal
	}
	return fault.ScriptError
}

func TestContextsEnd(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		setup(t, db, "CREATE TABLE t (n int)")
		mine := errors.New("the lease was lost")
		ctx, cancel := context.WithCancelCause(context.Background())
		tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
		exec(t, tx, "INSERT INTO t VALUES (1)")
		timer := time.AfterFunc(50*time.Millisecond, func() { cancel(mine) })
		defer timer.Stop()
		_, _, err := tx.Query(ctx, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT (i+1) % 1000 FROM n) SELECT count(*) FROM n", nil)
		if !errors.Is(err, mine) {
			t.Errorf("a query whose context ended: %v", err)
		}
		if _, err := tx.Exec(ctx, "INSERT INTO t VALUES (2)", nil); !errors.Is(err, mine) {
			t.Errorf("a statement after it: %v", err)
		}
		tx.Rollback(ctx)
		if _, err := db.Begin(ctx, tenantdb.Guard{}); !errors.Is(err, mine) {
			t.Errorf("Begin: %v", err)
		}
		late, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer stop()
		holder := begin(t, db, tenantdb.Guard{Key: "k", Token: 2, Owner: "holder"})
		_, err = db.Begin(late, tenantdb.Guard{Key: "k", Token: 3, Owner: "waiter"})
		wantKind(t, "a guard that waits too long", err, fault.Timeout)
		tx.Rollback(ctx) // twice
		exec(t, holder, "INSERT INTO t VALUES (3)")
		commit(t, holder)
		if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT n FROM t"); got != `[{"n":3}]` {
			t.Errorf("got %s", got)
		}
	})
}

func TestCommitDoesNotLookAtTheContext(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		setup(t, db, "CREATE TABLE t (n int)")
		for _, g := range []tenantdb.Guard{{}, {Key: "k", Token: 1, Owner: "me"}} {
			ctx, cancel := context.WithCancel(context.Background())
			tx := begin(t, db, g)
			exec(t, tx, "INSERT INTO t VALUES (1)")
			cancel()
			if err := tx.Commit(ctx); err != nil {
				t.Errorf("%+v: %v", g, err)
			}
			if err := tx.Commit(ctx); fault.Of(err) != fault.Internal {
				t.Errorf("a second commit: %v", err)
			}
			if _, err := tx.Exec(context.Background(), "INSERT INTO t VALUES (1)", nil); fault.Of(err) != fault.Internal {
				t.Errorf("a statement after the commit: %v", err)
			}
			if err := tx.Rollback(ctx); err != nil {
				t.Error(err)
			}
		}
		if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT count(*) AS n FROM t"); got != `[{"n":2}]` {
			t.Errorf("got %s", got)
		}
	})
}

func TestConstraintsCheckedAtTheEnd(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		setup(t, db, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (a int REFERENCES a (id) DEFERRABLE INITIALLY DEFERRED)")
		tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
		exec(t, tx, "INSERT INTO b VALUES (1)")
		err := tx.Commit(context.Background())
		if e := new(tenantdb.SQLError); !errors.As(err, &e) || !e.Data {
			t.Errorf("got %v", err)
		}
		tx = begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "other"})
		if got := query(t, tx, "SELECT * FROM b"); got != "[]" {
			t.Errorf("got %s", got)
		}
	})
}

func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		setup(t, db, "CREATE TABLE t (n int)")
		writer := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
		exec(t, writer, "INSERT INTO t VALUES (1)")
		reader := begin(t, db, tenantdb.Guard{})
		if got := query(t, reader, "SELECT * FROM t"); got != "[]" {
			t.Errorf("uncommitted rows were seen: %s", got)
		}
		commit(t, writer)
		if got := query(t, reader, "SELECT * FROM t"); got != `[{"n":1}]` {
			t.Errorf("READ COMMITTED: got %s", got)
		}
	})
}
