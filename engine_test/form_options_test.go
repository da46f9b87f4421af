package engine_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

const itemTable = `-- +goose Up
CREATE TABLE item ("Id" VARCHAR(40) PRIMARY KEY, "Name" VARCHAR(40), "Qty" BIGINT, "Token" BIGINT, "UserName" VARCHAR(40));
INSERT INTO item ("Id", "Name", "Qty", "Token") VALUES ('a', 'ann', 1, NULL), ('b', 'bob', 2, 5), ('c', 'cat', 3, NULL), ('d', NULL, 4, NULL);
-- +goose Down
DROP TABLE item;
`

// what a script sees after a call: the answer without the row, and the table's rows.
const seen = `var rest = V8.Db.FromSql('SELECT "Id", "Name", "Qty" FROM item ORDER BY "Id"').ToArray().map(function (x) { return x.Id + ':' + x.Name + ':' + x.Qty; }).join(' ');
return { Code: 0, Data: [r.Code, r.DataCount, r.Data === undefined ? '-' : Array.isArray(r.Data) ? r.Data.map(function (x) { return x.Id || x.Name; }).join('') : r.Data.Id || r.Data, rest === V8.Param.Before ? 'same' : rest].join(' | ') };`

const allItems = "a:ann:1 b:bob:2 c:cat:3 d:null:4"

// formCalls are the methods of V8.FormEngine with their options, what comes back (Code,
// DataCount, the Ids) and the rows after it where they changed. Each runs in every form
// that it has, and is rolled back.
var formCalls = []struct{ op, options, want string }{
	{"GetFormData", `{ Id: 'b' }`, "1 | 1 | b | same"},
	{"GetFormData", `{ id: 'b', _SelectFields: ['Id'] }`, "1 | 1 | b | same"},
	{"GetFormData", `{ _Where: [['Name', '=', 'cat']], _SelectFields: 'Id,Qty' }`, "1 | 1 | c | same"},
	{"GetFormData", `{ Id: 'b', _Where: [{ Name: 'Qty', Value: 3 }] }`, "2 | 0 | - | same"},
	{"GetFormData", `{ Id: 'zz', OsClient: V8.OsClient, _InvokeType: 'Server' }`, "2 | 0 | - | same"},
	{"GetTableData", `{}`, "1 | 4 | abcd | same"},
	{"GetTableData", `{ Ids: ['d', 'a'], _OrderBy: 'Qty', _OrderByType: 'DESC' }`, "1 | 2 | da | same"},
	{"GetTableData", `{ _OrderBy: 'Qty desc', _PageSize: 3 }`, "1 | 4 | dcb | same"},
	{"GetTableData", `{ _OrderBys: { Token: 'asc', Qty: 'desc' }, _Where: [['Token', '=', null]] }`, "1 | 3 | dca | same"},
	{"GetTableData", `{ _OrderBys: [{ Qty: 'desc' }], _PageIndex: 2, _PageSize: 3 }`, "1 | 4 | a | same"},
	{"GetTableData", `{ _OrderBy: 'Name', _OrderByType: 'asc', _Where: [['Name', '<>', null]], _PageIndex: '1', _PageSize: '2' }`, "1 | 3 | ab | same"},
	{"GetTableData", `{ _Where: [['Qty', '>', 1], ['AND', '(', 'Name', '=', 'bob'], ['OR', 'Name', '=', null, ')']] }`, "1 | 2 | bd | same"},
	{"GetTableData", `{ _Where: [{ Name: 'Qty', Value: 1, Type: '>' }, { AndOr: 'AND', GroupStart: true, Name: 'Name', Value: 'bob', Type: 'Equal' }, { AndOr: 'OR', Name: 'Name', Value: null, Type: '=', GroupEnd: true }] }`, "1 | 2 | bd | same"},
	{"GetTableData", `{ _Where: V8.Method.ParseWhere([['Qty', 'In', [1, 3]], ['Name', 'StartLike', 'c']]) }`, "1 | 1 | c | same"},
	{"GetTableDataCount", `{ _Where: [['Qty', '>=', 2]], _PageSize: 1, _OrderBy: 'Qty' }`, "1 | 3 | 3 | same"},
	{"AddFormData", `{ Id: 'n', Name: 'new', Qty: 9 }`, "1 | 1 | n | " + allItems + " n:new:9"},
	{"AddFormData", `{ Id: 'n', name: 'new', Qty: 9, _NotSaveField: ['Qty'] }`, "1 | 1 | n | " + allItems + " n:new:null"},
	{"AddFormData", `{ Id: 'a', Name: 'twice' }`, "0 | 0 | - | same"},
	{"UptFormData", `{ Id: 'a', Name: 'changed', _NotSaveField: 'Qty', Qty: 99 }`, "1 | 1 | - | a:changed:1 b:bob:2 c:cat:3 d:null:4"},
	{"UptFormData", `{ Id: 'a', Name: null, _ForceUpt: true }`, "1 | 1 | - | a:null:1 b:bob:2 c:cat:3 d:null:4"},
	{"UptFormData", `{ Id: 'zz', Qty: 1 }`, "2 | 0 | - | same"},
	{"UptFormData", `{ Id: 'zz', Qty: 1, _NoLineForAdd: true }`, "1 | 1 | zz | " + allItems + " zz:null:1"},
	{"UptFormData", `{ Id: 'a', Qty: 7, _NoLineForAdd: true }`, "1 | 1 | - | a:ann:7 b:bob:2 c:cat:3 d:null:4"},
	{"UptFormData", `{ Id: 'zz', Qty: 1, _NoLineForAdd: 0 }`, "2 | 0 | - | same"},
	{"UptFormData", `{ Id: 'a', Qty: 7, _Fence: 'Token' }`, "1 | 1 | - | a:ann:7 b:bob:2 c:cat:3 d:null:4"},
	{"UptFormData", `{ Id: 'b', Qty: 7, _Fence: 'Token' }`, "FENCE"},
	{"UptFormData", `{ Id: 'f', Qty: 7, _Fence: 'Token', _NoLineForAdd: true }`, "1 | 1 | f | " + allItems + " f:null:7"},
	{"UptFormData", `{ Id: 'f', Qty: 7, _Fence: 'Token' }`, "2 | 0 | - | same"},
	{"UptFormDataByWhere", `{ _Where: [['Qty', '>', 2]], Name: 'many' }`, "1 | 2 | - | a:ann:1 b:bob:2 c:many:3 d:many:4"},
	{"UptFormDataByWhere", `{ _Where: { Name: 'Name', Value: 'bob' }, Ids: ['a', 'b'], Qty: 0, _NotSaveField: ['Name'], Name: 'x' }`, "1 | 1 | - | a:ann:1 b:bob:0 c:cat:3 d:null:4"},
	{"UptFormDataByWhere", `{ _Where: [['Id', '=', 'zz']], Name: 'none' }`, "1 | 0 | - | same"},
	{"DelFormData", `{ Id: 'a' }`, "1 | 1 | - | b:bob:2 c:cat:3 d:null:4"},
	{"DelFormData", `{ Ids: ['a', 'd', 'zz'] }`, "1 | 2 | - | b:bob:2 c:cat:3"},
	{"DelFormData", `{ Id: 'zz' }`, "2 | 0 | - | same"},
	{"DelFormDataByWhere", `{ _Where: [['Qty', '<', 3], ['OR', 'Name', '=', null]] }`, "1 | 3 | - | c:cat:3"},
	{"DelFormDataByWhere", `{ _Where: [['Id', '=', 'zz']] }`, "1 | 0 | - | same"},
	{"AddTableData", `[{ Id: 'x', Name: 'one' }, { Id: 'y', Qty: 8 }]`, "1 | 2 | xy | " + allItems + " x:one:null y:null:8"},
	{"AddFormDataBatch", `[{ Id: 'x', Name: 'one' }]`, "1 | 1 | x | " + allItems + " x:one:null"},
	{"AddTableData", `[{ Id: 'x' }, { Id: 'a' }]`, "0 | 0 | - | same"},
	{"UptTableData", `[{ Id: 'a', Qty: 10 }, { Id: 'b', Name: 'B' }]`, "1 | 2 | - | a:ann:10 b:B:2 c:cat:3 d:null:4"},
	{"UptFormDataBatch", `[{ Id: 'a', Qty: 10 }, { Id: 'new', Qty: 1, _NoLineForAdd: true }]`, "1 | 2 | - | a:ann:10 b:bob:2 c:cat:3 d:null:4 new:null:1"},
	{"UptTableData", `[{ Id: 'a', Qty: 10 }, { Id: 'zz', Qty: 1 }]`, "2 | 0 | - | same"},
	{"DelTableData", `[{ Id: 'a' }, { Ids: ['b', 'zz'] }, { Id: 'zz' }]`, "1 | 2 | - | c:cat:3 d:null:4"},
	{"DelFormDataBatch", `[{ Id: 'd' }]`, "1 | 1 | - | a:ann:1 b:bob:2 c:cat:3"},
}

