package server

import (
	"cmp"
	"net/http"
	"strconv"

	"apiengine/engine"
	"apiengine/fault"
)

// maxKey of an Idempotency-Key in bytes (S73).
const maxKey = 255

// idempotencyKey is the request's key as it was sent; "" when there is none.
func idempotencyKey(h http.Header) (string, error) {
	values, given := h["Idempotency-Key"]
	if !given {
		return "", nil
	}
	bad := len(values) != 1 || values[0] == "" || len(values[0]) > maxKey
	for _, c := range []byte(values[0]) {
		bad = bad || c < 0x20 || c > 0x7e
	}
	if bad {
		return "", refuse(fault.BadRequest, "the header Idempotency-Key must be there once and have 1 to %d printable ASCII characters", maxKey).
			with(map[string]any{"Field": "Idempotency-Key"})
	}
	return values[0], nil
}

// accept says, before the commit, whether what the script left can be sent. keep: the
// answer's bytes are made now, to be committed with the run's work.
func (x *exchange) accept(res *engine.Result, keep bool) error {
	if err := x.s.cfg.Answers.Check(res, x.r.Host); err != nil || !keep {
		return err
	}
	rep, err := x.content(res)
	if err != nil {
		return err
	}
	header := map[string]string{}
	for name, value := range res.Response.Header {
		header[http.CanonicalHeaderKey(name)] = value
	}
	if name := "Content-Disposition"; x.w.Header().Get(name) != "" { // of a file
		header[name] = cmp.Or(header[name], x.w.Header().Get(name))
		x.w.Header().Del(name) // the run can still fail
	}
	if res.Response.Redirect != "" {
		header["Location"] = res.Response.Redirect
		rep.ctype, rep.body = "", nil
		delete(header, "Content-Type")
	} else if header["Content-Type"] == "" && rep.ctype != "" {
		header["Content-Type"] = rep.ctype
	}
	res.Answer = &engine.Answer{Status: statusOfResult(res), Header: header, Body: rep.body}
	return nil
}

// sendKept sends the answer of a run that has one, be it the first time or again. The
// platform's headers then say which run it was that made it.
func (x *exchange) sendKept(res *engine.Result) reply {
	a := res.Answer
	for name, value := range a.Header {
		if name != "Content-Type" {
			x.w.Header().Set(name, value)
		}
	}
	if res.Replayed {
		x.set("Idempotency-Replayed", "true")
		x.set("X-Execution-Id", a.Execution)
		if a.Token > 0 {
			x.set("X-Fencing-Token", strconv.FormatInt(a.Token, 10))
		}
	}
	return reply{status: a.Status, ctype: a.Header["Content-Type"], body: a.Body}
}
