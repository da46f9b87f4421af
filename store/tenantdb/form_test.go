package tenantdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

var alice = tenantdb.Who{UserID: "u1", UserName: "Alice", Tenant: "acme"}

func form(t testing.TB, tx *tenantdb.Tx, op, table, options string) tenantdb.FormResult {
	t.Helper()
	res, err := tx.Form(context.Background(), tenantdb.FormCall{Op: op, Table: table, Options: json.RawMessage(options), Who: alice})
	if err != nil {
		t.Fatalf("%s %s: %v", op, options, err)
	}
	return res
}

// people makes a table with quoted names and another whose names the database folds.
func people(t testing.TB, db *tenantdb.DB) *tenantdb.Tx {
	t.Helper()
	setup(t, db,
		`CREATE TABLE "People" ("Id" text PRIMARY KEY, "Name" text, "Age" int, "Tags" `+byDialect(db, "JSON", "jsonb")+`,
			"CreateTime" `+byDialect(db, "DATETIME", "timestamp")+`, "UpdateTime" text, "UserId" text, "UserName" text, "OsClient" text)`,
		`CREATE TABLE plain (id int PRIMARY KEY, name text UNIQUE)`)
	tx := begin(t, db, tenantdb.Guard{})
	for i, name := range []string{"Ann", "bob", "100%", "a_b", `back\slash`} {
		form(t, tx, "AddFormData", "people", fmt.Sprintf(`{"Id":"p%d","name":%q,"Age":%d,"Tags":["x",{"n":%d}]}`, i, name, 20+i, i))
	}
	form(t, tx, "AddFormData", "People", `{"Id":"p9","Name":null}`)
	return tx
}

func TestWhere(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := people(t, db)
		for _, c := range []struct{ where, ids string }{
			{`[["Name","=","Ann"]]`, "p0"}, {`["name","==","Ann"]`, "p0"}, {`[["NAME","Equal","Ann"]]`, "p0"},
			{`{"Name":"Name","Value":"Ann"}`, "p0"}, {`[{"Name":"Name","Value":"Ann","Type":"Equal"}]`, "p0"},
			{`"[[\"Name\",\"=\",\"Ann\"]]"`, "p0"},
			{`[["Name","<>","Ann"]]`, "p1 p2 p3 p4"}, {`[["Name","!=","Ann"]]`, "p1 p2 p3 p4"}, {`[["Name","NotEqual","Ann"]]`, "p1 p2 p3 p4"},
			{`[["Age",">",22]]`, "p3 p4"}, {`[["Age",">=","22"]]`, "p2 p3 p4"}, {`[["Age","<",21]]`, "p0"}, {`[["Age","<=",21.0]]`, "p0 p1"},
			{`[["Name","=",null]]`, "p9"}, {`[["Name","<>",null]]`, "p0 p1 p2 p3 p4"}, {`[["Name","Like",null]]`, "p9"}, {`[["Name","NotLike",null]]`, "p0 p1 p2 p3 p4"},
			{`[["Age","In",[20,"22",99]]]`, "p0 p2"}, {`[["Age","NotIn",[20,22]]]`, "p1 p3 p4"}, {`[["Age","In","[20,21]"]]`, "p0 p1"},
			{`[["Name","In","('Ann','bob')"]]`, "p0 p1"}, {`[["Age","In","(20, 21)"]]`, "p0 p1"}, {`[["Age","In",20]]`, "p0"},
			{`[["Age","In",[]]]`, ""}, {`[["Age","NotIn",[]]]`, "p0 p1 p2 p3 p4 p9"}, {`[["Age","In",[20,null]]]`, "p0 p9"},
			{`[["Age","NotIn",[20,null]]]`, "p1 p2 p3 p4"}, {`[["Age","In",[null]]]`, "p9"},
			{`[["Name","Like","B"]]`, "p1 p3 p4"}, {`[["Name","Like","%"]]`, "p2"}, {`[["Name","Like","_"]]`, "p3"}, {`[["Name","Like","\\"]]`, "p4"},
			{`[["Name","NotLike","b"]]`, "p0 p2"}, {`[["Name","StartLike","a"]]`, "p0 p3"}, {`[["Name","NotStartLike","a"]]`, "p1 p2 p4"},
			{`[["Name","EndLike","b"]]`, "p1 p3"}, {`[["Name","NotEndLike","b"]]`, "p0 p2 p4"}, {`[["Age","Like",2]]`, "p0 p1 p2 p3 p4"},
			{`[["Age","=",20],["Name","=","bob"]]`, ""}, {`[["Age","=",20],["OR","Name","=","bob"]]`, "p0 p1"},
			{`[["Age","=",20],["or","Name","=","bob"],["and","Age","=",99]]`, "p0"},
			{`[["(","Age","=",20],["OR","Name","=","bob",")"],["AND","Age",">",20]]`, "p1"},
			{`[["AND","((","Age","=",20,")"],["OR","(","Name","=","bob","))"]]`, "p0 p1"},
			{`[["Age",">",20],["AND",[["Name","=","Ann"],["OR","Name","=","bob"]]]]`, "p1"},
			{`[[["Age","=",20],["OR","Age","=",21]],["Name","=","bob"]]`, "p1"},
			{`[["Age","=",20],["OR",[["Name","=","bob"]]]]`, "p0 p1"},
			{`[{"Name":"Age","Value":20,"GroupStart":true},{"AndOr":"OR","Name":"Name","Value":"bob","Type":"Like","GroupEnd":true},{"Name":"Age","Value":20,"Type":">"}]`, "p1"},
			{`[["Age","=",20],{"AndOr":"or","Name":"Name","Value":"bob"}]`, "p0 p1"},
			{`[]`, "p0 p1 p2 p3 p4 p9"}, {`null`, "p0 p1 p2 p3 p4 p9"}, {`[[]]`, "p0 p1 p2 p3 p4 p9"},
			{`[["Name","=","x' OR '1'='1"]]`, ""},
		} {
			res := form(t, tx, "GetTableData", "people", `{"_Where":`+c.where+`,"_SelectFields":["Id"]}`)
			var rows []struct{ Id string }
			if err := json.Unmarshal(res.Data, &rows); err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, r := range rows {
				ids = append(ids, r.Id)
			}
			if got := strings.Join(ids, " "); got != c.ids || res.DataCount != int64(len(ids)) || res.Code != 1 {
				t.Errorf("%s: got %q (%d), want %q", c.where, got, res.DataCount, c.ids)
			}
		}
	})
}

