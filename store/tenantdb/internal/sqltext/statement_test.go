package sqltext_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"apiengine/store/tenantdb/internal/sqltext"
)

var both = []sqltext.Dialect{sqltext.SQLite, sqltext.Postgres}

// refused are statements that no script may send; the second column is what the message names.
var refused = []struct {
	dialects []sqltext.Dialect
	sql      string
	names    string
}{
	{both, "COMMIT", "COMMIT"},
	{both, "  /* x */ -- y\n rollback", "ROLLBACK"},
	{both, "Begin", "BEGIN"},
	{both, "END", "END"},
	{both, "SAVEPOINT a", "SAVEPOINT"},
	{both, "RELEASE a", "RELEASE"},
	{both, "ABORT", "ABORT"},
	{both, "START TRANSACTION", "START"},
	{both, "PREPARE TRANSACTION 'x'", "PREPARE"},
	{both, "SET ROLE postgres", "SET"},
	{both, "SET SESSION search_path = x", "SET"},
	{both, "RESET ALL", "RESET"},
	{both, "LISTEN x", "LISTEN"},
	{both, "NOTIFY x", "NOTIFY"},
	{both, "DO $$ BEGIN COMMIT; END $$", ""},
	{both, "CALL p()", "CALL"},
	{both, "LOCK TABLE t", "LOCK"},
	{both, "DISCARD ALL", "DISCARD"},
	{both, "COPY t TO PROGRAM 'id'", "COPY"},
	{both, "ATTACH 'x' AS y", "ATTACH"},
	{both, "DETACH y", "DETACH"},
	{both, "PRAGMA writable_schema = 1", "PRAGMA"},
	{both, "VACUUM INTO 'x'", "VACUUM"},
	{both, "GRANT ALL ON t TO public", "GRANT"},
	{both, "CREATE TEMP TABLE t (a int)", "TEMP"},
	{both, "CREATE TRIGGER x BEFORE UPDATE ON t BEGIN SELECT 1; END", ""},
	{both, "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'COMMIT'", "FUNCTION"},
	{both, "CREATE ROLE x", "ROLE"},
	{both, "DROP SCHEMA x CASCADE", "SCHEMA"},
	{both, "ALTER SYSTEM SET x = 1", "SYSTEM"},
	{both, "SELECT 1; DROP TABLE t", "only one statement"},
	{both, "SELECT 1;;SELECT 2", "only one statement"},
	{both, "SELECT 1 /* ; */ ; -- \n SELECT 2", "only one statement"},
	{both, "", "empty"},
	{both, " ; ; ", "empty"},
	{both, "-- nothing", "empty"},
	{both, "SELECT 'x", "never closed"},
	{both, "SELECT /* x", "never closed"},
	{both, "SELECT 1\x00", "NUL"},
	{both, "SELECT * FROM _apiengine_fence", "_apiengine_fence"},
	{both, `UPDATE "_ApiEngine_Fence" SET token = 0`, "_ApiEngine_Fence"},
	{both, "SELECT * FROM main._apiengine_fence", "_apiengine_fence"},
	{both, "WITH x AS (SELECT * FROM _APIENGINE_schema) SELECT * FROM x", "_APIENGINE_schema"},
	{both, "EXPLAIN COMMIT", "COMMIT"},
	{both, "EXPLAIN", "EXPLAIN"},
	{sqlite, "SELECT * FROM [_apiengine_fence]", "_apiengine_fence"},
	{sqlite, "SELECT * FROM `_apiengine_fence`", "_apiengine_fence"},
	{sqlite, "SELECT load_extension ('x')", "load_extension"},
	{sqlite, "SELECT ?1", "?1"},
	{sqlite, "SELECT :x", ":x"},
	{sqlite, "SELECT $x", "$x"},
	{sqlite, "CREATE VIRTUAL TABLE t USING fts5(a)", "VIRTUAL"},
	{sqlite, "SELECT 1 /* /* */ ; DROP TABLE t -- */", "only one statement"}, // comments do not nest here
	{postgres, "SELECT $1", "$1"},
	{postgres, "SELECT pg_sleep(10)", "pg_sleep"},
	{postgres, `SELECT "pg_sleep" (10)`, "pg_sleep"},
	{postgres, "SELECT pg_catalog . /* x */ pg_sleep -- y\n (10)", "pg_sleep"},
	{postgres, "SELECT PG_TERMINATE_BACKEND(1)", "pg_terminate_backend"},
	{postgres, "SELECT pg_advisory_lock(1)", "pg_advisory_lock"},
	{postgres, "SELECT pg_read_file('/etc/passwd')", "pg_read_file"},
	{postgres, "SELECT set_config('role', 'x', false)", "set_config"},
	{postgres, "SELECT lo_import('/etc/passwd')", "lo_import"},
	{postgres, "SELECT * FROM dblink('x', 'y')", "dblink"},
	{postgres, "SELECT query_to_xml('select * from _apiengine_fence', true, true, '')", "query_to_xml"},
	{postgres, "SELECT * FROM pg_authid", "pg_authid"},
	{postgres, "SELECT * FROM pg_stat_activity", "pg_stat_activity"},
	{postgres, "UPDATE pg_catalog.pg_class SET relname = 'x'", "pg_catalog"},
	{postgres, "DELETE FROM information_schema.tables", "information_schema"},
	{postgres, "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x, pg_class", "pg_class"},
	{postgres, `SELECT * FROM U&"\005fapiengine_fence"`, "U&"},
	{postgres, "SELECT 1 INTO TEMP x", "TEMP"},
	{postgres, "SELECT * FROM pg_temp.x", "pg_temp"},
	{postgres, "SELECT 1 -- x\r; DROP TABLE t", "only one statement"}, // \r ends a comment here
	{postgres, "SELECT $a$ $b$ $a$; DROP TABLE t", "only one statement"},
	{postgres, "SELECT $a$ ; $b$", "never closed"},
	// The role that the run has changed to is not a script's to change.
	{postgres, "reset/**/role", "RESET"},
	{postgres, "SeT -- x\n LOCAL ROLE NONE", "SET"},
	{postgres, "SET SESSION AUTHORIZATION DEFAULT", "SET"},
	{postgres, "SELECT set_config /* x */ ('role', 'none', true)", "set_config"},
	{postgres, `VALUES (pg_catalog."set_config"('ro' || 'le', 'none', true))`, "set_config"},
	{postgres, "WITH x AS (SELECT SET_CONFIG('role', 'none', true)) SELECT * FROM x", "set_config"},
	{postgres, "INSERT INTO t SELECT set_config('role', 'none', true) RETURNING 1", "set_config"},
	{postgres, "CREATE VIEW v AS SELECT set_config('role', 'none', true)", "set_config"},
	{postgres, "CREATE TABLE t (a text DEFAULT set_config('role', 'none', true))", "set_config"},
	{postgres, "CREATE INDEX i ON t (set_config('role', a, true))", "set_config"},
	{postgres, "UPDATE pg_settings SET setting = 'none' WHERE name = 'role'", "pg_settings"},
	{postgres, `UPDATE pg_catalog . "pg_settings" SET setting = 'none' WHERE name = 'role'`, "pg_"},
	{postgres, "EXPLAIN ANALYZE SELECT set_config('role', 'none', true)", "set_config"},
	{postgres, "EXPLAIN (ANALYZE) RESET ROLE", "RESET"},
	{postgres, "DO LANGUAGE plpgsql $x$ BEGIN RESET ROLE; END $x$", "DO"},
	{postgres, "REASSIGN OWNED BY a TO b", "REASSIGN"},
	{postgres, "ALTER ROLE a LOGIN PASSWORD 'x'", "ROLE"},
	{postgres, "ALTER FUNCTION f() SECURITY INVOKER", "FUNCTION"},
	{postgres, "EXECUTE stmt", "EXECUTE"},
	{postgres, "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "DECLARE"},
	{postgres, "IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z", "IMPORT"},
}

var (
	sqlite   = []sqltext.Dialect{sqltext.SQLite}
	postgres = []sqltext.Dialect{sqltext.Postgres}
)

func TestRefused(t *testing.T) {
	for _, c := range refused {
		for _, d := range c.dialects {
			_, err := sqltext.Parse(sqltext.Rules{Dialect: d}, c.sql, nil)
			if err == nil || !strings.Contains(err.Error(), c.names) {
				t.Errorf("%s: %q: got %v, want a refusal that names %q", d, c.sql, err, c.names)
			}
		}
	}
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		dialects []sqltext.Dialect
		sql      string
		effect   sqltext.Effect
		changes  bool
	}{
		{both, "SELECT 1;", sqltext.Reads, false},
		{both, "select 'COMMIT; it''s _apiengine_x' -- ROLLBACK; \n", sqltext.Reads, false},
		{both, "WITH a AS (SELECT 1) SELECT * FROM a", sqltext.Reads, false},
		{both, "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", sqltext.Writes, true},
		{both, "INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING RETURNING a", sqltext.Writes, true},
		{both, "UPDATE t SET \"begin\" = 1", sqltext.Writes, true},
		{both, "SELECT CASE WHEN a THEN 1 END FROM t", sqltext.Reads, false},
		{both, "SELECT replace(a, 'b', 'c') FROM t", sqltext.Reads, false},
		{both, "CREATE UNIQUE INDEX i ON t (a)", sqltext.Defines, false},
		{both, "CREATE TABLE IF NOT EXISTS t (a int)", sqltext.Defines, false},
		{both, "ALTER TABLE t ADD COLUMN b int", sqltext.Defines, false},
		{both, "DROP TABLE t", sqltext.Defines, false},
		{sqlite, "REPLACE INTO t VALUES (1)", sqltext.Writes, true},
		{sqlite, "EXPLAIN QUERY PLAN SELECT 1", sqltext.Reads, false},
		{postgres, "(SELECT 1) UNION (SELECT 2)", sqltext.Reads, false},
		{postgres, "SELECT /* /* ; */ ; */ 1", sqltext.Reads, false},
		{postgres, "SELECT E'\\'; DROP TABLE t --'", sqltext.Reads, false},
		{postgres, "SELECT $$ ; COMMIT $$", sqltext.Reads, false},
		{postgres, "SELECT * FROM t FOR NO KEY UPDATE", sqltext.Reads, false},
		{postgres, "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", sqltext.Writes, false},
		{postgres, "SELECT a::int, b->>'c', d ? 'e', f[1:2] FROM t", sqltext.Reads, false},
		{postgres, "SELECT relname FROM pg_catalog.pg_class", sqltext.Reads, false},
		{postgres, "SELECT pg_typeof(1)", sqltext.Reads, false},
		{postgres, "EXPLAIN (ANALYZE, BUFFERS) DELETE FROM t", sqltext.Writes, false},
		{postgres, "TRUNCATE t", sqltext.Writes, true},
	} {
		for _, d := range c.dialects {
			st, err := sqltext.Parse(sqltext.Rules{Dialect: d}, c.sql, nil)
			if err != nil || st.Effect != c.effect || st.Changes != c.changes {
				t.Errorf("%s: %q: got %+v, %v", d, c.sql, st, err)
			}
		}
	}
}

