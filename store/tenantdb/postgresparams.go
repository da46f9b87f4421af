package tenantdb

import (
	"encoding/hex"
	"errors"
	"math"
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
			q.args[i] = numericText(v)
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

// numericText is a number as a literal of PostgreSQL's numeric, a whole one with all its digits:
// those of the shortest text that is read as the same double would be another whole number.
func numericText(v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1e21 {
		return strconv.AppendFloat(nil, v, 'f', 0, 64)
	}
	return strconv.AppendFloat(nil, v, 'g', -1, 64)
}

// retyped makes another attempt possible where PostgreSQL could not find the type of a
// parameter, and reports whether it did: a name that occurs twice is sent apart, and a
// parameter that nothing tells the type of (`$1 IS NULL`) gets that of its value.
func (q *pgStatement) retyped(st statement, err error) bool {
	e := new(pgconn.PgError)
	if st.platform || !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case pgAmbiguous:
		return q.apart(st)
	case pgIndeterminate:
		n, _ := strconv.Atoi(e.Message[strings.LastIndexByte(e.Message, '$')+1:])
		return q.typed(n - 1)
	}
	return false
}

// ambiguous_parameter and indeterminate_datatype
const (
	pgAmbiguous     = "42P08"
	pgIndeterminate = "42P18"
)

func (q *pgStatement) apart(st statement) bool {
	if st.Apart == "" || q.sql == st.Apart {
		return false
	}
	args, oids := q.args, q.oids
	q.sql, q.args, q.oids = st.Apart, nil, nil
	for _, at := range st.Repeats {
		q.args, q.oids = append(q.args, args[at]), append(q.oids, oids[at])
	}
	return true
}

func (q *pgStatement) typed(at int) bool {
	if at < 0 || at >= len(q.oids) || q.oids[at] != 0 {
		return false
	}
	q.oids[at] = pgtype.TextOID
	return true
}