// What the author got wrong is thrown, and named.
func TestFormRefusals(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := people(t, db)
		for _, c := range []struct{ op, table, options, names string }{
			{"GetFromData", "people", `{}`, "GetFormData"},
			{"UptFormDataByWhere", "people", `{}`, "UptFormDataByWhere"},
			{"GetTableData", "people", `{"_InvokeType":"Client"}`, "no form events"},
			{"UptFormData", "people", `{"Id":"p0","Name":"x","_NoLineForAdd":"perhaps"}`, "_NoLineForAdd"},
			{"GetTableData", "peeple", `{}`, "did you mean People"},
			{"GetTableData", "", `{}`, "name of a table"},
			{"GetTableData", "_apiengine_fence", `{}`, "platform"},
			{"GetTableData", "_ApiEngine_Fence", `{}`, "platform"},
			{"GetTableData", `people" --`, `{}`, "no table"},
			{"GetTableData", "people", `[]`, "object"},
			{"GetTableData", "people", `{"_Where":[["Nmae","=",1]]}`, "did you mean Name"},
			{"GetTableData", "people", `{"_Where":[["Name\" = '' --","=",1]]}`, "no column"},
			{"GetTableData", "people", `{"_Where":[["Name","~",1]]}`, "operator"},
			{"GetTableData", "people", `{"_Where":[["Name","StartsLike",1]]}`, "StartLike"},
			{"GetTableData", "people", `{"_Where":[["Name","="]]}`, "_Where[0]"},
			{"GetTableData", "people", `{"_Where":[["Age",">",null]]}`, "null"},
			{"GetTableData", "people", `{"_Where":[["Age","=",{}]]}`, "object"},
			{"GetTableData", "people", `{"_Where":[["(","Age","=",1]]}`, "open"},
			{"GetTableData", "people", `{"_Where":[["Age","=",1,")"]]}`, "closes"},
			{"GetTableData", "people", `{"_Where":[{"Nam":"Age"}]}`, "did you mean Name"},
			{"GetTableData", "people", `{"_Where":7}`, "_Where"},
			{"GetTableData", "people", `{"_Where":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "nested"},
			{"GetTableData", "people", `{"_where":[]}`, "did you mean _Where"},
			{"GetTableData", "people", `{"PageSize":1}`, "did you mean _PageSize"},
			{"GetTableData", "people", `{"_PageSize":5001}`, "5000"},
			{"GetTableData", "people", `{"_PageIndex":0}`, "_PageIndex"},
			{"GetTableData", "people", `{"_OrderBy":"Nope"}`, "Nope"},
			{"GetTableData", "people", `{"_OrderBy":"Age","_OrderByType":"up"}`, "up"},
			{"GetTableData", "people", `{"_SelectFields":["Nope"]}`, "Nope"},
			{"GetTableData", "people", `{"_SelectFields":7}`, "_SelectFields"},
			{"GetFormData", "people", `{}`, "Id or a _Where"},
			{"GetFormData", "people", `{"Id":""}`, "Id or a _Where"},
			{"GetFormData", "people", `{"Id":{}}`, "Id"},
			{"AddFormData", "people", `{"Nope":1}`, "Nope"},
			{"AddFormData", "people", `{"Name":1,"name":2}`, "twice"},
			{"UptFormData", "people", `{"Name":"x"}`, "Id"},
			{"UptFormData", "people", `{"Id":"p0"}`, "no column to change"},
			{"UptFormData", "people", `{"Id":"p0","Name":"x","_Fence":"Age"}`, "holds none"},
			{"AddFormData", "people", `{"Id":"p0","Name":"x","_Fence":"Age"}`, "_Fence"},
			{"UptFormData", "people", `{"Id":"p0","Name":"x","_Where":[["Age","=",1]]}`, "_Where"},
			{"DelFormData", "people", `{}`, "Id"},
			{"DelFormData", "people", `{"Ids":null}`, "Ids"},
			{"DelFormData", "people", `{"Id":"p0","Name":"Ann"}`, "Name"},
		} {
			_, err := tx.Form(context.Background(), tenantdb.FormCall{Op: c.op, Table: c.table, Options: json.RawMessage(c.options)})
			if fault.Of(err) != fault.ScriptError || !strings.Contains(err.Error(), c.names) {
				t.Errorf("%s %s %s: got %v, want %q named", c.op, c.table, c.options, err, c.names)
			}
		}
	})
}

func TestAddFormData(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := people(t, db)
		res := form(t, tx, "AddFormData", "PEOPLE", `{"FormEngineKey":"x","Name":"Zoe","Tags":{"a":1},"Age":null,"_NotSaveField":["UserName"],"UserName":"hidden"}`)
		var row map[string]any
		if err := json.Unmarshal(res.Data, &row); err != nil || res.Code != 1 || res.DataCount != 1 {
			t.Fatalf("%+v %v", res, err)
		}
		for name, pattern := range map[string]string{"Id": `^[0-9A-Z]{26}$`, "CreateTime": `^\d{4}-\d\d-\d\d.\d\d:\d\d:\d\d$`,
			"UpdateTime": `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$`, "UserId": "^u1$", "UserName": "^Alice$", "OsClient": "^acme$", "Name": "^Zoe$",
			"Age": "^<nil>$", "Tags": `^map\[a:1\]$`} {
			if got := fmt.Sprint(row[name]); !regexp.MustCompile(pattern).MatchString(got) {
				t.Errorf("%s = %q, want %s", name, got, pattern)
			}
		}
		res = form(t, tx, "AddFormData", "", `{"FormEngineKey":"people","Id":"mine","UserId":"other","CreateTime":"2020-01-01 00:00:00","OsClient":"t2"}`)
		if got := string(res.Data); !strings.Contains(got, `"Id":"mine"`) || !strings.Contains(got, `"UserId":"other"`) ||
			!strings.Contains(got, `"OsClient":"t2"`) || !strings.Contains(got, "2020-01-01") {
			t.Errorf("values given were replaced: %s", got)
		}
		// Another table, with names that PostgreSQL has folded, a numeric key, and no OsClient.
		res = form(t, tx, "AddFormData", "Plain", `{"Id":7,"Name":"x","OsClient":"acme"}`)
		if want := byDialect(db, `{"Id":7,"name":"x"}`, `{"Id":7,"Name":"x"}`); string(res.Data) != want { // PostgreSQL has folded the name
			t.Errorf("got %s", res.Data)
		}
		// What the data got wrong is an answer.
		for _, options := range []string{`{"Id":7,"name":"y"}`, `{"Id":8,"name":"x"}`} {
			if res := form(t, tx, "AddFormData", "plain", options); res.Code != 0 || res.Msg == "" || res.Data != nil {
				t.Errorf("%s: %+v", options, res)
			}
		}
		commit(t, tx)
	})
}

func TestGetFormData(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := people(t, db)
		for _, c := range []struct{ options, want string }{
			{`{"Id":"p1","_SelectFields":"name, AGE"}`, `{"Name":"bob","Age":21}`}, // the table's own spelling
			{`{"_Where":[["Age",">",20]],"_SelectFields":["Id","tags"]}`, byDialect(db, `{"Id":"p1","Tags":["x",{"n":1}]}`, `{"Id":"p1","Tags":["x", {"n": 1}]}`)},
		} {
			if res := form(t, tx, "GetFormData", "people", c.options); res.Code != 1 || string(res.Data) != c.want || res.DataCount != 1 {
				t.Errorf("%s: %+v %s", c.options, res, res.Data)
			}
		}
		for _, options := range []string{`{"Id":"nobody"}`, `{"Id":"p1","_Where":[["Name","=","Ann"]]}`, `{"Id":"nobody","OsClient":"acme"}`} {
			if res := form(t, tx, "GetFormData", "people", options); res.Code != 2 || res.Data != nil || res.Msg == "" {
				t.Errorf("%s: %+v", options, res)
			}
		}
		form(t, tx, "AddFormData", "plain", `{"Id":7,"Name":"x"}`)
		for _, id := range []string{`7`, `"7"`, `7.0`} {
			if res := form(t, tx, "GetFormData", "plain", `{"Id":`+id+`}`); string(res.Data) != `{"Id":7,"name":"x"}` {
				t.Errorf("Id %s: %+v %s", id, res, res.Data)
			}
		}
	})
}

func TestUptAndDelFormData(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := people(t, db)
		exec(t, tx, `UPDATE "People" SET "UpdateTime" = 'old'`)
		if res := form(t, tx, "UptFormData", "people", `{"Id":"p0","age":99,"Tags":[1],"Name":"hidden","_NotSaveField":"Name"}`); res.Code != 1 || res.DataCount != 1 {
			t.Errorf("got %+v", res)
		}
		got := query(t, tx, `SELECT "Name", "Age", "UserId", "UpdateTime" = 'old' AS old FROM "People" WHERE "Id" = 'p0'`)
		if want := `[{"Name":"Ann","Age":99,"UserId":"u1","old":` + byDialect(db, "0", "false") + `}]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for op, options := range map[string]string{"UptFormData": `{"Id":"nobody","Age":1}`, "DelFormData": `{"Id":"nobody"}`} {
			if res := form(t, tx, op, "people", options); res.Code != 2 || res.DataCount != 0 {
				t.Errorf("%s %s: %+v", op, options, res)
			}
		}
		for _, c := range []struct {
			options string
			n       int64
		}{{`{"Id":"p0"}`, 1}, {`{"Ids":["p1","p2","nobody"]}`, 2}, {`{"Ids":"[\"p3\"]"}`, 1}} {
			if res := form(t, tx, "DelFormData", "people", c.options); res.Code != 1 || res.DataCount != c.n {
				t.Errorf("%s: %+v", c.options, res)
			}
		}
		if res := form(t, tx, "DelFormData", "people", `{"Ids":[]}`); res.Code != 2 {
			t.Errorf("no Ids: %+v", res)
		}
		if got := query(t, tx, `SELECT "Id" FROM "People" ORDER BY "Id"`); got != `[{"Id":"p4"},{"Id":"p9"}]` {
			t.Errorf("left: %s", got)
		}
	})
}

