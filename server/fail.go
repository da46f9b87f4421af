package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"time"

	"apiengine/fault"
)

// refusal is an error of this package: a fault and what only HTTP knows of it.
type refusal struct {
	kind   fault.Kind
	msg    string
	fields map[string]any
	cause  error
	code   int    // of the envelope, when it is not what the kind means
	status int    // when it is not the kind's (414 is a payload_too_large)
	allow  string // of a 405
}

func refuse(k fault.Kind, format string, args ...any) *refusal {
	return &refusal{kind: k, msg: fmt.Sprintf(format, args...)}
}

func (e *refusal) with(fields map[string]any) *refusal {
	e.fields = fields
	return e
}

func (e *refusal) Error() string {
	if e.cause == nil {
		return e.msg
	}
	return e.msg + ": " + e.cause.Error()
}

// Kind classifies the error.
func (e *refusal) Kind() fault.Kind { return e.kind }

// Public is the text for the caller.
func (e *refusal) Public() string { return e.msg }

// Details are the particulars for the caller.
func (e *refusal) Details() map[string]any { return e.fields }

// Unwrap gives the cause, which is for the log only.
func (e *refusal) Unwrap() error { return e.cause }

// fail turns err into the envelope of section 4.3 and sets the headers of its kind.
// err must not be nil.
func (x *exchange) fail(err error) reply {
	kind := fault.Of(err)
	details := x.details(err)
	var own *refusal
	errors.As(err, &own)

	code, st := codeRefused, statusOf(kind)
	if kind == fault.Unauthenticated {
		code = codeNotSignedIn
		x.set("Www-Authenticate", `Bearer realm="apiengine"`)
	}
	if own != nil && own.code != 0 {
		code = own.code
	}
	if own != nil && own.status != 0 {
		st = own.status
	}
	if kind == fault.MethodNotAllowed {
		x.set("Allow", allowOf(own, details))
	}
	if retried(kind) {
		x.set("Retry-After", retryAfter(details))
	}
	if kind == fault.RateLimited {
		x.rateLimit(details)
	}
	x.note(kind, st, err)
	if x.always200 {
		st = 200
	}
	return reply{status: st, ctype: typeJSON, body: x.envelope(code, kind, fault.Public(err), x.visible(err, details))}
}

// note logs what no run has logged: our own failures, and why a credential was refused.
func (x *exchange) note(kind fault.Kind, status int, err error) {
	level := slog.LevelDebug
	switch {
	case x.executionID != "" || kind == fault.Draining:
		return // the engine writes a line for each run
	case status >= 500:
		level = slog.LevelError
	case kind != fault.Unauthenticated:
		return
	}
	x.s.cfg.Log.Log(x.r.Context(), level, "request refused", "request", x.requestID, "kind", kind, "error", err)
}

// details are the particulars of err, and whether its run had committed something before it:
// said of every result that cannot be sent, and where it had.
func (x *exchange) details(err error) map[string]any {
	d := maps.Clone(fault.Details(err))
	if x.committed || x.executionID != "" && fault.Of(err) == fault.ResultInvalid {
		if d == nil {
			d = map[string]any{}
		}
		d["Committed"] = x.committed
	}
	return d
}

// visible are the details that this caller may see: the stack is for administrators.
func (x *exchange) visible(err error, details map[string]any) map[string]any {
	delete(details, "Stack")
	if !x.admin {
		return details
	}
	var st interface {
		error
		ScriptStack() string
	}
	if errors.As(err, &st) && st.ScriptStack() != "" {
		if details == nil {
			details = map[string]any{}
		}
		details["Stack"] = st.ScriptStack()
	}
	return details
}

// envelope is a refusal: {"Code","Msg","DataAppend":{"Error":{...}}}.
func (x *exchange) envelope(code int, kind fault.Kind, msg string, details map[string]any) []byte {
	b := make([]byte, 0, 256)
	b = append(b, `{"Code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"Msg":`...)
	b = appendString(b, msg)
	b = append(b, `,"DataAppend":{"Error":{"Kind":`...)
	b = appendString(b, string(kind))
	b = append(b, `,"RequestId":`...)
	b = appendString(b, x.requestID)
	if x.executionID != "" {
		b = append(b, `,"ExecutionId":`...)
		b = appendString(b, x.executionID)
	}
	for _, k := range []string{"Kind", "RequestId", "ExecutionId"} {
		delete(details, k)
	}
	if more, err := json.Marshal(details); err == nil && len(details) > 0 {
		b = append(b, ',')
		return append(append(b, more[1:]...), '}', '}')
	}
	return append(b, '}', '}', '}')
}

// retryAfter is in whole seconds, rounded up, at least 1: what details' RetryAfterMs says.
func retryAfter(details map[string]any) string {
	ms, _ := number(details["RetryAfterMs"])
	return strconv.FormatInt(max(1, (ms+999)/1000), 10)
}

// rateLimit sets the two fields of draft-ietf-httpapi-ratelimit-headers from the details
// Limit, WindowSeconds and Remaining of a rate_limited refusal.
func (x *exchange) rateLimit(details map[string]any) {
	limit, ok1 := number(details["Limit"])
	window, ok2 := number(details["WindowSeconds"])
	if !ok1 || !ok2 {
		return
	}
	left, _ := number(details["Remaining"])
	x.set("Ratelimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, limit, window))
	x.set("Ratelimit", fmt.Sprintf(`"default";r=%d;t=%s`, left, retryAfter(details)))
}

func number(v any) (int64, bool) {
	switch n := v.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	case float64:
		return int64(n), true
	case time.Duration:
		return n.Milliseconds(), true
	}
	return 0, false
}

func allowOf(own *refusal, details map[string]any) string {
	if own != nil && own.allow != "" {
		return own.allow
	}
	switch a := details["Allow"].(type) {
	case string:
		return a
	case []string:
		return strings.Join(a, ", ")
	}
	return methodList
}
