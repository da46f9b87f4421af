package jsbridge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// HTTP sends requests to addresses outside. Its rules say which ones it lets through.
type HTTP interface {
	Do(ctx context.Context, r HTTPRequest) (HTTPResponse, error)
}

// HTTPRequest is one request of a script.
type HTTPRequest struct {
	Method, URL string
	Header      map[string]string
	Body        []byte
	Timeout     time.Duration // 0: as long as the run lasts
}

// HTTPResponse is the answer. Failed says why there is none; what the rules refuse is an
// error instead.
type HTTPResponse struct {
	Status int
	Header map[string]string
	Body   []byte
	Failed error
}

func httpFuncs() []Func {
	var rows []Func
	for _, name := range []string{"Get", "Post", "Put", "Patch", "Delete"} {
		rows = append(rows,
			httpFn(name, name, "sends the request, an address or {Url, GetParam, PostParam, PostParamString, ParamType, FilesByteBase64, Headers, Timeout}, and returns the answer's text",
				func(res HTTPResponse) (any, error) { return text(res.Body), res.Failed }),
			httpFn(name+"Response", name, "Http."+name+", but returns {StatusCode, Content, Headers, RawBytes (base64), ErrorMessage}", responseObject))
	}
	return rows
}

func httpFn(name, verb, doc string, answer func(HTTPResponse) (any, error)) Func {
	return hostFn("Http."+name, doc, func(c *Call, in struct{ Options any }) (any, error) {
		if c.Env.HTTP == nil {
			return nil, errNoService("Http")
		}
		r, err := httpRequest("Http."+name, verb, in.Options)
		if err != nil {
			return nil, err
		}
		res, err := c.Env.HTTP.Do(c, r)
		if err != nil {
			return nil, err
		}
		return answer(res)
	})
}

// text is a body as a string; what is not UTF-8 becomes U+FFFD.
func text(body []byte) string { return strings.ToValidUTF8(string(body), "\uFFFD") }

func responseObject(res HTTPResponse) (any, error) {
	out := struct {
		StatusCode   int
		Content      string
		Headers      map[string]string
		RawBytes     []byte // base64
		ErrorMessage string
	}{res.Status, text(res.Body), res.Header, res.Body, ""}
	if out.Headers == nil {
		out.Headers = map[string]string{}
	}
	if out.RawBytes == nil {
		out.RawBytes = []byte{}
	}
	if res.Failed != nil {
		out.ErrorMessage = res.Failed.Error()
	}
	b, err := json.Marshal(out)
	return json.RawMessage(b), err
}

// httpOptions are the options of a verb, in the original platform's spellings too.
func httpOptions(verb string) []string {
	known := []string{"Url", "GetParam", "ParamType", "Headers", "Header", "Timeout", "TimeOut", "PostParam", "PostParamString", "FilesByteBase64"}
	if verb != "Get" && verb != "Post" {
		known = append(known, verb+"Param", verb+"ParamString")
	}
	return known
}

// first is the option that is given, of several spellings.
func first(fields map[string]json.RawMessage, names ...string) json.RawMessage {
	for _, n := range names {
		if v := fields[n]; len(v) > 0 && string(v) != "null" {
			return v
		}
	}
	return nil
}

func httpRequest(name, verb string, options any) (HTTPRequest, error) {
	r := HTTPRequest{Method: strings.ToUpper(verb), Header: map[string]string{}}
	switch o := options.(type) {
	case string:
		r.URL = o
		return r, nil
	case json.RawMessage:
		fields, err := objectOf(name, o, httpOptions(verb))
		if err != nil {
			return r, err
		}
		return r, r.fill(name, verb, fields)
	}
	return r, argErrorf("V8.%s: the argument must be an address or an object with Url", name)
}