func TestPages(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := people(t, db) // six rows
		for _, c := range []struct {
			options string
			ids     string
			total   int64
		}{
			{`{"_PageSize":4}`, "p0 p1 p2 p3", 6}, {`{"_PageSize":4,"_PageIndex":2}`, "p4 p9", 6}, {`{"_PageSize":"6"}`, "p0 p1 p2 p3 p4 p9", 6},
			{`{"_PageSize":4,"_PageIndex":"3"}`, "", 6}, {`{"_PageSize":2,"_Where":[["Age",">",21]]}`, "p2 p3", 3},
			{`{"_OrderBy":"Age","_OrderByType":"DESC","_PageSize":3,"_Where":[["Age",">",0]]}`, "p4 p3 p2", 5},
			{`{"_OrderBy":"age desc","_Where":[["Age",">",22]]}`, "p4 p3", 2},
			{`{"_OrderBys":{"UserId":"asc","Age":"desc"},"_Where":[["Age",">",22]]}`, "p4 p3", 2},
			{`{"_OrderBys":[{"UserId":"asc"},{"Id":"desc"}],"_PageSize":2}`, "p9 p4", 6},
			{`{"Ids":["p3","p1"]}`, "p1 p3", 2}, {`{"Ids":["p3","p1"],"_Where":[["Age","=",21]]}`, "p1", 1},
			{`{"Ids":["p3"],"_Where":[["Age","=",21],["OR","Age","=",22]]}`, "", 0},
		} {
			res := form(t, tx, "GetTableData", "people", c.options)
			ids := regexp.MustCompile(`"Id":"(p\d)"`).FindAllStringSubmatch(string(res.Data), -1)
			var got []string
			for _, m := range ids {
				got = append(got, m[1])
			}
			if strings.Join(got, " ") != c.ids || res.DataCount != c.total {
				t.Errorf("%s: got %v of %d, want %s of %d", c.options, got, res.DataCount, c.ids, c.total)
			}
		}
	})
}

