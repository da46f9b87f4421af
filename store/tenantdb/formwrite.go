package tenantdb

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"

	"apiengine/store/tenantdb/internal/sqltext"
)

// columnValue is a value for a column that exists.
type columnValue struct {
	column
	value any
}

func (f *form) insert(ctx context.Context) (FormResult, error) {
	set, err := f.assignments()
	if err != nil {
		return FormResult{}, err
	}
	if f.o.id != nil {
		key, err := f.key()
		if err != nil {
			return FormResult{}, err
		}
		set = append(set, columnValue{key, f.o.id})
	}
	return f.insertRow(ctx, set)
}

func (f *form) insertRow(ctx context.Context, set []columnValue) (FormResult, error) {
	set = f.filled(set, time.Now())
	b := f.builder().add("INSERT INTO ", quote(f.t.name))
	if len(set) == 0 {
		b.add(" DEFAULT VALUES")
	} else {
		b.insertValues(set)
	}
	b.add(" RETURNING ")
	if err := f.outputs(b, nil); err != nil {
		return FormResult{}, err
	}
	rows, n, _, err := f.run(ctx, b, sqltext.Writes)
	if err != nil {
		return FormResult{}, err
	}
	if n == 0 { // a trigger or rule of the tenant's dropped it
		return FormResult{Code: 0, Msg: "the database did not insert the row"}, nil
	}
	return FormResult{Code: 1, Data: rows[1 : len(rows)-1], DataCount: 1}, nil
}

func (f *form) remove(ctx context.Context) (FormResult, error) {
	if f.o.id == nil && !f.o.hasIDs {
		return FormResult{}, badCall("DelFormData needs an Id or Ids")
	}
	b := f.builder().add("DELETE FROM ", quote(f.t.name))
	if err := f.whereClause(b); err != nil {
		return FormResult{}, err
	}
	return f.changed(ctx, b)
}

// removeWhere is DelFormDataByWhere.
func (f *form) removeWhere(ctx context.Context) (FormResult, error) {
	if len(f.o.where) == 0 {
		return FormResult{}, badCall("%s needs a _Where; without one it would change every row", f.call.Op)
	}
	b := f.builder().add("DELETE FROM ", quote(f.t.name))
	if err := f.whereClause(b); err != nil {
		return FormResult{}, err
	}
	return f.counted(ctx, b)
}

// counted is the answer of a ByWhere call: that no row met the conditions is a result.
func (f *form) counted(ctx context.Context, b *builder) (FormResult, error) {
	_, _, n, err := f.run(ctx, b, sqltext.Writes)
	return FormResult{Code: 1, DataCount: n}, err
}

func (f *form) changed(ctx context.Context, b *builder) (FormResult, error) {
	_, _, n, err := f.run(ctx, b, sqltext.Writes)
	if err != nil || n == 0 {
		return noRow(), err
	}
	return FormResult{Code: 1, DataCount: n}, nil
}

// assignments are the values given, for columns that exist, less _NotSaveField.
func (f *form) assignments() ([]columnValue, error) {
	var set []columnValue
	for _, v := range f.o.values {
		if slices.ContainsFunc(f.o.notSave, func(n string) bool { return strings.EqualFold(n, v.name) }) {
			continue
		}
		c, ok := f.t.column(v.name)
		switch {
		case !ok && v.name == "OsClient": // given for the tenant, as everywhere
			continue
		case !ok:
			return nil, f.t.unknownColumn(v.name)
		case assigned(set, c):
			return nil, badCall("%s gives the column %s twice", f.call.Op, c.name)
		}
		value, err := f.fit(c, v.value)
		if err != nil {
			return nil, err
		}
		set = append(set, columnValue{c, value})
	}
	return set, nil
}

func assigned(set []columnValue, c column) bool {
	return slices.ContainsFunc(set, func(s columnValue) bool { return s.name == c.name && s.value != nil })
}

// filled adds the standard columns that exist and were given no value.
func (f *form) filled(set []columnValue, now time.Time) []columnValue {
	for _, name := range standard {
		c, ok := f.t.column(name)
		if !ok || assigned(set, c) {
			continue
		}
		v, ok := f.fill(name, c, now)
		if !ok {
			continue
		}
		set = replaced(set, columnValue{c, v})
	}
	return set
}

// replaced is set with v in place of what was there for its column, a null.
func replaced(set []columnValue, v columnValue) []columnValue {
	set = slices.DeleteFunc(set, func(s columnValue) bool { return s.name == v.name })
	return append(set, v)
}

func (f *form) fill(name string, c column, now time.Time) (any, bool) {
	who := f.call.Who
	switch name {
	case "Id":
		return newID(c.typ)
	case "CreateTime", "UpdateTime":
		return timeFor(c.typ, now)
	case "UserId":
		return who.UserID, who.UserID != ""
	case "UserName":
		return who.UserName, who.UserName != ""
	case "OsClient":
		return who.Tenant, who.Tenant != ""
	}
	return nil, false
}

// newID is a ULID, as 128 bits where the column wants a uuid; a number is the database's
// own to give.
func newID(typ string) (any, bool) {
	switch {
	case typ == "uuid":
		return uuid.UUID(ulid.Make()).String(), true
	case isNumeric(typ):
		return nil, false
	}
	return ulid.Make().String(), true
}

// timeFor is the time as a column of that type takes it: the server's local time, as the
// original platform writes it, with its offset where the column is an instant.
func timeFor(typ string, t time.Time) (any, bool) {
	switch {
	case typ == "timestamptz":
		return t.Format(time.RFC3339Nano), true
	case typ == "date":
		return t.Format(time.DateOnly), true
	case isNumeric(typ):
		return nil, false
	}
	return t.Format(time.DateTime), true
}

func isNumeric(typ string) bool {
	for _, part := range []string{"int", "real", "floa", "doub", "num", "dec", "serial"} {
		if strings.Contains(typ, part) {
			return true
		}
	}
	return false
}

func (b *builder) insertValues(set []columnValue) {
	b.add(" (")
	for i, s := range set {
		b.add(map[bool]string{true: ", "}[i > 0], quote(s.name))
	}
	b.add(") VALUES (")
	for i, s := range set {
		b.add(map[bool]string{true: ", "}[i > 0]).arg(s.value)
	}
	b.add(")")
}
