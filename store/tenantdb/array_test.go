package tenantdb

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/tidwall/gjson"
)

// FuzzArray: whatever text PostgreSQL gives for an array, JSON comes out; and texts in a
// JSON array go through PostgreSQL's form and back.
func FuzzArray(f *testing.F) {
	for _, s := range []string{`{1,NULL,"a\"b",{2}}`, `{}`, `{`, `{"`, `{"\`, `[0:1]={t,f}`, `{a,}`, `["x","",null,"{,}","NULL","\\"]`, `[["a"],["b"]]`, `{{{`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, oid := range []uint32{pgtype.TextOID, pgtype.Int8OID, pgtype.ByteaOID, pgtype.BoolOID, pgtype.TimestampOID} {
			if out := appendArray(nil, oid, []byte(text)); !json.Valid(out) {
				t.Fatalf("%q of %d became %s", text, oid, out)
			}
		}
		var list []*string
		if json.Unmarshal([]byte(text), &list) != nil || list == nil {
			return
		}
		var back []*string
		out := appendArray(nil, pgtype.TextOID, []byte(pgArray(gjson.Parse(text))))
		if err := json.Unmarshal(out, &back); err != nil || len(back) != len(list) {
			t.Fatalf("%q came back as %s, %v", text, out, err)
		}
		for i := range list {
			if (list[i] == nil) != (back[i] == nil) || list[i] != nil && gjson.Parse(text).Array()[i].Str != *back[i] && *list[i] != *back[i] {
				t.Fatalf("%q came back as %s", text, out)
			}
		}
	})
}
