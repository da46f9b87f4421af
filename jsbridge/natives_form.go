package jsbridge

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

type formArgs struct {
	Table   orStored   `js:"table"`
	Options orStored   `js:"options,optional"`
	Trans   inDatabase `js:"trans,optional"`
}

// target is the database of a call.
func (in formArgs) target(fn string) (inDatabase, error) {
	if _, named := in.Table.value.(string); named {
		switch {
		case !in.Options.given:
			return in.Trans, nil
		case in.Trans.given:
			return in.Trans, argErrorf("V8.%s: two databases are given", fn)
		}
		return in.Options.inDatabase, nil
	}
	return in.Options.afterObject(fn, in.Trans)
}

// unstorable is the answer to values that no column can hold.
func (in formArgs) unstorable() (FormResult, bool) {
	msg := cmp.Or(in.Table.refused, in.Options.refused)
	return FormResult{Msg: msg}, msg != ""
}

// batchArgs are formArgs of a row that takes a list.
type batchArgs struct {
	Table   orStored   `js:"table"`
	Options orStored   `js:"rows,optional"`
	Trans   inDatabase `js:"trans,optional"`
}

// formFn is a FormEngine row in both call forms: (table, options[, V8.DbTrans]) and
// ({FormEngineKey, ...}[, V8.DbTrans]). V8.Dbs.<name> in the place of V8.DbTrans runs it there.
func formFn(op, doc string) Func {
	fn := "FormEngine." + op
	return hostFn(fn, doc, func(c *Call, in formArgs) (any, error) {
		return c.form(op, in, func() (string, json.RawMessage, error) {
			return keyAndObject(fn, "FormEngineKey", in.Table.value, in.Options.value)
		})
	})
}

// batchFn is a FormEngine row that takes a list, in both call forms: (table, rows[, trans])
// and ([{FormEngineKey, ...}, ...][, trans]).
func batchFn(op, doc string) Func {
	fn := "FormEngine." + op
	return hostFn(fn, doc, func(c *Call, in batchArgs) (any, error) {
		return c.form(op, formArgs(in), func() (string, json.RawMessage, error) {
			table, named := in.Table.value.(string)
			rows := in.Options.value
			if !named {
				rows = in.Table.value // what follows is V8.DbTrans
			}
			list, ok := rows.(json.RawMessage)
			if !ok || !strings.HasPrefix(string(list), "[") {
				return "", nil, argErrorf("V8.%s takes a table and an array of rows, or an array of rows with FormEngineKey", fn)
			}
			return table, list, nil
		})
	})
}

// form runs a row with what read makes of its arguments, in the database that they name.
func (c *Call) form(op string, in formArgs, read func() (table string, options json.RawMessage, err error)) (any, error) {
	if res, bad := in.unstorable(); bad {
		return res, nil
	}
	table, options, err := read()
	if err != nil {
		return nil, err
	}
	to, err := in.target("FormEngine." + op)
	if err != nil {
		return nil, err
	}
	db, err := c.database(dbHandle{name: to.name})
	if err != nil {
		return nil, err
	}
	defer c.databaseTime(time.Now())
	return db.Form(c, op, table, options)
}

func formFuncs() []Func {
	rows := []Func{
		formFn("GetFormData", "the row with options.Id, or the first for options._Where; Code 2 when there is none"),
		formFn("GetTableData", "the rows for _Where, _OrderBy, _PageIndex, _PageSize (1000 unless given, at most 5000); DataCount is their number without paging"),
		formFn("GetTableDataCount", "the number of rows for _Where, in DataCount and Data"),
		formFn("AddFormData", "inserts a row and returns it; Id, CreateTime, UpdateTime, UserId, UserName and OsClient are filled where they exist and are not given"),
		formFn("UptFormData", "changes the row with options.Id; _NoLineForAdd adds it when it is not there; _Fence: 'column' writes only where that column is smaller than the run's fencing token, and sets it (else Code 0, DataCount 0)"),
		formFn("UptFormDataByWhere", "changes the rows for _Where, which must not be empty; DataCount is their number, 0 too"),
		formFn("DelFormData", "deletes the row with options.Id, or those of options.Ids"),
		formFn("DelFormDataByWhere", "deletes the rows for _Where, which must not be empty; DataCount is their number, 0 too"),
	}
	for _, b := range []struct{ op, alias, doc string }{
		{"AddTableData", "AddFormDataBatch", "inserts all rows or none, and returns them"},
		{"UptTableData", "UptFormDataBatch", "changes the rows by their Ids, all or none"},
		{"DelTableData", "DelFormDataBatch", "deletes the rows by their Ids; one that is not there is no failure"},
	} {
		rows = append(rows, batchFn(b.op, b.doc), batchFn(b.alias, b.op))
	}
	return rows
}
