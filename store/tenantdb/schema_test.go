package tenantdb_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

func file(name, sql string) tenantdb.SchemaFile {
	return tenantdb.SchemaFile{Name: name, SQL: []byte(sql)}
}

const up = "-- +goose Up\n"

func TestApplySchema(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		files := []tenantdb.SchemaFile{
			file("10_c.sql", up+"ALTER TABLE a ADD COLUMN c int;\n"),
			file("2_b.sql", up+"CREATE TABLE b (n int);\nINSERT INTO b VALUES (1);\n-- +goose Down\nDROP TABLE b;\n"),
			file("001_a.sql", up+"CREATE TABLE a (n int);\n"),
		}
		got, err := db.ApplySchema(ctx, files)
		if want := []string{"001_a.sql", "2_b.sql", "10_c.sql"}; err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, %v", got, err)
		}
		if got, err := db.ApplySchema(ctx, files); err != nil || len(got) != 0 {
			t.Errorf("again: %v, %v", got, err)
		}
		if got := query(t, begin(t, db, tenantdb.Guard{}), "SELECT n, (SELECT count(c) FROM a) AS c FROM b"); got != `[{"n":1,"c":0}]` {
			t.Errorf("got %s", got)
		}
		got, err = db.ApplySchema(ctx, append(files, file("11_ok.sql", up+"CREATE TABLE ok (n int);"), file("12_bad.sql", up+"CREATE TABLE half (n int);\nINSERT INTO nowhere VALUES (1);")))
		if e := new(tenantdb.SchemaError); !errors.As(err, &e) || e.File != "12_bad.sql" || !strings.Contains(e.Public(), "nowhere") || !reflect.DeepEqual(got, []string{"11_ok.sql"}) {
			t.Errorf("a bad file: %v, %v", got, err)
		}
		_, _, err = begin(t, db, tenantdb.Guard{}).Query(ctx, "SELECT * FROM half", nil)
		wantKind(t, "half of a bad file", err, fault.ScriptError)
		if got, err := db.ApplySchema(ctx, nil); err != nil || got != nil {
			t.Errorf("no files: %v, %v", got, err)
		}
	})
}

// A version may come late, but is one file's for ever, and so is the file's text.
func TestSchemaFilesThatWereApplied(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		apply := func(want string, files ...tenantdb.SchemaFile) {
			t.Helper()
			got, err := db.ApplySchema(ctx, files)
			said := strings.Join(got, " ")
			if err != nil {
				said += "!" + err.Error()
				wantKind(t, said, err, fault.BadRequest)
			}
			if said != want {
				t.Errorf("got %q, want %q", said, want)
			}
		}
		a, b := file("001_a.sql", up+"CREATE TABLE a (n int);\n"), file("0301_b.sql", up+"CREATE TABLE b (n int);")
		apply("001_a.sql 0301_b.sql", a, b)
		apply("0050_late.sql", file("0050_late.sql", up+"CREATE TABLE late (n int);"))
		apply("!schema/0001_account.sql: has the number 1, as 001_a.sql has, which was applied; give it another one, such as 303",
			file("0001_account.sql", up+"CREATE TABLE account (n int);"), file("0302_c.sql", up+"CREATE TABLE c (n int);"))
		apply("!schema/0301_b.sql: was applied before with another text; write what is new into another file, such as 302_...", file("0301_b.sql", up+"CREATE TABLE b (n int, m int);"))
		apply("", a, file("0301_b.sql", "-- +goose Up \r\nCREATE TABLE b (n int);\r\n\r\n"), file("0050_other_name.sql", up+"CREATE TABLE late (n int);"))
		apply("0303_ok.sql!schema/0304_bad.sql: "+byDialect(db, "SQL logic error: no such table: nowhere (1)", `relation "nowhere" does not exist`),
			a, file("0303_ok.sql", up+"CREATE TABLE ok (n int);"), file("0304_bad.sql", up+"INSERT INTO nowhere VALUES (1);"))
		apply("0304_bad.sql", file("0304_bad.sql", up+"INSERT INTO ok VALUES (1);")) // what failed may be changed
	})
}

func TestSchemaFilesThatAreRefused(t *testing.T) {
	db := openSQLite(t)
	for name, files := range map[string][]tenantdb.SchemaFile{
		"no version":       {file("a.sql", up+"SELECT 1;")},
		"zero":             {file("0_a.sql", up+"SELECT 1;")},
		"a path":           {file("../1_a.sql", up+"SELECT 1;")},
		"not sql":          {file("1_a.txt", up+"SELECT 1;")},
		"the same twice":   {file("1_a.sql", up+"SELECT 1;"), file("01_b.sql", up+"SELECT 1;")},
		"no Up":            {file("1_a.sql", "CREATE TABLE a (n int);")},
		"a platform table": {file("1_a.sql", up+"DROP TABLE _ApiEngine_fence;")},
		"an open quote":    {file("1_a.sql", up+"CREATE TABLE a (n int")},
	} {
		_, err := db.ApplySchema(context.Background(), files)
		wantKind(t, name, err, fault.BadRequest)
		if e := new(tenantdb.SchemaError); !errors.As(err, &e) || !strings.Contains(e.Public(), "schema") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestApplySchemaFromSeveralNodesAtOnce(t *testing.T) {
	db := openPostgres(t, nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 3 {
		wg.Go(func() {
			got, err := db.ApplySchema(context.Background(), []tenantdb.SchemaFile{file("1_a.sql", up+"CREATE TABLE a (n int);")})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			total += len(got)
			mu.Unlock()
		})
	}
	wg.Wait()
	if total != 1 {
		t.Errorf("applied %d times", total)
	}
}

func TestStatement(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		ctx := context.Background()
		if _, _, _, err := db.Statement(ctx, "CREATE TABLE t (a int, b text)"); err != nil {
			t.Fatal(err)
		}
		if _, _, n, err := db.Statement(ctx, "INSERT INTO t VALUES (1, 'x'), (2, NULL)"); err != nil || n != 2 {
			t.Errorf("inserted %d, %v", n, err)
		}
		columns, rows, _, err := db.Statement(ctx, "SELECT a, b, a FROM t ORDER BY a;")
		if err != nil || strings.Join(columns, " ") != "a b a" || len(rows) != 2 || string(rows[0][1]) != `"x"` || string(rows[1][1]) != "null" {
			t.Errorf("got %v %s, %v", columns, rows, err)
		}
		for _, sql := range []string{"COMMIT", "SELECT 1; SELECT 2", "DROP TABLE _apiengine_fence", "SELECT @a"} {
			_, _, _, err := db.Statement(ctx, sql)
			wantKind(t, sql, err, fault.ScriptError)
		}
	})
}
