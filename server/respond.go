package server

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"apiengine/engine"
	"apiengine/fault"
)

// record takes from the Execution what every answer of a run says in its headers.
func (x *exchange) record(res *engine.Result) {
	if res == nil || res.Execution == nil {
		return
	}
	e := res.Execution
	x.committed = e.Committed
	if x.executionID = e.ID; e.ID != "" {
		x.set("X-Execution-Id", e.ID)
	}
	if e.Lock != "" {
		x.set("X-Lock-Wait-Ms", strconv.FormatInt(e.LockWait.Milliseconds(), 10))
	}
	if e.Token > 0 {
		x.set("X-Fencing-Token", strconv.FormatInt(e.Token, 10))
	}
	if len(e.CorsOrigins) > 0 && e.CorsOrigins[0] != "*" && x.r.Header.Get("Origin") == "" {
		x.set("Vary", "Origin") // a cache must not give this answer, without CORS, to a browser
	}
}

// answer turns what a script returned into bytes (contract 4.3). What cannot be sent is
// result_invalid, and says that the run itself is done: AnswerPolicy.Check finds the
// same faults before the commit when the engine asks it.
func (x *exchange) answer(res *engine.Result) reply {
	if res.Answer != nil {
		return x.sendKept(res)
	}
	if err := x.s.cfg.Answers.checkResponse(res, x.r.Host); err != nil {
		return x.failSent(err)
	}
	rep, err := x.content(res)
	if err != nil {
		return x.failSent(err)
	}
	x.scriptHeaders(res, &rep)
	if res.Response.Redirect != "" {
		x.set("Location", res.Response.Redirect)
		rep.ctype, rep.body = "", nil
	}
	rep.status = statusOfResult(res)
	return rep
}

// failSent is the failure of an answer whose run is done.
func (x *exchange) failSent(err *refusal) reply {
	if x.committed {
		err.msg += " (the run itself was committed)"
	}
	return x.fail(err)
}

// content is the body by the definition's ResponseType.
func (x *exchange) content(res *engine.Result) (reply, *refusal) {
	switch res.ResponseType {
	case "File":
		if !isFile(res) {
			break
		}
		f, err := readFile(res)
		if err != nil {
			return reply{}, err
		}
		x.set("Content-Disposition", f.disposition)
		return reply{200, f.ctype, f.content}, nil
	case "HTML":
		return plain(res, typeHTML, typeJSON), nil
	case "String":
		return plain(res, typeText, typeText), nil
	case "JSON":
		return reply{200, typeJSON, jsonBody(res)}, nil
	}
	return plain(res, typeText, typeJSON), nil
}

// plain sends a string as text, another value as JSON of type other, and nothing at all
// as {"Code":1} where JSON is expected: a script that returned nothing has done its work.
func plain(res *engine.Result, text, other string) reply {
	switch {
	case res.IsText:
		return reply{200, text, res.Body}
	case res.Body != nil:
		return reply{200, other, res.Body}
	case other == typeJSON && text == typeText:
		return reply{200, typeJSON, []byte(`{"Code":1}`)}
	}
	return reply{200, text, nil}
}

// jsonBody is JSON always: a string that is itself an object or array goes as it is, any
// other becomes a JSON string.
func jsonBody(res *engine.Result) []byte {
	switch {
	case res.Body == nil:
		return []byte(`{"Code":1}`)
	case !res.IsText:
		return res.Body
	}
	if k := jsontext.Value(res.Body).Kind(); (k == '{' || k == '[') && jsontext.Value(res.Body).IsValid() {
		return bytes.TrimSpace(res.Body)
	}
	return appendString(nil, string(res.Body))
}

// business reports whether a result is an object whose Code is not 1: it goes out as
// JSON also where the API answers with files.
func business(res *engine.Result) bool {
	code := gjson.GetBytes(res.Body, "Code")
	return code.Exists() && (code.Type != gjson.Number || code.Num != 1)
}

func invalid(format string, args ...any) *refusal {
	return refuse(fault.ResultInvalid, format, args...)
}
