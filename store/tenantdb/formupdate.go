package tenantdb

import (
	"context"
	"errors"
	"time"

	"apiengine/store/tenantdb/internal/sqltext"
)

// update is UptFormData. With _Fence it writes only over a smaller token; with
// _NoLineForAdd a row that is not there is added.
func (f *form) update(ctx context.Context) (FormResult, error) {
	if f.o.id == nil {
		return FormResult{}, badCall("%s needs an Id", f.call.Op)
	}
	key, err := f.key()
	if err != nil {
		return FormResult{}, err
	}
	set, err := f.changes()
	if err != nil {
		return FormResult{}, err
	}
	fence, err := f.fence(set)
	if err != nil {
		return FormResult{}, err
	}
	n, err := f.updateRow(ctx, key, set, fence)
	switch {
	case err != nil || n > 0:
		return FormResult{Code: 1, DataCount: n}, err
	case !f.o.addMissing && fence == nil:
		return noRow(), nil
	}
	return f.missed(ctx, key, set, fence)
}

// changes are the values to set, with the time of the change.
func (f *form) changes() ([]columnValue, error) {
	set, err := f.assignments()
	if err != nil {
		return nil, err
	}
	if len(set) == 0 {
		return nil, badCall("%s names no column to change", f.call.Op)
	}
	if c, ok := f.t.column("UpdateTime"); ok && !assigned(set, c) {
		if now, ok := timeFor(c.typ, time.Now()); ok {
			set = replaced(set, columnValue{c, now})
		}
	}
	return set, nil
}

// fence is the column of _Fence with the run's token; nil without the option.
func (f *form) fence(set []columnValue) (*columnValue, error) {
	if f.o.fence == "" {
		return nil, nil
	}
	c, ok := f.t.column(f.o.fence)
	switch {
	case !ok:
		return nil, f.t.unknownColumn(f.o.fence)
	case f.call.Token <= 0:
		return nil, badCall("%s: _Fence needs a lock, and this run holds none (Lock: true)", f.call.Op)
	case assigned(set, c):
		return nil, badCall("%s gives a value for %s, which _Fence sets", f.call.Op, c.name)
	}
	return &columnValue{c, f.call.Token}, nil
}

func (f *form) updateRow(ctx context.Context, key column, set []columnValue, fence *columnValue) (int64, error) {
	if fence != nil {
		set = replaced(set, *fence)
	}
	b := f.builder()
	f.updateSet(b, set)
	b.add(" WHERE ", quote(key.name), " = ").arg(f.o.id)
	if fence != nil { // a row that was never fenced has null
		b.add(" AND COALESCE(", quote(fence.name), ", 0) < ").arg(fence.value)
	}
	_, _, n, err := f.run(ctx, b, sqltext.Writes)
	return n, err
}

func (f *form) updateSet(b *builder, set []columnValue) {
	b.add("UPDATE ", quote(f.t.name), " SET ")
	for i, s := range set {
		b.add(map[bool]string{true: ", "}[i > 0], quote(s.name), " = ").arg(s.value)
	}
}

// missed finds out why no row was changed, and adds the row where that is wanted.
func (f *form) missed(ctx context.Context, key column, set []columnValue, fence *columnValue) (FormResult, error) {
	if fence != nil {
		b := f.builder().add("SELECT 1 FROM ", quote(f.t.name), " WHERE ", quote(key.name), " = ").arg(f.o.id)
		_, n, _, err := f.run(ctx, b, sqltext.Reads)
		switch {
		case err != nil:
			return FormResult{}, err
		case n > 0:
			return FormResult{Code: 0, Msg: "not written: " + fence.name + " already has this run's fencing token or a newer one"}, nil
		case !f.o.addMissing:
			return noRow(), nil
		}
		set = replaced(set, *fence)
	}
	res, err := f.insertRow(ctx, append(set, columnValue{key, f.o.id}))
	if e := new(SQLError); errors.As(err, &e) && e.Data { // another run may have added it meanwhile
		if n, again := f.updateRow(ctx, key, set, fence); again == nil && n > 0 {
			return FormResult{Code: 1, DataCount: n}, nil
		}
	}
	return res, err
}

// updateWhere is UptFormDataByWhere.
func (f *form) updateWhere(ctx context.Context) (FormResult, error) {
	if len(f.o.where) == 0 {
		return FormResult{}, badCall("%s needs a _Where; without one it would change every row", f.call.Op)
	}
	set, err := f.changes()
	if err != nil {
		return FormResult{}, err
	}
	b := f.builder()
	f.updateSet(b, set)
	if err := f.whereClause(b); err != nil {
		return FormResult{}, err
	}
	return f.counted(ctx, b)
}