func TestAdministratorsDefineFunctions(t *testing.T) {
	const sql = "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"
	if _, err := sqltext.Parse(sqltext.Rules{Dialect: sqltext.Postgres, Admin: true}, sql, nil); err != nil {
		t.Error(err)
	}
	if _, err := sqltext.Parse(sqltext.Rules{Dialect: sqltext.Postgres, Admin: true}, "COMMIT", nil); err == nil {
		t.Error("an administrator's COMMIT was accepted")
	}
}

func TestPlaceholders(t *testing.T) {
	for _, c := range []struct {
		dialects []sqltext.Dialect
		sql      string
		params   map[string]any
		want     string // with # for the dialect's sign
		args     []any
		err      string
	}{
		{both, "SELECT @a", map[string]any{"@a": "x"}, "SELECT  #1", []any{"x"}, ""},
		{both, "SELECT @a, @b, @a;", map[string]any{"a": 1.5, "@b": nil}, "SELECT  #1,  #2,  #1", []any{1.5, nil}, ""},
		{both, "UPDATE t SET a=@p1 WHERE b=@p10", map[string]any{"p1": true, "p10": int64(2)}, "UPDATE t SET a= #1 WHERE b= #2", []any{true, int64(2)}, ""},
		{both, "SELECT '@a' -- @b\n /* @c */", nil, "SELECT '@a'", nil, ""},
		{both, `SELECT "@a" FROM t WHERE c=@姓名`, map[string]any{"姓名": "x"}, `SELECT "@a" FROM t WHERE c= #1`, []any{"x"}, ""},
		{both, "SELECT @a", nil, "", nil, "@a"},
		{both, "SELECT @a", map[string]any{"@A": 1}, "", nil, "@a"},
		{both, "SELECT 1", map[string]any{"@a": 1}, "", nil, "does not use"},
		{both, "SELECT '@a'", map[string]any{"@a": 1}, "", nil, "does not use"},
		{both, "SELECT @a", map[string]any{"@a": 1, "a": 2}, "", nil, "twice"},
		{both, "SELECT a<@p0 FROM t", map[string]any{"p0": int64(1)}, "SELECT a< #1 FROM t", []any{int64(1)}, ""},
		{both, "SELECT a>=@p0 FROM t", map[string]any{"p0": int64(1)}, "SELECT a>= #1 FROM t", []any{int64(1)}, ""},
		{postgres, "SELECT a<@b, a @> b, a @@ b, a@@c FROM t", nil, "SELECT a<@b, a @> b, a @@ b, a@@c FROM t", nil, ""},
		{postgres, "SELECT a @> @p::jsonb", map[string]any{"p": "{}"}, "SELECT a @>  #1::jsonb", []any{"{}"}, ""},
		{postgres, "SELECT $$ @a $$, E'\\'@a'", nil, "SELECT $$ @a $$, E'\\'@a'", nil, ""},
	} {
		for _, d := range c.dialects {
			sign := map[sqltext.Dialect]string{sqltext.SQLite: "?", sqltext.Postgres: "$"}[d]
			st, err := sqltext.Parse(sqltext.Rules{Dialect: d}, c.sql, c.params)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%s: %q: got %v, want an error with %q", d, c.sql, err, c.err)
				}
				continue
			}
			if want := strings.ReplaceAll(c.want, "#", sign); err != nil || st.SQL != want || !reflect.DeepEqual(st.Args, c.args) {
				t.Errorf("%s: %q:\n got %q %v, %v\nwant %q %v", d, c.sql, st.SQL, st.Args, err, want, c.args)
			}
		}
	}
}

