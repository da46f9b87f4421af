package tenantdb_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"apiengine/fault"
	"apiengine/store/tenantdb"
)

// A batch is written as a whole or not at all.
func TestBatches(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := people(t, db)
		ids := func() string { return query(t, tx, `SELECT "Id" FROM "People" WHERE "Id" LIKE 'b%' ORDER BY "Id"`) }
		res := form(t, tx, "AddTableData", "people", `[{"Id":"b1","Name":"x"},{"Id":"b2","FormEngineKey":"ignored?"}]`)
		if res.Code != 1 || res.DataCount != 2 || !strings.HasPrefix(string(res.Data), `[{"Id":"b1"`) || ids() != `[{"Id":"b1"},{"Id":"b2"}]` {
			t.Errorf("added: %+v %s, %s", res, res.Data, ids())
		}
		res = form(t, tx, "AddTableData", "", `[{"FormEngineKey":"People","Id":"b3"},{"FormEngineKey":"plain","Id":7}]`)
		if res.DataCount != 2 || query(t, tx, `SELECT id FROM plain`) != `[{"id":7}]` {
			t.Errorf("two tables: %+v", res)
		}
		for _, c := range []struct {
			op, rows string
			code     int
			msg      string
		}{
			{"AddTableData", `[{"Id":"b8"},{"Id":"b1"}]`, 0, "row 1: "},
			{"AddFormDataBatch", `[{"Id":"b8"},{"Id":"b1"}]`, 0, "row 1: "},
			{"UptTableData", `[{"Id":"b1","Name":"changed"},{"Id":"nobody","Name":"y"}]`, 2, "row 1: no such row; nothing of the batch was written"},
		} {
			if res := form(t, tx, c.op, "people", c.rows); res.Code != c.code || !strings.Contains(res.Msg, c.msg) || res.Data != nil || res.DataCount != 0 {
				t.Errorf("%s %s: %+v", c.op, c.rows, res)
			}
		}
		for _, c := range []struct{ op, rows, msg string }{
			{"AddTableData", `[{"Id":"b8"},{"Id":"b9","Nmae":1}]`, "AddTableData, row 1: the table People has no column Nmae; did you mean Name?"},
			{"AddTableData", `{"Id":"b8"}`, "needs an array"}, {"UptTableData", `[{"Name":"x"}]`, "needs an Id"}, {"DelTableData", `[{}]`, "needs an Id"},
			{"AddTableData", `[7]`, "row 0"}, {"AddTableData", "[" + strings.Repeat("{},", 5000) + "{}]", "at most 5000"},
		} {
			_, err := tx.Form(context.Background(), tenantdb.FormCall{Op: c.op, Table: "people", Options: json.RawMessage(c.rows)})
			if fault.Of(err) != fault.ScriptError || !strings.Contains(err.Error(), c.msg) {
				t.Errorf("%s %.60s: %v, want %q", c.op, c.rows, err, c.msg)
			}
		}
		if got := query(t, tx, `SELECT "Id", "Name" FROM "People" WHERE "Id" LIKE 'b%' ORDER BY "Id"`); got != `[{"Id":"b1","Name":"x"},{"Id":"b2","Name":null},{"Id":"b3","Name":null}]` {
			t.Errorf("after the failures: %s", got)
		}
		if res := form(t, tx, "UptTableData", "people", `[{"Id":"b1","Name":"n1"},{"Id":"b4","Name":"n4","_NoLineForAdd":true}]`); res.Code != 1 || res.DataCount != 2 {
			t.Errorf("changed: %+v", res)
		}
		if res := form(t, tx, "DelTableData", "people", `[{"Id":"b1"},{"Id":"nobody"},{"Ids":["b2","b3","b4"]}]`); res.Code != 1 || res.DataCount != 4 || ids() != `[]` {
			t.Errorf("removed: %+v, left %s", res, ids())
		}
		if res := form(t, tx, "AddTableData", "people", `[]`); res.Code != 1 || string(res.Data) != "[]" {
			t.Errorf("nothing: %+v", res)
		}
		commit(t, tx)
	})
}