func TestTheSchemaIsTheLiveOne(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		setup(t, db, `CREATE TABLE t ("Id" text PRIMARY KEY)`, `CREATE VIEW v AS SELECT * FROM t`)
		tx := begin(t, db, tenantdb.Guard{})
		form(t, tx, "AddFormData", "t", `{"Id":"1"}`)
		exec(t, tx, `ALTER TABLE t ADD COLUMN "Extra" text`)
		if res := form(t, tx, "AddFormData", "t", `{"Id":"2","Extra":"x"}`); string(res.Data) != `{"Id":"2","Extra":"x"}` {
			t.Errorf("in the same transaction: %s", res.Data)
		}
		tx.Rollback(context.Background())
		tx = begin(t, db, tenantdb.Guard{})
		if res := form(t, tx, "AddFormData", "t", `{"Id":"1"}`); string(res.Data) != `{"Id":"1"}` {
			t.Errorf("after it was rolled back: %s", res.Data)
		}
		if res := form(t, tx, "GetTableData", "v", `{}`); string(res.Data) != `[{"Id":"1"}]` {
			t.Errorf("a view: %s", res.Data)
		}
		commit(t, tx)
		if _, err := db.ApplySchema(context.Background(), []tenantdb.SchemaFile{{Name: "1_more.sql", SQL: []byte("-- +goose Up\nALTER TABLE t ADD COLUMN \"More\" text;\n")}}); err != nil {
			t.Fatal(err)
		}
		tx = begin(t, db, tenantdb.Guard{})
		if res := form(t, tx, "GetTableData", "t", `{}`); string(res.Data) != `[{"Id":"1","More":null}]` {
			t.Errorf("after ApplySchema: %s", res.Data)
		}
	})
}