func TestErrorsSayWhich(t *testing.T) {
	_, err := sqltext.Parse(sqltext.Rules{Dialect: sqltext.SQLite}, "COMMIT", nil)
	if r := new(sqltext.RefusedError); !errors.As(err, &r) || r.What != "COMMIT" || r.Why == "" {
		t.Errorf("got %#v", err)
	}
	_, err = sqltext.Parse(sqltext.Rules{Dialect: sqltext.SQLite}, "SELECT @a", nil)
	if p := new(sqltext.ParamError); !errors.As(err, &p) || p.Name != "a" || p.Unused {
		t.Errorf("got %#v", err)
	}
}

// For PostgreSQL a name that occurs twice can be sent apart.
func TestRepeatedNamesApart(t *testing.T) {
	for _, c := range []struct {
		dialect    sqltext.Dialect
		sql, apart string
		repeats    []int
	}{
		{sqltext.Postgres, "SELECT @a, @b, @a", "SELECT  $1,  $2,  $3", []int{0, 1, 0}},
		{sqltext.Postgres, "SELECT @a, @b", "", nil},
		{sqltext.SQLite, "SELECT @a, @b, @a", "", nil},
	} {
		st, err := sqltext.Parse(sqltext.Rules{Dialect: c.dialect}, c.sql, map[string]any{"a": 1, "b": 2})
		if err != nil || st.Apart != c.apart || !slices.Equal(st.Repeats, c.repeats) || len(st.Args) != 2 {
			t.Errorf("%s: %+v, %v", c.sql, st, err)
		}
	}
}

