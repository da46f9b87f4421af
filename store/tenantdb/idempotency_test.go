package tenantdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

func claimOf(id, execution string) tenantdb.Claim {
	return tenantdb.Claim{ID: id, Fingerprint: "request", Execution: execution, Lease: time.Minute, Keep: time.Hour}
}

// claim must be granted.
func claim(t testing.TB, db *tenantdb.DB, c tenantdb.Claim) *tenantdb.Attempt {
	t.Helper()
	a, kept, err := db.Claim(context.Background(), c)
	if err != nil || kept != nil {
		t.Fatalf("claim of %s: %v, kept %v", c.ID, err, kept)
	}
	return a
}

var firstAnswer = tenantdb.Answer{Token: 7, Status: 201, Header: map[string]string{"Content-Type": "x/y", "X-A": "é"},
	Body: []byte("{\"Code\":1}\x00\xff '\\")}

// finish completes the attempt in a transaction that also counts.
func finish(t testing.TB, db *tenantdb.DB, a *tenantdb.Attempt) {
	t.Helper()
	tx := begin(t, db, tenantdb.Guard{})
	exec(t, tx, "UPDATE work SET n = n + 1")
	if err := tx.Complete(t.Context(), a, firstAnswer); err != nil {
		t.Fatal(err)
	}
	commit(t, tx)
	if err := a.End(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}

func workTable(t testing.TB, db *tenantdb.DB) {
	setup(t, db, "CREATE TABLE work (n int)", "INSERT INTO work VALUES (0)")
}

func work(t testing.TB, db *tenantdb.DB) string {
	t.Helper()
	return query(t, begin(t, db, tenantdb.Guard{}), "SELECT n FROM work")
}

func wantClaimError(t testing.TB, db *tenantdb.DB, c tenantdb.Claim, want fault.Kind) {
	t.Helper()
	if a, kept, err := db.Claim(t.Context(), c); a != nil || kept != nil || fault.Of(err) != want {
		t.Errorf("claim of %s: %v, kept %v, %v; want %s", c.ID, a, kept, err, want)
	}
}

func TestAnAnswerIsKept(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		workTable(t, db)
		a := claim(t, db, claimOf("k", "run 1"))
		wantClaimError(t, db, claimOf("k", "run 2"), fault.IdempotencyInProgress)
		other := claimOf("k", "run 2")
		other.Fingerprint = "another request"
		wantClaimError(t, db, other, fault.IdempotencyMismatch)
		claim(t, db, claimOf("K", "run 3")) // another key
		finish(t, db, a)
		wantClaimError(t, db, other, fault.IdempotencyMismatch)
		for range 2 {
			_, kept, err := db.Claim(t.Context(), claimOf("k", "run 4"))
			if err != nil || kept == nil || kept.Execution != "run 1" || kept.Token != 7 || kept.Status != 201 ||
				string(kept.Body) != string(firstAnswer.Body) || !maps.Equal(kept.Header, firstAnswer.Header) {
				t.Errorf("kept %+v, %v", kept, err)
			}
		}
		if n := work(t, db); n != `[{"n":1}]` {
			t.Errorf("the work is %s", n)
		}
	})
}

// A run that left nothing leaves no record, whether it gave the key back before or after
// its transaction was rolled back.
func TestARolledBackRunLeavesNoRecord(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		workTable(t, db)
		a := claim(t, db, claimOf("k", "run 1"))
		tx := begin(t, db, tenantdb.Guard{})
		exec(t, tx, "UPDATE work SET n = n + 1")
		if err := tx.Complete(t.Context(), a, firstAnswer); err != nil {
			t.Fatal(err)
		}
		tx.Rollback(t.Context())
		if err := a.End(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		finish(t, db, claim(t, db, claimOf("k", "run 2")))
		if n := work(t, db); n != `[{"n":1}]` {
			t.Errorf("the work is %s", n)
		}
	})
}

