package server

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"apiengine/fault"
)

// maxDepth of nested arrays and objects (S5, S66).
const maxDepth = 512

// mark is UTF-8's byte order mark, which some clients send before a text.
var mark = []byte("\xef\xbb\xbf")

// checkObject returns raw without a byte order mark and white space around it, when it
// is one JSON object: UTF-8, every name once in its object, nothing behind it, at most
// maxDepth deep. An error names the place.
func checkObject(raw []byte) ([]byte, error) {
	raw = bytes.TrimPrefix(raw, mark)
	if at := tooDeep(raw); at >= 0 {
		return nil, refuse(fault.BadRequest, "the JSON is nested deeper than %d at %s", maxDepth, place(raw, at))
	}
	v := jsontext.Value(raw)
	if !v.IsValid() {
		return nil, explain(raw)
	}
	if v.Kind() != '{' {
		return nil, refuse(fault.BadRequest, "the JSON must be an object like {\"Name\":\"value\"}, not %s", kindName(v.Kind()))
	}
	return bytes.Trim(raw, " \t\r\n"), nil
}

// tooDeep returns the offset of the first bracket too many, else -1. It trusts nothing:
// brackets in strings are skipped, and a broken text is left to the parser.
func tooDeep(raw []byte) int {
	if bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) <= maxDepth {
		return -1
	}
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return i
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return -1
}

// explain finds out again, slowly, what is wrong with a text that is no JSON value.
func explain(raw []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	_, err := dec.ReadValue()
	if err == nil {
		if _, err = dec.ReadToken(); err == nil {
			err = &jsontext.SyntacticError{ByteOffset: dec.InputOffset(), Err: errors.New("there is more behind the JSON")}
		}
	}
	var syn *jsontext.SyntacticError
	switch {
	case errors.As(err, &syn):
		offset := min(int(syn.ByteOffset), len(raw))
		return refuse(fault.BadRequest, "the body is not valid JSON at %s: %v", place(raw, offset), syn.Err).with(position(raw, offset))
	case errors.Is(err, io.EOF):
		return refuse(fault.BadRequest, "the body is not valid JSON: it is empty")
	}
	return refuse(fault.BadRequest, "the body is not valid JSON: it ends too early, at %s", place(raw, len(raw))).with(position(raw, len(raw)))
}

func position(raw []byte, offset int) map[string]any {
	line, column := lineColumn(raw, offset)
	return map[string]any{"Line": line, "Column": column, "Offset": offset}
}

// kindName says in words what a JSON value is.
func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}

// merge joins what is there into one object: a name of object wins over fields, fields
// over query. nil when there is nothing.
func merge(object []byte, fields, query url.Values) ([]byte, error) {
	query = withoutTenant(query)
	if len(fields) == 0 && len(query) == 0 {
		return object, nil
	}
	taken := map[string]bool{}
	out := []byte{'{'}
	if object != nil {
		if err := namesOf(object, taken); err != nil {
			return nil, err
		}
		out = append(make([]byte, 0, len(object)+256), object[:len(object)-1]...)
	}
	empty := len(taken) == 0
	for _, src := range []url.Values{fields, query} {
		for _, name := range slices.Sorted(maps.Keys(src)) {
			if taken[name] {
				continue
			}
			taken[name] = true
			if !empty {
				out = append(out, ',')
			}
			empty = false
			var err error
			if out, err = appendMember(out, name, src[name]); err != nil {
				return nil, err
			}
		}
	}
	return append(out, '}'), nil
}

// withoutTenant is query without the name that chose the tenant: it is the platform's,
// and a JSON body beside it shall go through untouched.
func withoutTenant(query url.Values) url.Values {
	for name := range query {
		if strings.EqualFold(name, tenantField) {
			delete(query, name)
		}
	}
	return query
}

func namesOf(object []byte, into map[string]bool) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object))
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		into[name.String()] = true
		if err := dec.SkipValue(); err != nil {
			return err
		}
	}
	return nil
}

// appendMember appends "name":"value", or an array when the name was repeated.
func appendMember(out []byte, name string, values []string) ([]byte, error) {
	for _, s := range append([]string{name}, values...) {
		if !utf8.ValidString(s) {
			return nil, refuse(fault.BadRequest, "the parameter %q is not UTF-8", name)
		}
	}
	out = append(appendString(out, name), ':')
	if len(values) == 1 {
		return appendString(out, values[0]), nil
	}
	out = append(out, '[')
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(out, v)
	}
	return append(out, ']'), nil
}