func (r *HTTPRequest) fill(name, verb string, fields map[string]json.RawMessage) error {
	if err := optionText(name, "Url", fields["Url"], &r.URL); err != nil {
		return err
	}
	if r.URL == "" {
		return argErrorf("V8.%s: Url is missing", name)
	}
	query, err := flat(name, "GetParam", first(fields, "GetParam"))
	if err != nil {
		return err
	}
	if len(query) > 0 {
		address, fragment, _ := strings.Cut(r.URL, "#")
		r.URL = address + map[bool]string{true: "&", false: "?"}[strings.Contains(address, "?")] + query.Encode()
		if fragment != "" {
			r.URL += "#" + fragment
		}
	}
	if t := first(fields, "Timeout", "TimeOut"); t != nil {
		var seconds float64
		if json.Unmarshal(t, &seconds) != nil || seconds <= 0 || seconds > 86400 {
			return argErrorf("V8.%s: Timeout must be seconds, more than 0 and at most 86400", name)
		}
		r.Timeout = time.Duration(seconds * float64(time.Second))
	}
	if err := r.body(name, verb, fields); err != nil {
		return err
	}
	headers, err := flat(name, "Headers", first(fields, "Headers", "Header"))
	for k := range headers {
		for own := range r.Header {
			if strings.EqualFold(own, k) {
				delete(r.Header, own) // the author's word wins
			}
		}
		r.Header[k] = headers.Get(k)
	}
	return err
}

var contentTypes = map[string]string{"form": "application/x-www-form-urlencoded", "json": "application/json",
	"xml": "application/xml", "binary": "application/octet-stream"}

func (r *HTTPRequest) body(name, verb string, fields map[string]json.RawMessage) error {
	kind := "form"
	if err := optionText(name, "ParamType", fields["ParamType"], &kind); err != nil {
		return err
	}
	kind = strings.ToLower(kind)
	if contentTypes[kind] == "" {
		return argErrorf("V8.%s: ParamType must be form, json, xml or binary, not %s", name, kind)
	}
	own := verb
	if verb == "Get" { // GetParam is the query of every verb
		own = "Post"
	}
	param, raw := first(fields, "PostParam", own+"Param"), first(fields, "PostParamString", own+"ParamString")
	files := first(fields, "FilesByteBase64")
	switch {
	case verb == "Get" && (param != nil || raw != nil || files != nil):
		return argErrorf("V8.%s sends no body; use GetParam", name)
	case files != nil && (raw != nil || kind != "form"):
		return argErrorf("V8.%s: FilesByteBase64 goes with PostParam and ParamType form", name)
	case files != nil:
		form, err := flat(name, "PostParam", param)
		if err != nil {
			return err
		}
		return r.files(name, form, files)
	case param == nil && raw == nil:
		return nil
	case param != nil && raw != nil:
		return argErrorf("V8.%s: PostParam and PostParamString exclude each other", name)
	}
	r.Header["Content-Type"] = contentTypes[kind]
	if raw != nil {
		var s string
		if err := optionText(name, "PostParamString", raw, &s); err != nil {
			return err
		}
		r.Body = []byte(s)
		if kind == "binary" {
			b, err := base64.StdEncoding.DecodeString(s)
			if err != nil {
				return argErrorf("V8.%s: PostParamString must be base64 with ParamType binary", name)
			}
			r.Body = b
		}
		return nil
	}
	switch kind {
	case "json":
		r.Body = param
	case "form":
		form, err := flat(name, "PostParam", param)
		if err != nil {
			return err
		}
		r.Body = []byte(form.Encode())
	default:
		return argErrorf("V8.%s: ParamType %s needs PostParamString", name, kind)
	}
	return nil
}

// flat reads an object of strings, numbers and booleans; null is left out, an array in
// it repeats its name.
func flat(name, option string, text json.RawMessage) (url.Values, error) {
	if text == nil {
		return nil, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, argErrorf("V8.%s: %s must be an object", name, option)
	}
	out := url.Values{}
	for field, v := range object {
		values := []json.RawMessage{v}
		if v[0] == '[' {
			if err := json.Unmarshal(v, &values); err != nil {
				return nil, err
			}
		}
		for _, v := range values {
			switch {
			case v[0] == '{' || v[0] == '[':
				return nil, argErrorf("V8.%s: %s.%s must be a string or a number; use ParamType json for objects", name, option, field)
			case string(v) == "null":
			case v[0] == '"':
				var s string
				if err := json.Unmarshal(v, &s); err != nil {
					return nil, err
				}
				out.Add(field, s)
			default:
				out.Add(field, string(v))
			}
		}
	}
	return out, nil
}