// Once its time is over an answer counts no longer, and ForgetAnswers removes it; the key
// may then be used for any request. A claim that runs is not removed.
func TestAnswersExpire(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		workTable(t, db)
		short := claimOf("k", "run 1")
		short.Keep = time.Millisecond
		finish(t, db, claim(t, db, short))
		short.ID, short.Execution = "k2", "run 2"
		finish(t, db, claim(t, db, short))
		finish(t, db, claim(t, db, claimOf("stays", "run 3")))
		short.ID, short.Execution = "runs", "run 4"
		running := claim(t, db, short)
		time.Sleep(3 * time.Millisecond) // by the database's own clock, which cannot be set
		again := claimOf("k", "run 5")
		again.Fingerprint = "another request"
		finish(t, db, claim(t, db, again))
		if n, err := db.ForgetAnswers(t.Context()); n != 1 || err != nil {
			t.Errorf("%d forgotten, %v", n, err)
		}
		for _, id := range []string{"k", "stays"} {
			c := claimOf(id, "run 6")
			if id == "k" {
				c.Fingerprint = "another request"
			}
			if _, kept, err := db.Claim(t.Context(), c); kept == nil || err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		finish(t, db, running)
	})
}

// Of many callers at once one runs; all others are told so, or get its answer.
func TestManyClaimsOneRun(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		workTable(t, db)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				for {
					a, kept, err := db.Claim(t.Context(), claimOf("k", fmt.Sprint(i)))
					switch {
					case kept != nil:
						return
					case a != nil:
						finish(t, db, a)
						return
					case fault.Of(err) != fault.IdempotencyInProgress:
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if n := work(t, db); n != `[{"n":1}]` {
			t.Errorf("the work is %s", n)
		}
	})
}

// On PostgreSQL a claim that nobody renews is taken over when its lease is over; the
// stale attempt can neither commit, nor renew, nor give the other's key back.
func TestTakeover(t *testing.T) {
	db := openPostgres(t, nil)
	workTable(t, db)
	for _, c := range []struct {
		name  string
		lease time.Duration
		renew bool
	}{{"died", time.Millisecond, false}, {"renewed", 100 * time.Millisecond, true}} {
		t.Run(c.name, func(t *testing.T) {
			first := claimOf(c.name, "run 1")
			first.Lease = c.lease
			stale := claim(t, db, first)
			tx := begin(t, db, tenantdb.Guard{})
			exec(t, tx, "UPDATE work SET n = n + 100")
			if c.renew {
				stale.Lease = time.Minute
				if err := stale.Renew(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * c.lease) // by the database's own clock, which cannot be set
			next := claimOf(c.name, "run 2")
			if c.renew {
				wantClaimError(t, db, next, fault.IdempotencyInProgress)
				return
			}
			a := claim(t, db, next)
			if a.Number != 2 {
				t.Errorf("attempt %d", a.Number)
			}
			var over *tenantdb.TakenOverError
			if err := stale.Renew(t.Context()); !errors.As(err, &over) {
				t.Errorf("renewed: %v", err)
			}
			if err := stale.End(t.Context(), false); err != nil {
				t.Error(err)
			}
			if err := completeAndCommit(t, tx, stale); !errors.As(err, &over) || fault.Of(err) != fault.IdempotencyInProgress {
				t.Errorf("completed: %v", err)
			}
			// A key given back and claimed anew has the old attempt's number, not its execution.
			if err := a.End(t.Context(), false); err != nil {
				t.Error(err)
			}
			a = claim(t, db, claimOf(c.name, "run 3"))
			tx = begin(t, db, tenantdb.Guard{})
			if err := completeAndCommit(t, tx, stale); !errors.As(err, &over) {
				t.Errorf("completed the third run: %v", err)
			}
			finish(t, db, a)
			if n := work(t, db); n != `[{"n":1}]` {
				t.Errorf("the work is %s", n)
			}
		})
	}
}

func completeAndCommit(t *testing.T, tx *tenantdb.Tx, a *tenantdb.Attempt) error {
	t.Helper()
	if err := tx.Complete(t.Context(), a, firstAnswer); err != nil {
		return errors.Join(err, tx.Rollback(t.Context()))
	}
	return tx.Commit(t.Context())
}

// On SQLite the claims of a process end with it.
func TestClaimsEndWithTheProcess(t *testing.T) {
	cfg := tenantdb.SQLiteConfig{Path: filepath.Join(t.TempDir(), "t.db")}
	for i := range 2 {
		db, err := tenantdb.OpenSQLite(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		claim(t, db, claimOf("k", fmt.Sprint("run ", i)))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
