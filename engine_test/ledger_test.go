package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing/fstest"
)

func ledgerAPIs() fstest.MapFS {
	return fstest.MapFS{
		"schema/0001_ledger.sql": {Data: []byte("-- +goose Up\nCREATE TABLE ledger (id TEXT, run INT);\n-- +goose Down\nDROP TABLE ledger;\n")},
		"book.js": js("Lock: true\nLockKey: Account\nTimeout: 10", `V8.Db.FromSql('INSERT INTO ledger VALUES (@p0, 1)').AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery();
return { Code: 1, Data: V8.Param.Id + ' ' + NewGuid() };`),
	}
}

// book sends one keyed call; an error is a connection that broke.
func (n *node) book(ctx context.Context, id string) (answer, error) {
	body, _ := json.Marshal(map[string]any{"Id": id, "Account": len(id) % 3})
	req, err := http.NewRequestWithContext(ctx, "POST", n.URL+"/apiengine/book", strings.NewReader(string(body)))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", id)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	a := answerOf(res)
	if int64(len(a.Body)) != res.ContentLength {
		return a, fmt.Errorf("the answer was cut off")
	}
	return a, nil
}
