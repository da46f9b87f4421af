package tenantdb_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

func TestValuesOfResults(t *testing.T) {
	cases := map[string][]struct{ sql, want string }{
		"both": {
			{"SELECT 1", "1"}, {"SELECT NULL", "null"}, {"SELECT 'a\"b\\c'", `"a\"b\\c"`}, {"SELECT ''", `""`},
			{"SELECT 9007199254740991", "9007199254740991"}, {"SELECT 9007199254740992", "9007199254740992"}, {"SELECT 9007199254740993", `"9007199254740993"`},
			{"SELECT -9007199254740992", "-9007199254740992"}, {"SELECT -9007199254740993", `"-9007199254740993"`}, {"SELECT 1000000000000000000", "1000000000000000000"},
			{"SELECT 1152921504606846976", `"1152921504606846976"`}, {"SELECT 1152921504606847000", `"1152921504606847000"`}, {"SELECT 9223372036854775807", `"9223372036854775807"`},
			{"SELECT CAST(1e18 AS double precision)", "1e+18"}, {"SELECT CAST(9007199254740992 AS double precision)", "9.007199254740992e+15"},
			{"SELECT CAST(1152921504606846976 AS double precision)", "1.152921504606847e+18"}, {"SELECT avg(CAST(x AS double precision)) FROM (SELECT 1e16 AS x) AS t", "1e+16"},
			{"SELECT sum(CAST(x AS double precision)) FROM (SELECT 1e18 AS x) AS t", "1e+18"},
			{"SELECT '姓名'", `"姓名"`}, {"SELECT '1.50'", `"1.50"`},
			{"SELECT CAST(1.5 AS double precision)", "1.5"}, {"SELECT CAST(1e300 AS double precision)", "1e+300"},
		},
		"sqlite": {
			{"SELECT x'00ff'", `"AP8="`}, {"SELECT 9e999", `"Infinity"`}, {"SELECT -9e999", `"-Infinity"`}, {"SELECT 5.0", "5"}, {"SELECT 1e16", "1e+16"}, {"SELECT -1e18", "-1e+18"},
			{"SELECT 1 = 1", "1"}, {"SELECT CAST(x'ff41' AS TEXT)", `"�A"`}, {"SELECT x''", `""`}, {"SELECT 1e-9", "1e-09"},
		},
		"postgres": {
			{"SELECT true", "true"}, {"SELECT false", "false"}, {"SELECT 1.50", `"1.50"`}, {"SELECT 1::numeric", `"1"`},
			{"SELECT 'NaN'::float8", `"NaN"`}, {"SELECT '-Infinity'::float8", `"-Infinity"`}, {"SELECT 1e-7::float8", "1e-07"},
			{`SELECT '\x00ff'::bytea`, `"AP8="`}, {"SELECT '{\"a\": [1]}'::jsonb", `{"a": [1]}`}, {"SELECT 'null'::json", "null"},
			{"SELECT date '2026-01-02'", `"2026-01-02"`}, {"SELECT time '03:04:05.5'", `"03:04:05.5"`},
			{"SELECT timestamp '2026-01-02 03:04:05.120'", `"2026-01-02T03:04:05.12"`}, {"SELECT timestamp 'infinity'", `"infinity"`},
			{"SELECT timestamptz '2026-01-02 03:04:05+00'", `"2026-01-02T03:04:05Z"`}, {"SELECT timestamp '0044-03-15 BC'", `"0044-03-15 00:00:00 BC"`},
			{"SELECT 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`},
			{"SELECT '{1,NULL,3}'::int[]", `[1,null,3]`}, {"SELECT '{}'::text[]", `[]`},
			{`SELECT ARRAY['a"b', 'c,d', 'NULL', '', '\', NULL]::text[]`, `["a\"b","c,d","NULL","","\\",null]`}, {"SELECT '{{1,2},{3,4}}'::int8[]", `[[1,2],[3,4]]`},
			{"SELECT '[0:1]={t,f}'::bool[]", `[true,false]`}, {"SELECT '{1.50,2}'::numeric[]", `["1.50","2"]`}, {`SELECT ARRAY['\x00ff'::bytea]`, `["AP8="]`},
			{"SELECT ARRAY['{\"a\": 1}'::jsonb]", `[{"a": 1}]`}, {"SELECT ARRAY[9007199254740993]", `["9007199254740993"]`}, {"SELECT ARRAY[timestamp '2026-01-02 03:04:05']", `["2026-01-02T03:04:05"]`}, {"SELECT interval '1 day'", `"1 day"`}, {"SELECT count(*) FROM pg_class WHERE false", "0"},
		},
	}
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{})
		for _, c := range slices.Concat(cases["both"], cases[db.Dialect()]) {
			if got, err := tx.Scalar(context.Background(), c.sql, nil); err != nil || string(got) != c.want {
				t.Errorf("%s: got %s, %v, want %s", c.sql, got, err, c.want)
			}
		}
	})
}

