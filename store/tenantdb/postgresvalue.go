package tenantdb

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// appendPg appends a value that PostgreSQL gave as text; nil is NULL.
func appendPg(b []byte, oid uint32, v []byte) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	switch oid {
	case pgtype.BoolOID:
		return strconv.AppendBool(b, string(v) == "t")
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.OIDOID:
		return append(b, v...)
	case pgtype.Int8OID:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return appendInt(b, n)
		}
	case pgtype.Float4OID, pgtype.Float8OID:
		if c := v[len(v)-1]; c >= '0' && c <= '9' { // not NaN, Infinity
			return append(b, v...)
		}
	case pgtype.JSONOID, pgtype.JSONBOID:
		return append(b, v...)
	case pgtype.ByteaOID:
		return appendBytea(b, v)
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		return appendText(b, isoTime(string(v)))
	}
	if element, ok := arrayElement[oid]; ok {
		return appendArray(b, element, v)
	}
	return appendText(b, v)
}

// appendBytea knows the hex form, the default for bytea_output since 2010; the other is
// given as it is.
func appendBytea(b, v []byte) []byte {
	digits, ok := strings.CutPrefix(string(v), `\x`)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return appendText(b, v)
	}
	return appendBase64(b, raw)
}

// isoTime turns `2026-01-02 03:04:05.1+08` into `2026-01-02T03:04:05.1+08:00`. Infinities
// and years before Christ stay as they are.
func isoTime(s string) string {
	date, clock, ok := strings.Cut(s, " ")
	if !ok || strings.Contains(clock, " ") {
		return s
	}
	at := strings.LastIndexAny(clock, "+-")
	if at < 0 {
		return date + "T" + clock
	}
	zone := clock[at:]
	switch {
	case zone == "+00":
		zone = "Z"
	case len(zone) == len("+08"):
		zone += ":00"
	}
	return date + "T" + clock[:at] + zone
}
