package tenantdb_test

import (
	"errors"
	"testing"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

// A Reader changes nothing and takes no row locks, by whatever a statement calls; what it
// refuses leaves the transaction as it was, and the transaction goes on writing.
func TestReader(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		refused := []string{
			"UPDATE item SET n = 2", "DELETE FROM item", "INSERT INTO item VALUES (9, 9)", "CREATE TABLE x (a int)",
			"WITH x AS (SELECT 1) UPDATE item SET n = 3", "EXPLAIN DELETE FROM item",
		}
		for _, sql := range []string{"CREATE TABLE item (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO item VALUES (1, 1)"} {
			administer(t, db, sql)
		}
		if db.Dialect() == "postgres" {
			for _, sql := range []string{
				"CREATE SEQUENCE seq",
				"CREATE FUNCTION bump() RETURNS int LANGUAGE sql VOLATILE AS 'UPDATE item SET n = n + 1 RETURNING n'",
				"CREATE FUNCTION bump_openly() RETURNS int LANGUAGE plpgsql AS 'BEGIN SET LOCAL transaction_read_only = off; RETURN bump(); END'",
				"CREATE FUNCTION caught() RETURNS int LANGUAGE plpgsql AS 'BEGIN BEGIN PERFORM bump(); EXCEPTION WHEN OTHERS THEN NULL; END; UPDATE item SET n = 7; RETURN 1; END'",
				"CREATE VIEW bumped AS SELECT bump() AS b",
			} {
				administer(t, db, sql)
			}
			refused = append(refused, "SELECT n FROM item FOR UPDATE", "SELECT n FROM item FOR NO KEY UPDATE", "SELECT n FROM item FOR SHARE", "SELECT n FROM item FOR KEY SHARE",
				"SELECT bump()", "SELECT bump_openly()", "SELECT caught()", "SELECT b FROM bumped", "SELECT nextval('seq')", "SELECT setval('seq', 7)",
				"SELECT * INTO y FROM item", "WITH x AS (DELETE FROM item RETURNING n) SELECT n FROM x", "EXPLAIN ANALYZE SELECT bump()")
		}
		tx, err := db.Begin(t.Context(), tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(t.Context())
		write := func(want string) {
			t.Helper()
			if _, err := tx.Exec(t.Context(), "UPDATE item SET n = n + 10", nil); err != nil {
				t.Fatalf("the transaction does not write any more: %v", err)
			}
			if got, err := tx.Reader().Scalar(t.Context(), "SELECT n FROM item", nil); err != nil || string(got) != want {
				t.Fatalf("%s, %v, want %s", got, err, want)
			}
		}
		write("11")
		save, err := tx.Savepoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		write("21")
		for _, sql := range refused {
			_, _, err := tx.Reader().Query(t.Context(), sql, nil)
			if s := new(tenantdb.SQLError); !errors.As(err, &s) || fault.Of(err) != fault.ScriptError {
				t.Errorf("%s: %v", sql, err)
			}
		}
		write("31")
		if err := tx.ReleaseSavepoint(t.Context(), save); err != nil {
			t.Fatal(err)
		}
		write("41")
		if save, err = tx.Savepoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := tx.Reader().Query(t.Context(), "SELECT n FROM item", nil); err != nil {
			t.Fatal(err)
		}
		if err := tx.RollbackTo(t.Context(), save); err != nil {
			t.Fatal(err)
		}
		write("51")
		if err := tx.Guard(t.Context(), tenantdb.Guard{Key: "another", Token: 1, Owner: "me"}); err != nil {
			t.Errorf("a guard after reading: %v", err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// administer runs a statement as an administrator does.
func administer(t testing.TB, db *tenantdb.DB, sql string) {
	t.Helper()
	if _, _, _, err := db.Statement(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
