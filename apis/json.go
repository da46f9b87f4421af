package apis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wire is a definition as the admin API sends and takes it. What only the server says may
// come back in a save, so that what was read can be sent again; it changes nothing.
type wire struct {
	Definition
	Timeout *int // an explicit 0 is out of range, not the default

	Version                         jsontext.Value
	ChangeHistory                   jsontext.Value
	SavedAt, SavedBy, Note, Deleted jsontext.Value
}

// DecodeJSON reads the JSON of a definition strictly: an unknown or repeated field and a
// value of another type are refused by a *FieldError. The fields are not yet validated.
func DecodeJSON(body []byte) (Definition, error) {
	var w wire
	if err := jsonv2.Unmarshal(body, &w, jsonv2.RejectUnknownMembers(true)); err != nil {
		return Definition{}, jsonProblem(body, err)
	}
	d := w.Definition
	if w.Timeout != nil {
		if d.Timeout = *w.Timeout; d.Timeout == 0 {
			return Definition{}, &FieldError{Field: "Timeout", Msg: "must be at least 1 second, not 0"}
		}
	}
	return d, nil
}

// EncodeJSON returns the JSON of a definition in one line, fields in a fixed order. A
// list or text that is empty is left out, and so are Effects that are what Lock and
// Transaction make of them anyway: else who switches Lock on would keep the old Effects.
func EncodeJSON(d Definition) ([]byte, error) {
	if d.Effects == d.defaultEffects() {
		d.Effects = ""
	}
	return jsonv2.Marshal(d)
}

func jsonProblem(body []byte, err error) error {
	e := &FieldError{}
	var sem *jsonv2.SemanticError
	var syn *jsontext.SyntacticError
	switch {
	case errors.As(err, &sem):
		e.Field = fieldOf(sem.JSONPointer)
		if e.Msg = "must be " + kindOf(e.Field); errors.Is(err, jsonv2.ErrUnknownName) {
			e.Msg = unknownField(e.Field)
		}
	case errors.As(err, &syn) && errors.Is(err, jsontext.ErrDuplicateName):
		e.Field, e.Msg = fieldOf(syn.JSONPointer), "is there twice"
	case errors.As(err, &syn):
		e.Line, e.Column = lineAt(body, int(syn.ByteOffset))
		e.Msg = "the definition is not valid JSON: " + strings.TrimPrefix(syn.Err.Error(), "jsontext: ")
	default:
		e.Msg = "the definition cannot be read: " + err.Error()
	}
	return e
}

func fieldOf(p jsontext.Pointer) string {
	var parts []string
	for part := range p.Tokens() {
		parts = append(parts, clip(part))
	}
	return strings.Join(parts, ".")
}

// lineAt returns the line and the column, in characters, of an offset.
func lineAt(text []byte, offset int) (line, column int) {
	before := text[:max(0, min(offset, len(text)))]
	begin := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[begin:]) + 1
}

// compactObject returns a JSON object without white space, its strings written in one
// way. The error's text reads on after the field's name.
func compactObject(text json.RawMessage) ([]byte, error) {
	v := jsontext.Value(bytes.Clone(text))
	if err := v.Format(); err != nil {
		return nil, fmt.Errorf("is not valid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	switch {
	case v.Kind() != '{':
		return nil, errors.New("must be an object")
	case len(v) > maxTestParam:
		return nil, fmt.Errorf("must be at most %d bytes, not %d", maxTestParam, len(v))
	}
	depth, deepest := 0, 0
	for dec := jsontext.NewDecoder(bytes.NewReader(v)); ; {
		if _, err := dec.ReadToken(); err != nil {
			break // the end
		}
		if depth = dec.StackDepth(); depth > deepest {
			deepest = depth
		}
	}
	if deepest > maxNesting {
		return nil, fmt.Errorf("must be nested at most %d deep, not %d", maxNesting, deepest)
	}
	return v, nil
}
