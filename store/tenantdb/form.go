package tenantdb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"apiengine/store/tenantdb/internal/sqltext"
)

// Who is on whose behalf a row is written.
type Who struct{ UserID, UserName, Tenant string }

// FormCall is one call of V8.FormEngine.
type FormCall struct {
	Op      string          // a name of formOps or batchOps
	Table   string          // in any case; empty: FormEngineKey of Options
	Options json.RawMessage // an object; for a batch an array of objects
	Who     Who
	Token   int64 // the run's fencing token, for _Fence; 0 without a lock
}

// FormResult is the answer {Code, Data, DataCount, Msg}.
type FormResult struct {
	Code      int             // 1 done; 2 no such row; 0 the values were refused, or a newer token was there
	Data      json.RawMessage // a row, or an array of rows; nil: none
	DataCount int64           // rows found in all (GetTableData counts without paging), or rows changed
	Msg       string
}

// form is one call while it is carried out.
type form struct {
	tx   *Tx
	call FormCall
	o    *formOptions
	t    *table
}

// formOps are the operations, with the options that each takes; * stands for values of columns.
var formOps = map[string]struct {
	options []string
	do      func(f *form, ctx context.Context) (FormResult, error)
}{
	"GetFormData": {[]string{"Id", "_Where", "_SelectFields"}, (*form).get},
	"GetTableData": {[]string{"Id", "Ids", "_Where", "_SelectFields", "_PageIndex", "_PageSize", "_OrderBy", "_OrderByType", "_OrderBys"},
		(*form).list},
	"AddFormData": {[]string{"Id", "*", "_NotSaveField"}, (*form).insert},
	"GetTableDataCount": {[]string{"Id", "Ids", "_Where", "_SelectFields", "_PageIndex", "_PageSize", "_OrderBy", "_OrderByType", "_OrderBys"},
		(*form).count},
	"UptFormData":        {[]string{"Id", "*", "_NotSaveField", "_NoLineForAdd", "_ForceUpt", "_Fence"}, (*form).update},
	"UptFormDataByWhere": {[]string{"Id", "Ids", "*", "_Where", "_NotSaveField"}, (*form).updateWhere},
	"DelFormData":        {[]string{"Id", "Ids"}, (*form).remove},
	"DelFormDataByWhere": {[]string{"Id", "Ids", "_Where"}, (*form).removeWhere},
}

// Form runs one FormEngine call. What the author got wrong (an unknown table, column,
// option or operator; a missing Id) is a *SQLError, thrown into the script. What the data
// got wrong (a unique key, a check, a value that does not fit) is an answer with Code 0 and
// the database's message, as scripts of the original platform expect. Every other error is
// as in Query.
func (tx *Tx) Form(ctx context.Context, call FormCall) (FormResult, error) {
	if batchOps[call.Op] != "" {
		return tx.batch(ctx, call)
	}
	op, ok := formOps[call.Op]
	if !ok {
		return FormResult{}, badCall("FormEngine has no %s%s", call.Op, meant(call.Op, slices.Collect(maps.Keys(formOps))))
	}
	o, err := readOptions(call.Op, call.Options, op.options)
	if err != nil {
		return FormResult{}, err
	}
	f := &form{tx: tx, call: call, o: o}
	if f.call.Table == "" {
		f.call.Table = o.key
	}
	if f.call.Table == "" {
		return FormResult{}, badCall("%s needs the name of a table", call.Op)
	}
	for try := 0; ; try++ {
		if f.t, err = tx.table(ctx, f.call.Table); err != nil {
			return FormResult{}, err
		}
		res, err := op.do(f, ctx)
		if err == nil {
			return res, nil
		}
		tx.cache().drop(f.call.Table) // the table may be another than the one remembered
		if c := new(columnError); errors.As(err, &c) && try == 0 {
			continue
		}
		if e := new(SQLError); errors.As(err, &e) && e.Data {
			return FormResult{Code: 0, Msg: e.Msg}, nil
		}
		return FormResult{}, err
	}
}

// run runs the statement and returns its rows, [..], and their number.
func (f *form) run(ctx context.Context, b *builder, e sqltext.Effect) (rows []byte, n int, changed int64, err error) {
	w := f.tx.db.writer(objects)
	changed, err = f.tx.run(ctx, b.statement(e), w)
	if err != nil {
		return nil, 0, 0, err
	}
	return w.json(), w.n, changed, nil
}

func (f *form) builder() *builder { return &builder{g: f.tx.db.g} }

func (f *form) get(ctx context.Context) (FormResult, error) {
	if f.o.id == nil && len(f.o.where) == 0 {
		return FormResult{}, badCall("GetFormData needs an Id or a _Where")
	}
	b := f.builder()
	if err := f.selectFrom(b); err != nil {
		return FormResult{}, err
	}
	if err := f.orderBy(b); err != nil {
		return FormResult{}, err
	}
	rows, n, _, err := f.run(ctx, b.add(" LIMIT 1"), sqltext.Reads)
	if err != nil || n == 0 {
		return noRow(), err
	}
	return FormResult{Code: 1, Data: rows[1 : len(rows)-1], DataCount: 1}, nil
}