// FuzzParse: nothing panics; what is accepted is one statement, parses the same again, and
// hides nothing: appending a second statement to it is always refused.
func FuzzParse(f *testing.F) {
	for _, c := range refused {
		f.Add(c.sql, c.dialects[0] == sqltext.Postgres)
	}
	for _, s := range []string{"SELECT a<@p0, b->@p0", "SELECT $a$@p0$a$, 'x''@p0', E'\\'@p0'", "select 1e-3, 0x1F, .5, [a], `b`"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, sql string, pg bool) {
		d := sqltext.SQLite
		if pg {
			d = sqltext.Postgres
		}
		r := sqltext.Rules{Dialect: d}
		params := map[string]any{"p0": int64(1)}
		st, err := sqltext.Parse(r, sql, params)
		if err != nil {
			params = nil
			if st, err = sqltext.Parse(r, sql, nil); err != nil {
				return
			}
		}
		if _, err := sqltext.Parse(r, sql+"\n;DROP TABLE t", params); err == nil {
			t.Errorf("%q hides what follows it", sql)
		}
		if _, err := sqltext.Parse(r, sql+"\n _apiengine_fence", params); err == nil {
			t.Errorf("%q hides a reserved name", sql)
		}
		if len(st.Args) == 0 {
			if again, err := sqltext.Parse(r, st.SQL, nil); err != nil || again.SQL != st.SQL {
				t.Errorf("%q became %q, which became %q, %v", sql, st.SQL, again.SQL, err)
			}
		}
	})
}
