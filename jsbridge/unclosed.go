package jsbridge

import (
	"errors"
	"fmt"
	"strings"
)

// blameBracket makes err, why src does not parse, point at the bracket that is never closed,
// where there is one: a parser sees only that the text ends, or that what comes next does
// not fit.
func blameBracket(src Source, at *positions, err error) error {
	var e *SyntaxError
	open := scan(src.Code).open
	if !errors.As(err, &e) || len(open) == 0 {
		return err
	}
	b := open[len(open)-1]
	name := string(b.char)
	if b.char == '$' {
		name = "${"
	}
	line, col := at.offset(b.at)
	endLine, endCol := at.offset(len(strings.TrimRight(src.Code, " \t\r\n")))
	out := *e
	if e.Line > endLine || e.Line == endLine && e.Column >= endCol {
		out.Line, out.Column, out.Msg = line, col, fmt.Sprintf("the %s opened here is never closed", name)
	} else {
		out.Msg += fmt.Sprintf("; the %s of line %d is never closed", name, line)
	}
	return &out
}