func TestParametersFitTheColumnsTheyMeet(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{})
		exec(t, tx, byDialect(db,
			"CREATE TABLE t (i INTEGER, n NUMERIC, f REAL, s TEXT, b BOOLEAN, d DATE, at DATETIME, j JSON, c VARCHAR(9) DEFAULT 'vc')",
			"CREATE TABLE t (i int, n numeric, f float8, s text, b boolean, d date, at timestamp, j jsonb, c varchar(9) DEFAULT 'vc')"))
		exec(t, tx, "INSERT INTO t (i, n, f, s, b, d, at, j) VALUES (@i, @n, @f, @s, @b, @d, @at, @j)", "i", 5.0, "n", "1.25", "f", 2.5, "s", 7.0, "b", true,
			"d", "2026-01-02", "at", "2026-01-02 03:04:05", "j", `{"a":1}`)
		want := byDialect(db,
			`[{"i":5,"n":1.25,"f":2.5,"s":"7","b":1,"d":"2026-01-02","at":"2026-01-02 03:04:05","j":{"a":1}}]`,
			`[{"i":5,"n":"1.25","f":2.5,"s":"7","b":true,"d":"2026-01-02","at":"2026-01-02T03:04:05","j":{"a": 1}}]`)
		if got := query(t, tx, "SELECT i, n, f, s, b, d, at, j FROM t"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for _, c := range []struct {
			where string
			value any
		}{
			{"(@v IS NULL OR i = @v)", nil}, {"(@v IS NULL OR i = @v)", 5.0}, {"(@v IS NULL OR d = @v)", nil}, {"(@v IS NULL OR n > @v)", 1.0}, {"(@v IS NULL OR b = @v)", true},
			{"(@v IS NULL OR c = @v)", nil}, {"(@v IS NULL OR c = @v)", "vc"}, {"@v IS NULL", nil}, {"@v IS NOT NULL", "x"}, {"@v IS NOT NULL", true}, {"(@v IS NULL OR i > 0)", nil}, {"COALESCE(@v, @v) IS NULL", nil},
			{"i = @v", 5.0}, {"i = @v", "5"}, {"i < @v", 5.5}, {"n = @v", 1.25}, {"n = @v", "1.25"}, {"f > @v", 2.0}, {"f = @v", 2.5},
			{"s = @v", "7"}, {"s = @v", 7.0}, {"b = @v", 1.0}, {"b = @v", true}, {"d = @v", "2026-01-02"}, {"at <= @v", "2026-01-02 03:04:05"},
			{"(s = @v OR @v IS NULL)", "7"}, {"i + @v = 6", 1.0},
		} {
			if got := query(t, tx, "SELECT 1 AS x FROM t WHERE "+c.where, "v", c.value); got != `[{"x":1}]` {
				t.Errorf("%s with %#v: %s", c.where, c.value, got)
			}
		}
		if got := query(t, tx, "SELECT i FROM t ORDER BY i LIMIT @n", "n", 1.0); got != `[{"i":5}]` {
			t.Errorf("LIMIT: %s", got)
		}
		exec(t, tx, "UPDATE t SET s = @v", "v", nil)
		if got := query(t, tx, "SELECT @v IS NULL AS a, @w IS NULL AS b", "v", nil, "w", 1.0); got != byDialect(db, `[{"a":1,"b":0}]`, `[{"a":true,"b":false}]`) {
			t.Errorf("parameters without a type: %s", got)
		}
		for _, bad := range []any{math.NaN(), math.Inf(1), []int{1}} {
			_, err := tx.Exec(context.Background(), "UPDATE t SET s = @v", p("v", bad))
			wantKind(t, "an odd value", err, fault.ScriptError)
		}
		commit(t, tx)
	})
}

