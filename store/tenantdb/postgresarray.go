package tenantdb

import (
	"bytes"
	"errors"

	"github.com/jackc/pgx/v5/pgtype"
)

// arrayElement is the type of the elements of the arrays that come as JSON arrays. Others
// (of a tenant's own types) come as PostgreSQL's text.
var arrayElement = map[uint32]uint32{
	pgtype.BoolArrayOID: pgtype.BoolOID, pgtype.Int2ArrayOID: pgtype.Int2OID, pgtype.Int4ArrayOID: pgtype.Int4OID,
	pgtype.Int8ArrayOID: pgtype.Int8OID, pgtype.Float4ArrayOID: pgtype.Float4OID, pgtype.Float8ArrayOID: pgtype.Float8OID,
	pgtype.NumericArrayOID: pgtype.NumericOID, pgtype.TextArrayOID: pgtype.TextOID, pgtype.VarcharArrayOID: pgtype.VarcharOID,
	pgtype.BPCharArrayOID: pgtype.BPCharOID, pgtype.UUIDArrayOID: pgtype.UUIDOID, pgtype.ByteaArrayOID: pgtype.ByteaOID,
	pgtype.DateArrayOID: pgtype.DateOID, pgtype.TimestampArrayOID: pgtype.TimestampOID, pgtype.TimestamptzArrayOID: pgtype.TimestamptzOID,
	pgtype.JSONArrayOID: pgtype.JSONOID, pgtype.JSONBArrayOID: pgtype.JSONBOID,
}

// appendArray turns `{1,NULL,"a\"b",{2}}` into JSON. Bounds (`[0:1]={..}`) are left out.
func appendArray(b []byte, element uint32, v []byte) []byte {
	text := v
	if at := bytes.Index(v, []byte("]={")); len(v) > 0 && v[0] == '[' && at > 0 {
		text = v[at+2:]
	}
	a := arrayReader{text: text, element: element}
	out, err := a.list(b)
	if err != nil || len(a.text) != 0 {
		return appendText(b, v)
	}
	return out
}

// arrayReader takes an array's text apart from the front.
type arrayReader struct {
	text    []byte
	element uint32
}

var errArray = errors.New("tenantdb: not the text of an array")

func (a *arrayReader) next() byte {
	if len(a.text) == 0 {
		return 0
	}
	return a.text[0]
}

func (a *arrayReader) list(b []byte) ([]byte, error) {
	if a.next() != '{' {
		return nil, errArray
	}
	a.text = a.text[1:]
	b = append(b, '[')
	if a.next() == '}' {
		a.text = a.text[1:]
		return append(b, ']'), nil
	}
	for {
		var err error
		if b, err = a.item(b); err != nil {
			return nil, err
		}
		c := a.next()
		if c != ',' && c != '}' {
			return nil, errArray
		}
		a.text = a.text[1:]
		if c == '}' {
			return append(b, ']'), nil
		}
		b = append(b, ',')
	}
}

func (a *arrayReader) item(b []byte) ([]byte, error) {
	switch a.next() {
	case '{':
		return a.list(b)
	case '"':
		item, err := a.quoted()
		return appendPg(b, a.element, item), err
	}
	n := bytes.IndexAny(a.text, ",}")
	if n <= 0 {
		return nil, errArray
	}
	item := a.text[:n]
	a.text = a.text[n:]
	if string(item) == "NULL" {
		item = nil
	}
	return appendPg(b, a.element, item), nil
}

func (a *arrayReader) quoted() ([]byte, error) {
	item := []byte{}
	for i := 1; i < len(a.text); i++ {
		switch c := a.text[i]; c {
		case '"':
			a.text = a.text[i+1:]
			return item, nil
		case '\\':
			i++
			if i == len(a.text) {
				return nil, errArray
			}
			item = append(item, a.text[i])
		default:
			item = append(item, c)
		}
	}
	return nil, errArray
}
