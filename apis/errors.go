package apis

import (
	"fmt"
	"strconv"
	"strings"

	"apiengine/fault"
)

// FieldError says what is wrong with one field of a definition, and where. Its Kind is
// bad_request and its text is for the author.
type FieldError struct {
	File   string // as it was given to ParseFile; empty: not from a file
	Line   int    // from 1, in File or in the JSON body; 0: unknown
	Column int    // from 1, in characters; 0: unknown
	Field  string // name of the field; empty: the text as a whole
	Msg    string // reads on after the field's name: "must be ..."
}

// Error is "file:line:column: Field Msg", which editors turn into a link.
func (e *FieldError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		b.WriteString(strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Column) + ":")
	}
	for _, s := range []string{e.Field, e.Msg} {
		if b.Len() > 0 && s != "" {
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	return b.String()
}

// Kind classifies the error.
func (e *FieldError) Kind() fault.Kind { return fault.BadRequest }

// Public is the text for the author.
func (e *FieldError) Public() string { return e.Error() }

// Details are File, Line, Column and Field, without those that are unknown.
func (e *FieldError) Details() map[string]any {
	out := map[string]any{}
	if e.File != "" {
		out["File"] = e.File
	}
	if e.Line > 0 {
		out["Line"], out["Column"] = e.Line, e.Column
	}
	if e.Field != "" {
		out["Field"] = e.Field
	}
	return out
}

// FieldErrors are all the problems of one definition, at least one.
type FieldErrors []*FieldError

func (e FieldErrors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each problem to errors.As.
func (e FieldErrors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// Kind classifies the error.
func (e FieldErrors) Kind() fault.Kind { return fault.BadRequest }

// Public is the text for the author: every problem.
func (e FieldErrors) Public() string { return strings.ReplaceAll(e.Error(), "\n", "; ") }

// Details are those of the first problem, and all texts as Problems when there are more.
func (e FieldErrors) Details() map[string]any {
	if len(e) == 0 {
		return nil
	}
	out := e[0].Details()
	if len(e) > 1 {
		all := make([]string, len(e))
		for i, one := range e {
			all[i] = one.Error()
		}
		out["Problems"] = all
	}
	return out
}

// LoadError says that one definition of several could not go live.
type LoadError struct {
	Key string
	Err error
}

func (e *LoadError) Error() string { return fmt.Sprintf("apis: %s: %v", e.Key, e.Err) }

// Unwrap gives the reason, which classifies the error.
func (e *LoadError) Unwrap() error { return e.Err }

// problems collects what is wrong with one definition.
type problems struct{ list FieldErrors }

func (p *problems) add(field, format string, args ...any) {
	p.list = append(p.list, &FieldError{Field: field, Msg: fmt.Sprintf(format, args...)})
}

// err is nil, the only problem, or all of them.
func (p *problems) err() error {
	switch len(p.list) {
	case 0:
		return nil
	case 1:
		return p.list[0]
	}
	return p.list
}