// Bytes go in as bytes and come back as base64, whatever they are.
func TestBytesRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{})
		exec(t, tx, "CREATE TABLE files (id int PRIMARY KEY, body "+byDialect(db, "BLOB", "bytea")+")")
		for i, raw := range [][]byte{{0, 255, 0}, {}, []byte("text"), {'\\', 'x'}, bytes.Repeat([]byte{0x80}, 5000)} {
			exec(t, tx, "INSERT INTO files VALUES (@id, @body)", "id", int64(i), "body", raw)
			want := base64.StdEncoding.EncodeToString(raw)
			if got, err := tx.Scalar(context.Background(), "SELECT body FROM files WHERE id = @id AND body = @body", p("id", int64(i), "body", raw)); err != nil || string(got) != `"`+want+`"` {
				t.Errorf("%x came back as %s, %v", raw, got, err)
			}
			// FormEngine knows the column: the base64 that it gives, it takes.
			if res := form(t, tx, "UptFormData", "files", fmt.Sprintf(`{"Id":%d,"body":%q}`, i, want)); res.Code != 1 {
				t.Errorf("%x: %+v", raw, res)
			}
			if got := query(t, tx, "SELECT body FROM files WHERE id = @id", "id", int64(i)); got != `[{"body":"`+want+`"}]` {
				t.Errorf("%x came back as %s", raw, got)
			}
		}
	})
}

// FormEngine stores what was given or says why not, on both databases alike.
func TestFormValuesFitTheirColumns(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{})
		exec(t, tx, byDialect(db, "CREATE TABLE t (id INTEGER PRIMARY KEY, big BIGINT, price NUMERIC(10,2), s TEXT, body BLOB)",
			"CREATE TABLE t (id int PRIMARY KEY, big bigint, price numeric(10,2), s text, body bytea)"))
		form(t, tx, "AddFormData", "t", `{"Id":1}`)
		for _, c := range []struct{ set, want, msg string }{
			{`{"big":5}`, `{"big":5}`, ""}, {`{"big":5.0}`, `{"big":5}`, ""}, {`{"big":"7"}`, `{"big":7}`, ""}, {`{"big":true}`, `{"big":1}`, ""},
			{`{"big":"9007199254740993"}`, `{"big":"9007199254740993"}`, ""}, {`{"big":9007199254740993}`, `{"big":"9007199254740993"}`, ""}, {`{"big":null}`, `{"big":null}`, ""},
			{`{"big":1.5}`, "", "the column big takes a whole number, not 1.5"}, {`{"big":"1.5"}`, "", `not "1.5"`}, {`{"big":"x"}`, "", `not "x"`}, {`{"big":1e300}`, "", "whole number"},
			{`{"big":"99999999999999999999"}`, "", "whole number"}, {`{"body":"not base64!"}`, "", "bytes"}, {`{"body":7}`, "", "bytes"},
			{`{"s":"\ud800"}`, `{"s":"` + "\ufffd" + `"}`, ""}, {`{"s":7}`, `{"s":"7"}`, ""}, {`{"s":"😀\u0001"}`, `{"s":"😀\u0001"}`, ""}, {`{"s":{"a":1}}`, `{"s":"{\"a\":1}"}`, ""},
		} {
			res := form(t, tx, "UptFormData", "t", `{"Id":1,`+c.set[1:])
			if c.msg != "" {
				if res.Code != 0 || !strings.Contains(res.Msg, c.msg) {
					t.Errorf("%s: %+v, want %q", c.set, res, c.msg)
				}
				continue
			}
			name := c.set[2:strings.Index(c.set, `":`)]
			got := form(t, tx, "GetFormData", "t", `{"Id":1,"_SelectFields":["`+name+`"]}`)
			if res.Code != 1 || string(got.Data) != c.want {
				t.Errorf("%s: %+v, then %s, want %s", c.set, res, got.Data, c.want)
			}
		}
	})
}

