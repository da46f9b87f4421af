package tenantdb

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"apiengine/store/tenantdb/internal/sqltext"
)

// fit makes a value one for its column where the database would store something else than
// was meant: base64 text for bytes, true for a number, a fraction for a whole number, a
// JSON array for an array. What PostgreSQL refuses by itself is left to it; SQLite, which
// stores anything anywhere, gets its answers here (sqlitevalue.go).
func (f *form) fit(c column, v any) (any, error) {
	d := f.tx.db.g.dialect
	switch {
	case v == nil:
		return nil, nil
	case isBytes(c.typ):
		return bytesFor(c, v)
	case isInteger(d, c.typ):
		return integerFor(c, v)
	case takesText(d, c.typ):
		if x, ok := v.(float64); ok {
			return strconv.FormatFloat(x, 'f', -1, 64), nil
		}
	case d == sqltext.SQLite:
		return liteValue(c, v)
	case strings.HasPrefix(c.typ, "_"):
		if s, ok := v.(string); ok && gjson.Valid(s) && gjson.Parse(s).IsArray() {
			return pgArray(gjson.Parse(s)), nil
		}
	}
	return v, nil
}

// takesText tells the columns to which a number with a fraction goes as its text: those for
// text, and all of PostgreSQL's that are not for such numbers, so that it says what is wrong
// with the value and not with the types.
func takesText(d sqltext.Dialect, typ string) bool {
	if d == sqltext.SQLite {
		return isLiteText(typ)
	}
	return typ != "float4" && typ != "float8" && typ != "numeric" && typ != "money" && !strings.HasPrefix(typ, "_")
}

func isBytes(typ string) bool { return typ == "bytea" || strings.Contains(typ, "blob") }

func bytesFor(c column, v any) (any, error) {
	s, ok := v.(string)
	if ok {
		if raw, err := base64.StdEncoding.DecodeString(s); err == nil {
			return raw, nil
		}
	}
	return nil, badValue(c, "bytes: give a Uint8Array or base64 text")
}

// isInteger follows SQLite's own rule for its declared types.
func isInteger(d sqltext.Dialect, typ string) bool {
	if d == sqltext.SQLite {
		return strings.Contains(typ, "int")
	}
	return typ == "int2" || typ == "int4" || typ == "int8"
}

func integerFor(c column, v any) (any, error) {
	switch x := v.(type) {
	case bool:
		if x {
			return int64(1), nil
		}
		return int64(0), nil
	case float64: // with a fraction, or too large: jsonValue makes int64 of all others
		return nil, badValue(c, "a whole number, not "+strconv.FormatFloat(x, 'g', -1, 64))
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
		if err != nil {
			return nil, badValue(c, "a whole number, not "+strconv.Quote(x))
		}
		return n, nil
	}
	return v, nil
}

// badValue is an answer with Code 0, as for a value that the database refuses.
func badValue(c column, what string) error {
	return &SQLError{Msg: "the column " + c.name + " takes " + what, Data: true}
}

// pgArray is a JSON array as PostgreSQL writes arrays.
func pgArray(v gjson.Result) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, item := range v.Array() {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case item.IsArray():
			b.WriteString(pgArray(item))
		case item.Type == gjson.Null:
			b.WriteString("NULL")
		default:
			b.WriteString(`"` + arrayEscape.Replace(item.String()) + `"`)
		}
	}
	b.WriteByte('}')
	return b.String()
}

var arrayEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