func noRow() FormResult { return FormResult{Code: 2, Msg: "no such row"} }

func (f *form) list(ctx context.Context) (FormResult, error) {
	b := f.builder()
	if err := f.selectFrom(b); err != nil {
		return FormResult{}, err
	}
	if err := f.orderBy(b); err != nil {
		return FormResult{}, err
	}
	offset := int64(f.o.page-1) * int64(f.o.size)
	b.add(" LIMIT ").arg(int64(f.o.size)).add(" OFFSET ").arg(offset)
	rows, n, _, err := f.run(ctx, b, sqltext.Reads)
	if err != nil {
		return FormResult{}, err
	}
	res := FormResult{Code: 1, Data: rows, DataCount: offset + int64(n)}
	if n == f.o.size || n == 0 && offset > 0 { // else this page is the last one, and the total known
		res.DataCount, err = f.total(ctx)
	}
	return res, err
}

// count is GetTableDataCount; paging and order are taken and change nothing.
func (f *form) count(ctx context.Context) (FormResult, error) {
	n, err := f.total(ctx)
	if err != nil {
		return FormResult{}, err
	}
	return FormResult{Code: 1, Data: appendInt(nil, n), DataCount: n}, nil
}

func (f *form) total(ctx context.Context) (int64, error) {
	b := f.builder().add("SELECT count(*) AS n FROM ", quote(f.t.name))
	if err := f.whereClause(b); err != nil {
		return 0, err
	}
	rows, _, _, err := f.run(ctx, b, sqltext.Reads)
	if err != nil {
		return 0, err
	}
	var out []struct{ N int64 }
	if err := json.Unmarshal(rows, &out); err != nil {
		return 0, err
	}
	return out[0].N, nil
}

func (f *form) selectFrom(b *builder) error {
	b.add("SELECT ")
	if err := f.outputs(b, f.o.fields); err != nil {
		return err
	}
	b.add(" FROM ", quote(f.t.name))
	return f.whereClause(b)
}

// standard are the columns that the platform fills, spelled as scripts do.
var standard = []string{"Id", "CreateTime", "UpdateTime", "UserId", "UserName", "OsClient"}

// outputs writes the columns of the result: those named or all, each under one name
// whoever asks.
func (f *form) outputs(b *builder, fields []string) error {
	if len(fields) == 0 {
		for i, c := range f.t.columns {
			b.add(map[bool]string{true: ", "}[i > 0], quote(c.name), " AS ", quote(f.spelled(c.name, "")))
		}
		return nil
	}
	for i, name := range fields {
		c, ok := f.t.column(name)
		if !ok {
			return f.t.unknownColumn(name)
		}
		b.add(map[bool]string{true: ", "}[i > 0], quote(c.name), " AS ", quote(f.spelled(c.name, name)))
	}
	return nil
}

// spelled is the name of a column in a row: the table's own, so that every caller finds the
// value under the same name. The standard columns are spelled as scripts do, and where
// PostgreSQL has folded a name to lower case the caller's spelling (asked, or that of a value
// given) stands for the one that the schema's author wrote and the database has forgotten.
func (f *form) spelled(name, asked string) string {
	for _, s := range standard {
		if strings.EqualFold(s, name) {
			return s
		}
	}
	if f.tx.db.g.dialect != sqltext.Postgres || name != strings.ToLower(name) {
		return name
	}
	for _, v := range f.o.values {
		if strings.EqualFold(v.name, name) {
			return v.name
		}
	}
	return cmp.Or(asked, name)
}

func (f *form) key() (column, error) {
	c, ok := f.t.column("Id")
	if !ok {
		return c, f.t.unknownColumn("Id")
	}
	return c, nil
}

// whereClause joins Id, Ids and _Where by AND.
func (f *form) whereClause(b *builder) error {
	sep := " WHERE "
	if f.o.id != nil || f.o.hasIDs {
		key, err := f.key()
		if err != nil {
			return err
		}
		if f.o.id != nil {
			b.add(sep, quote(key.name), " = ").arg(f.o.id)
			sep = " AND "
		}
		if f.o.hasIDs {
			b.add(sep)
			b.inValues(quote(key.name), false, f.o.ids)
			sep = " AND "
		}
	}
	if len(f.o.where) == 0 {
		return nil
	}
	b.add(sep, "(")
	if err := b.where(f.t, f.o.where); err != nil {
		return err
	}
	b.add(")")
	return nil
}

// orderBy ends with the key, so that pages never overlap.
func (f *form) orderBy(b *builder) error {
	sep, hasKey := " ORDER BY ", false
	key, keyed := f.t.column("Id")
	for _, o := range f.o.orders {
		c, ok := f.t.column(o.field)
		if !ok {
			return f.t.unknownColumn(o.field)
		}
		b.add(sep, quote(c.name), map[bool]string{true: " DESC"}[o.desc])
		sep, hasKey = ", ", hasKey || c.name == key.name
	}
	if keyed && !hasKey {
		b.add(sep, quote(key.name))
	}
	return nil
}