// What does not fit a column is refused on SQLite, which would store it, as on PostgreSQL; what
// fits is read again as the same value.
func TestFormValuesAreRefusedAlike(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{})
		exec(t, tx, byDialect(db, "CREATE TABLE t (id INTEGER PRIMARY KEY, r REAL, n NUMERIC, b BOOLEAN, at TIMESTAMP, d DATE, c TIME, j JSON, s TEXT, big BIGINT)",
			"CREATE TABLE t (id int PRIMARY KEY, r float8, n numeric, b boolean, at timestamp, d date, c time, j jsonb, s text, big bigint)"))
		form(t, tx, "AddFormData", "t", `{"Id":1}`)
		for col, values := range map[string][]string{
			"r": {`"x"`, `""`, `true`, `{"a":1}`, `"1_0"`, `"1e999"`}, "n": {`"abc"`, `"0x1p4"`, `""`, `false`, `[1]`}, "b": {`"maybe"`, `5`, `""`, `"o"`, `1.5`},
			"at": {`"not a date"`, `"2024-02-30"`, `5`, `""`, `"2024-02-29 25:00"`, `true`}, "d": {`"2024-13-01"`, `"x"`, `1.5`}, "c": {`"25:00"`, `"noon"`}, "j": {`"{"`, `"abc"`},
		} {
			for _, v := range values {
				if res := form(t, tx, "UptFormData", "t", `{"Id":1,"`+col+`":`+v+`}`); res.Code != 0 || res.Msg == "" {
					t.Errorf("%s %s: %+v, want Code 0", col, v, res)
				}
			}
		}
		for _, c := range []struct{ col, value, lite, pg string }{
			{"r", `1.5`, "1.5", "1.5"}, {"r", `" -2.5e3 "`, "-2500", "-2500"}, {"r", `1.152921504606847e+18`, "1.152921504606847e+18", "1.152921504606847e+18"}, {"r", `1e300`, "1e+300", "1e+300"},
			{"n", `"12.25"`, "12.25", `"12.25"`}, {"n", `7`, "7", `"7"`}, {"b", `true`, "1", "true"}, {"b", `"off"`, "0", "false"}, {"b", `1`, "1", "true"}, {"b", `"T"`, "1", "true"},
			{"at", `"2024-02-29 13:04:05"`, `"2024-02-29 13:04:05"`, `"2024-02-29T13:04:05"`}, {"at", `"2024-02-29T13:04:05.120Z"`, `"2024-02-29T13:04:05.120Z"`, `"2024-02-29T13:04:05.12"`},
			{"at", `"2024/2/9"`, `"2024/2/9"`, `"2024-02-09T00:00:00"`}, {"at", `"2024-02-29 13:04+08"`, `"2024-02-29 13:04+08"`, `"2024-02-29T13:04:00"`},
			{"d", `"2024-02-29"`, `"2024-02-29"`, `"2024-02-29"`}, {"c", `"13:04"`, `"13:04"`, `"13:04:00"`}, {"j", `{"a":[1]}`, `{"a":[1]}`, `{"a": [1]}`}, {"at", `null`, "null", "null"},
			{"s", `1.152921504606847e+18`, `"1152921504606846976"`, `"1152921504606846976"`}, {"s", `1e20`, `"100000000000000000000"`, `"100000000000000000000"`}, {"s", `1.5`, `"1.5"`, `"1.5"`},
			{"big", `1e16`, "10000000000000000", "10000000000000000"}, {"big", `1.152921504606847e+18`, `"1152921504606846976"`, `"1152921504606846976"`},
		} {
			res := form(t, tx, "UptFormData", "t", `{"Id":1,"`+c.col+`":`+c.value+`}`)
			got, err := tx.Scalar(context.Background(), "SELECT "+c.col+" FROM t", nil)
			if want := byDialect(db, c.lite, c.pg); err != nil || res.Code != 1 || string(got) != want {
				t.Errorf("%s %s: %+v, then %s, %v, want %s", c.col, c.value, res, got, err, want)
			}
		}
		exec(t, tx, "UPDATE t SET big = @v", "v", float64(1<<60))
		if got := query(t, tx, "SELECT big FROM t"); got != `[{"big":"1152921504606846976"}]` {
			t.Errorf("2^60 by a parameter: %s", got)
		}
	})
}

