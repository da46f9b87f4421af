package tenantdb

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgQuery turns a statement's values into text. A number with a fraction is numeric, as a
// literal would be; everything else has no type, so that the column's is taken.
func pgQuery(st statement) (pgStatement, error) {
	q := pgStatement{sql: st.SQL, args: make([][]byte, len(st.Args)), oids: make([]uint32, len(st.Args))}
	for i, a := range st.Args {
		switch v := a.(type) {
		case bool:
			q.args[i] = strconv.AppendBool(nil, v)
		case int64:
			q.args[i] = strconv.AppendInt(nil, v, 10)
		case float64:
			q.args[i] = strconv.AppendFloat(nil, v, 'g', -1, 64)
			q.oids[i] = pgtype.NumericOID
		case string:
			if strings.IndexByte(v, 0) >= 0 {
				return q, badCall("a parameter holds a NUL character, which PostgreSQL cannot store")
			}
			q.args[i] = []byte(v)
		case []byte:
			q.args[i] = hex.AppendEncode([]byte(`\x`), v)
			q.oids[i] = pgtype.ByteaOID
		}
	}
	return q, nil
}

// typeUnknown gives the parameter that PostgreSQL could not find a type for (`$1 IS NULL`)
// the one of its value, and reports whether that makes another attempt worth while.
func (q pgStatement) typeUnknown(st statement, err error) bool {
	e := new(pgconn.PgError)
	if !errors.As(err, &e) || e.Code != pgerrIndeterminate || st.platform {
		return false
	}
	digits := strings.TrimLeft(e.Message[strings.LastIndexByte(e.Message, '$')+1:], " ")
	n, _ := strconv.Atoi(digits)
	if n < 1 || n > len(q.oids) || q.oids[n-1] != 0 {
		return false
	}
	q.oids[n-1] = pgtype.TextOID
	switch st.Args[n-1].(type) {
	case bool:
		q.oids[n-1] = pgtype.BoolOID
	case int64:
		q.oids[n-1] = pgtype.Int8OID
	}
	return true
}

// pgerrIndeterminate is indeterminate_datatype.
const pgerrIndeterminate = "42P18"