// forms are the ways to write a call of op with options.
func formsOf(op, options string) []string {
	f := "V8.FormEngine." + op
	list := strings.HasPrefix(options, "[")
	named := "Object.assign({ FormEngineKey: 'ITEM' }, " + options + ")"
	if list {
		named = options + ".map(function (x) { return Object.assign({ FormEngineKey: 'Item' }, x); })"
	}
	return []string{f + "('item', " + options + ")", f + "('Item', " + options + ", V8.DbTrans)", f + "(" + named + ")", f + "(" + named + ", V8.DbTrans)",
		"await " + f + "Async('item', " + options + ")"}
}

// TestFormOptions: every method of V8.FormEngine in every form of its call, with every
// option, on both databases.
func TestFormOptions(t *testing.T) {
	for _, p := range pairsWith {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			files, calls := fstest.MapFS{"schema/0001_item.sql": {Data: []byte(itemTable)}}, map[string]string{}
			for i, c := range formCalls {
				for j, form := range formsOf(c.op, c.options) {
					name := fmt.Sprintf("f%dx%d", i, j)
					code := "var r = " + form + ";\n" + seen
					want := c.want
					if want == "FENCE" { // the row gets a newer token than the run's before it
						code = "V8.Db.FromSql('UPDATE item SET \"Token\" = @p WHERE \"Id\" = @i').AddInParameter('p', V8.FencingToken).AddInParameter('i', 'b').ExecuteNonQuery();\n" + code
						want = "0 | 0 | - | same"
					}
					files[name+".js"], calls[name] = js("Lock: true\nLockScope: s", code), want
				}
			}
			h.load(t, tenant, fs.FS(files))
			for name, want := range calls {
				if a := h.do(tenant, "POST", "/apiengine/"+name, `{"Before":"`+allItems+`"}`); a.JSON.Data != want {
					t.Errorf("%s\n got %d %s\nwant %s", files[name+".js"].Data, a.Status, a.Body, want)
				}
			}
		})
	}
}
