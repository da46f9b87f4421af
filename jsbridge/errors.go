package jsbridge

import (
	"fmt"
	"maps"

	"apiengine/fault"
)

// SyntaxError reports source that cannot become a Program: it does not parse, or it is
// larger or more deeply nested than is compiled. Line and Column count from 1 in the
// author's file; 0 when the whole source is meant.
type SyntaxError struct {
	File         string
	Line, Column int
	Msg          string
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
}

// Kind is script_syntax.
func (e *SyntaxError) Kind() fault.Kind { return fault.ScriptSyntax }

// Public is the whole text: the author wrote the source.
func (e *SyntaxError) Public() string { return e.Error() }

// Details are File, and Line and Column unless the whole source is meant.
func (e *SyntaxError) Details() map[string]any { return placed(e.File, e.Line, e.Column) }

func placed(file string, line, column int) map[string]any {
	d := map[string]any{"File": file}
	if line > 0 {
		d["Line"], d["Column"] = line, column
	}
	return d
}

// ScriptError reports what a script threw and did not catch. Line and Column are those
// of the throw in the author's file, 0 when unknown. Stack is for administrators.
//
// Cause is the error of the service that failed, when the thrown value came from one;
// then the Kind of Cause is the Kind of the whole.
type ScriptError struct {
	File         string
	Line, Column int
	Msg          string
	Stack        string
	Cause        error
}

func (e *ScriptError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s (%s)", e.Msg, e.File)
	}
	return fmt.Sprintf("%s (%s:%d:%d)", e.Msg, e.File, e.Line, e.Column)
}

// ScriptStack is Stack, for whoever shows it to an administrator.
func (e *ScriptError) ScriptStack() string { return e.Stack }

// Unwrap gives Cause to errors.Is and errors.As.
func (e *ScriptError) Unwrap() error { return e.Cause }

// Kind is that of Cause when it has one, else script_error. What Cause says against its own
// caller, such as forbidden, it says against the script: whoever called that is not to blame.
func (e *ScriptError) Kind() fault.Kind {
	switch k := fault.Of(e.Cause); k {
	case "", fault.Internal, fault.BadRequest, fault.LockKeyMissing, fault.IdempotencyKeyMissing, fault.Unauthenticated, fault.Forbidden,
		fault.HTTPStopped, fault.NotFound, fault.Disabled, fault.MethodNotAllowed, fault.PayloadTooLarge, fault.IdempotencyMismatch:
		return fault.ScriptError
	default:
		return k
	}
}

// Public is the message as the script threw it.
func (e *ScriptError) Public() string { return e.Msg }

// Details are File, Line and Column where they are known, beside the particulars of Cause.
func (e *ScriptError) Details() map[string]any {
	d := placed(e.File, e.Line, e.Column)
	maps.Copy(d, fault.Details(e.Cause))
	return d
}

// LimitError reports a run that was ended because it went past a limit. No script can
// catch it.
type LimitError struct {
	K     fault.Kind // timeout, limit_stack, limit_output, limit_memory or limit_regex
	Limit string     // what was passed, in words: "call stack of 1000 frames"

	File         string // where the script was then; empty when it was nowhere
	Line, Column int
}

func (e *LimitError) Error() string {
	if e.Line == 0 {
		return e.Public()
	}
	return fmt.Sprintf("%s (%s:%d:%d)", e.Public(), e.File, e.Line, e.Column)
}

// Kind classifies the limit.
func (e *LimitError) Kind() fault.Kind { return e.K }

// Public is the text without the place.
func (e *LimitError) Public() string {
	if e.K == fault.Timeout {
		return "the run reached its deadline"
	}
	return "the run went past its limit: " + e.Limit
}

// Details name the limit, and File, Line and Column where they are known.
func (e *LimitError) Details() map[string]any {
	d := map[string]any{}
	if e.Line > 0 {
		d = placed(e.File, e.Line, e.Column)
	}
	if e.Limit != "" {
		d["Limit"] = e.Limit
	}
	return d
}

// ResultError reports a result that cannot be JSON. Path leads to the value, "" is the
// result itself.
type ResultError struct {
	Path string
	Msg  string
}

func (e *ResultError) Error() string {
	if e.Path == "" {
		return "the result cannot be JSON: " + e.Msg
	}
	return fmt.Sprintf("the result cannot be JSON: %s at %s", e.Msg, e.Path)
}

// Kind is result_invalid.
func (e *ResultError) Kind() fault.Kind { return fault.ResultInvalid }

// Public is the whole text.
func (e *ResultError) Public() string { return e.Error() }

// endsRun tells the failures that no script may catch: the lock or the time is gone, or
// nobody knows what the database did. Every other failure of a service is thrown.
func endsRun(err error) bool {
	switch fault.Of(err) {
	case fault.LeaseLost, fault.StaleFence, fault.Timeout, fault.Canceled, fault.Draining,
		fault.OutcomeUnknown, fault.LimitMemory, fault.LimitStack, fault.LimitDepth,
		fault.LimitOutput, fault.LimitRegex:
		return true
	}
	return false
}
