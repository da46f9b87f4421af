package client

import (
	"errors"
	"fmt"
	"strings"

	"apiengine/apis"
	"apiengine/fault"
)

// Problem is one thing that is wrong with a file, or with what it says.
type Problem struct {
	File   string // as a path from where the command runs; empty: none
	Line   int    `json:",omitempty"` // from 1; 0: unknown
	Column int    `json:",omitempty"`
	Field  string `json:",omitempty"` // of the definition
	Kind   fault.Kind
	Msg    string
}

// String is file:line:column: message.
func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at += fmt.Sprintf(":%d:%d", p.Line, p.Column)
	}
	msg := p.text()
	if at == "" {
		return visible(msg)
	}
	return visible(at + ": " + msg)
}

// text is the message with the field that it is about.
func (p Problem) text() string {
	if p.Field != "" && !strings.HasPrefix(p.Msg, p.Field) {
		return p.Field + " " + p.Msg
	}
	return p.Msg
}

// problemsOf takes an error about a file apart: each field's problem by itself, anything
// else as one. The file's own path replaces the name under which it was compiled or sent.
func problemsOf(err error, file string) []Problem {
	var many apis.FieldErrors
	var one *apis.FieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		out := make([]Problem, len(many))
		for i, e := range many {
			out[i] = Problem{file, e.Line, e.Column, e.Field, fault.BadRequest, e.Msg}
		}
		return out
	case errors.As(err, &one):
		return []Problem{{file, one.Line, one.Column, one.Field, fault.BadRequest, one.Msg}}
	}
	details := fault.Details(err)
	p := Problem{File: file, Line: number(details["Line"]), Column: number(details["Column"]), Kind: fault.Of(err), Msg: fault.Public(err)}
	p.Field, _ = details["Field"].(string)
	if p.Kind == fault.Internal {
		p.Msg = err.Error()
	}
	if named, _ := details["File"].(string); named != "" {
		p.Msg = strings.TrimPrefix(p.Msg, fmt.Sprintf("%s:%d:%d: ", named, p.Line, p.Column))
	}
	return []Problem{p}
}

func number(v any) int {
	switch n := v.(type) {
	case int:
		return n
	case float64:
		return int(n)
	}
	return 0
}