// Calls that would match other rows than was meant, or name no row.
func TestFormListsAndHoles(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{})
		exec(t, tx, "CREATE TABLE t (id int PRIMARY KEY, s text)")
		form(t, tx, "AddTableData", "t", `[{"Id":1},{"Id":2},{"Id":3}]`)
		for ids, want := range map[string]int64{`"1,2"`: 2, `" 1 , '3'"`: 2, `"2"`: 1, `"(1,2)"`: 2, `[1,"2"]`: 2, `""`: 0, `[]`: 0} {
			if res := form(t, tx, "GetTableDataCount", "t", `{"Ids":`+ids+`}`); res.DataCount != want {
				t.Errorf("Ids %s: %d rows, want %d", ids, res.DataCount, want)
			}
		}
		for _, c := range []struct{ op, options, msg string }{
			{"AddTableData", `[{"Id":4},null]`, "row 1: null is no row"}, {"AddTableData", `[5]`, "row 0: 5 is no row"}, {"DelTableData", `[null]`, "row 0: null is no row"},
			{"GetTableData", `{"_Where":[{"Name":"s"}]}`, "_Where[0] has no Value"}, {"GetTableData", `{"_Where":[{"Name":"s","Vaule":1}]}`, "did you mean Value?"},
		} {
			_, err := tx.Form(context.Background(), tenantdb.FormCall{Op: c.op, Table: "t", Options: []byte(c.options)})
			if wantKind(t, c.options, err, fault.ScriptError); !strings.Contains(fmt.Sprint(err), c.msg) {
				t.Errorf("%s %s: %v, want %q", c.op, c.options, err, c.msg)
			}
		}
		if res := form(t, tx, "GetTableDataCount", "t", `{"_Where":[{"Name":"s","Value":null}]}`); res.DataCount != 3 {
			t.Errorf("null is IS NULL: %+v", res)
		}
	})
}

func TestArraysArePostgresArrays(t *testing.T) {
	t.Parallel()
	tx := begin(t, openPostgres(t, nil), tenantdb.Guard{})
	exec(t, tx, "CREATE TABLE t (id int PRIMARY KEY, n int[], s text[])")
	res := form(t, tx, "AddFormData", "t", `{"id":1,"n":[[1,null],[2,3]],"s":["a\"b","\\","NULL",null,"{,}"]}`)
	if want := `{"Id":1,"n":[[1,null],[2,3]],"s":["a\"b","\\","NULL",null,"{,}"]}`; string(res.Data) != want {
		t.Errorf("got %s %s, want %s", res.Data, res.Msg, want)
	}
}
