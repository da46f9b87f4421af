package tenantdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"
)

// maxBatch is how many entries one batch call may have.
const maxBatch = 5000

// batchOps are the calls that take a list, with the call that each entry is.
var batchOps = map[string]string{
	"AddTableData": "AddFormData", "AddFormDataBatch": "AddFormData",
	"UptTableData": "UptFormData", "UptFormDataBatch": "UptFormData",
	"DelTableData": "DelFormData", "DelFormDataBatch": "DelFormData",
}

// batch carries out every entry, or none: the first that fails undoes those before it.
// An entry to delete that is not there is no failure, one to change is.
func (tx *Tx) batch(ctx context.Context, call FormCall) (FormResult, error) {
	if !gjson.ValidBytes(call.Options) || !gjson.ParseBytes(call.Options).IsArray() {
		return FormResult{}, badCall("%s needs an array of rows", call.Op)
	}
	entries := gjson.ParseBytes(call.Options).Array()
	if len(entries) > maxBatch {
		return FormResult{}, badCall("%s has %d rows, at most %d are allowed in one call", call.Op, len(entries), maxBatch)
	}
	save, err := tx.Savepoint(ctx)
	if err != nil {
		return FormResult{}, err
	}
	res, err := tx.entries(ctx, call, entries)
	if err != nil || res.Code != 1 {
		if undone := tx.RollbackTo(ctx, save); undone != nil {
			return FormResult{}, errors.Join(err, undone)
		}
	}
	if e := new(SQLError); err == nil || errors.As(err, &e) {
		if released := tx.ReleaseSavepoint(ctx, save); released != nil {
			return FormResult{}, released
		}
	}
	return res, err
}

func (tx *Tx) entries(ctx context.Context, call FormCall, entries []gjson.Result) (FormResult, error) {
	total := FormResult{Code: 1}
	rows := []byte{'['}
	for i, e := range entries {
		if !e.IsObject() {
			return FormResult{}, badCall("%s, row %d: %s is no row; give an object", call.Op, i, clipped(e.Raw))
		}
		one := call
		one.Op, one.Options = batchOps[call.Op], json.RawMessage(e.Raw)
		res, err := tx.Form(ctx, one)
		if s := new(SQLError); errors.As(err, &s) {
			return FormResult{}, &SQLError{Msg: fmt.Sprintf("%s, row %d: %s", call.Op, i, s.Msg), Code: s.Code, Cause: err}
		}
		if err != nil {
			return FormResult{}, err
		}
		if res.Code == 0 || res.Code == 2 && one.Op == "UptFormData" {
			return FormResult{Code: res.Code, Msg: fmt.Sprintf("row %d: %s; nothing of the batch was written", i, res.Msg)}, nil
		}
		total.DataCount += res.DataCount
		if len(rows) > 1 {
			rows = append(rows, ',')
		}
		rows = append(rows, res.Data...)
		if len(rows) > tx.db.limits.bytes {
			return FormResult{}, tooLarge("bytes", tx.db.limits.bytes)
		}
	}
	if batchOps[call.Op] == "AddFormData" {
		total.Data = append(rows, ']')
	}
	return total, nil
}
