package jsbridge

import (
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"
)

var (
	errBadDate = errors.New("must not be an invalid Date")
	errNoValue = errors.New("undefined where a condition needs a value (null means IS NULL)")
)

// unstorableError is a number or Date that JSON would make null of.
type unstorableError struct{ what string }

func (e *unstorableError) Error() string { return e.what + ", which no column can hold," }

// columns is what a jsonWriter looks for in the options of V8.FormEngine.
type columns struct {
	on    bool
	where bool // inside _Where
}

// columnValue tells whether what is written now is a column's value, or one in a condition: what
// lies deeper is a JSON value of its own and follows JSON's rules.
func (w *jsonWriter) columnValue() bool {
	switch {
	case !w.columns.on:
		return false
	case w.columns.where:
		return true
	case len(w.stack) == 2: // a batch
		return w.r.m.isArray(w.stack[0])
	}
	return len(w.stack) == 1
}

// absent is the error of a value that has no JSON.
func (w *jsonWriter) absent(key unistring.String) error {
	if w.columns.where && key == "Value" {
		return errNoValue
	}
	return nil
}

func invalidDate(v goja.Value) bool {
	obj, ok := v.(*goja.Object)
	return ok && obj.ClassName() == "Date" && math.IsNaN(obj.ToFloat())
}

func (a argValue) stored() (v any, refused string, err error) {
	obj, isObj := a.v.(*goja.Object)
	if _, isFunc := goja.AssertFunction(a.v); isFunc || !isObj {
		v, err = a.plain()
		return v, "", err
	}
	text, err := a.written(&jsonWriter{r: a.r, max: maxStringify, native: true, inward: true, columns: columns{on: true}})
	var p *pathError
	var u *unstorableError
	if errors.As(err, &u) && errors.As(err, &p) && !strings.HasPrefix(p.path, "._") {
		return nil, u.what + " at " + strings.TrimPrefix(p.path, ".") + " cannot be stored: no column can hold it", nil
	}
	if err != nil {
		return nil, "", err
	}
	if c := text[0]; c != '{' && c != '[' { // a boxed string
		v, err = argValue{a.r, obj}.plain()
		return v, "", err
	}
	return json.RawMessage(text), "", nil
}