func TestByWhere(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := people(t, db)
		exec(t, tx, `UPDATE "People" SET "UpdateTime" = 'old'`)
		for _, c := range []struct {
			op, options string
			n           int64
		}{
			{"UptFormDataByWhere", `{"_Where":[["Age",">=",22]],"Name":"old enough"}`, 3}, {"UptFormDataByWhere", `{"_Where":[["Age",">",99]],"Name":"x"}`, 0},
			{"GetTableDataCount", `{"_Where":[["Name","=","old enough"]],"_PageSize":1}`, 3}, {"GetTableDataCount", `{}`, 6}, {"GetTableDataCount", `{"_Where":[["UpdateTime","=","old"]]}`, 3},
			{"DelFormDataByWhere", `{"_Where":[["Name","=","old enough"],["Age","<",24]]}`, 2}, {"DelFormDataByWhere", `{"_Where":[["Age",">",99]]}`, 0},
		} {
			if res := form(t, tx, c.op, "people", c.options); res.Code != 1 || res.DataCount != c.n {
				t.Errorf("%s %s: %+v, want %d", c.op, c.options, res, c.n)
			}
		}
		for _, c := range []struct{ op, options, msg string }{
			{"UptFormDataByWhere", `{"Name":"x"}`, "needs a _Where"}, {"UptFormDataByWhere", `{"_Where":[],"Name":"x"}`, "needs a _Where"}, {"UptFormDataByWhere", `{"_Where":[[]],"Name":"x"}`, "needs a _Where"},
			{"UptFormDataByWhere", `{"_Where":[["Age","=",1]]}`, "no column to change"}, {"DelFormDataByWhere", `{}`, "needs a _Where"}, {"DelFormDataByWhere", `{"_Where":null}`, "needs a _Where"},
			{"DelFormDataByWhere", `{"Id":"p0"}`, "needs a _Where"},
		} {
			_, err := tx.Form(context.Background(), tenantdb.FormCall{Op: c.op, Table: "people", Options: json.RawMessage(c.options)})
			if fault.Of(err) != fault.ScriptError || !strings.Contains(err.Error(), c.msg) {
				t.Errorf("%s %s: %v, want %q", c.op, c.options, err, c.msg)
			}
		}
	})
}

// _Fence writes only over a smaller token.
func TestFence(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		setup(t, db, `CREATE TABLE item (id text PRIMARY KEY, stock int, fence bigint)`)
		tx := begin(t, db, tenantdb.Guard{})
		exec(t, tx, `INSERT INTO item VALUES ('a', 1, NULL), ('b', 1, 41), ('c', 1, 42), ('d', 1, 43)`)
		upt := func(token int64, options string) tenantdb.FormResult {
			t.Helper()
			res, err := tx.Form(context.Background(), tenantdb.FormCall{Op: "UptFormData", Table: "item", Options: json.RawMessage(options), Token: token})
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		for id, want := range map[string]int{"a": 1, "b": 1, "c": 0, "d": 0, "none": 2} {
			if res := upt(42, `{"Id":"`+id+`","stock":2,"_Fence":"Fence"}`); res.Code != want || (res.DataCount == 1) != (want == 1) || want == 0 && !strings.Contains(res.Msg, "fencing token") {
				t.Errorf("%s: %+v, want Code %d", id, res, want)
			}
		}
		if res := upt(42, `{"Id":"new","stock":9,"_Fence":"fence","_NoLineForAdd":1}`); res.Code != 1 || res.DataCount != 1 {
			t.Errorf("added: %+v", res)
		}
		want := `[{"id":"a","stock":2,"fence":42},{"id":"b","stock":2,"fence":42},{"id":"c","stock":1,"fence":42},{"id":"d","stock":1,"fence":43},{"id":"new","stock":9,"fence":42}]`
		if got := query(t, tx, `SELECT * FROM item ORDER BY id`); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for _, c := range []struct {
			token   int64
			options string
			msg     string
		}{{0, `{"Id":"a","stock":3,"_Fence":"fence"}`, "needs a lock"}, {42, `{"Id":"a","stock":3,"_Fence":"fense"}`, "did you mean fence"}, {42, `{"Id":"a","fence":3,"_Fence":"fence"}`, "_Fence sets"}, {42, `{"Id":"a","stock":3,"_Fence":1}`, "_Fence"}} {
			_, err := tx.Form(context.Background(), tenantdb.FormCall{Op: "UptFormData", Table: "item", Options: json.RawMessage(c.options), Token: c.token})
			if fault.Of(err) != fault.ScriptError || !strings.Contains(err.Error(), c.msg) {
				t.Errorf("%s: %v, want %q", c.options, err, c.msg)
			}
		}
	})
}

func TestUpsert(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := people(t, db)
		for _, c := range []struct{ options, want string }{
			{`{"Id":"n1","Name":"new","_NoLineForAdd":true}`, `[{"Name":"new","UserId":"u1"}]`}, {`{"Id":"n1","Name":"again","_NoLineForAdd":"1"}`, `[{"Name":"again","UserId":"u1"}]`},
			{`{"Id":"n2","Name":"x","_NoLineForAdd":false}`, `[]`},
		} {
			form(t, tx, "UptFormData", "people", c.options)
			id := c.options[7:9]
			if got := query(t, tx, `SELECT "Name", "UserId" FROM "People" WHERE "Id" = @id`, "id", id); got != c.want {
				t.Errorf("%s: %s, want %s", c.options, got, c.want)
			}
		}
	})
}
