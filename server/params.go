package server

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"

	"apiengine/fault"
)

// params are what a request says: one JSON object, and the files of a form.
type params struct {
	object []byte // nil: {}
	files  map[string]string
}

// body is what a Content-Type's decoder made of a request body.
type body struct {
	object []byte     // JSON; nil: none
	fields url.Values // a form's or an XML document's
	files  map[string]string
}

// readParams joins body and query (contract 4.2): JSON over form fields over the query
// string. An object that comes alone goes through as it was sent.
func (x *exchange) readParams(query url.Values) (params, error) {
	b, err := x.readBody()
	if err != nil {
		return params{}, err
	}
	object, err := merge(b.object, b.fields, query)
	return params{object: object, files: b.files}, err
}

func (x *exchange) readBody() (body, error) {
	r := x.r
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return body{}, nil
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return body{}, refuse(fault.BadRequest, "a body with Content-Encoding %q is not taken; send it uncompressed", enc)
	}
	raw, err := x.readAll()
	if err != nil || len(raw) == 0 {
		return body{}, err
	}
	return decodeBody(r.Header.Get("Content-Type"), raw)
}

// readAll reads the body under its size limit; its deadline is the server's ReadTimeout.
func (x *exchange) readAll() ([]byte, error) {
	limit := x.s.cfg.MaxBody
	if x.r.ContentLength > limit {
		x.set("Connection", "close")
		return nil, tooLarge(limit)
	}
	src := x.r.Body
	if x.r.ContentLength < 0 { // else net/http ends it at its length, which is within the limit
		src = http.MaxBytesReader(x.w, src, limit)
	}
	buf := bytes.NewBuffer(make([]byte, 0, min(max(x.r.ContentLength, 0), 64<<10)+bytes.MinRead))
	_, err := buf.ReadFrom(src)
	var over *http.MaxBytesError
	switch {
	case err == nil:
		return buf.Bytes(), nil
	case errors.As(err, &over):
		return nil, tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.set("Connection", "close")
		return nil, refuse(fault.BadRequest, "the body did not arrive within %v", x.s.cfg.BodyTimeout)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, refuse(fault.BadRequest, "the body ended before its Content-Length")
	}
	return nil, &fault.Error{K: fault.BadRequest, Msg: "the body could not be read", Cause: err}
}

func tooLarge(limit int64) error {
	return refuse(fault.PayloadTooLarge, "the body is larger than %d bytes", limit).
		with(map[string]any{"LimitBytes": limit})
}

// decodeBody decodes raw by its Content-Type. Text without a type, or as text/plain, is
// taken when it is a JSON object: what clients of the original platform send.
func decodeBody(contentType string, raw []byte) (body, error) {
	media, args := contentType, map[string]string(nil)
	if contentType != "" && contentType != "application/json" { // nearly all are just this
		var err error
		if media, args, err = mime.ParseMediaType(contentType); err != nil {
			return body{}, refuse(fault.BadRequest, "the Content-Type %q cannot be read", contentType)
		}
	}
	if c := args["charset"]; c != "" && !strings.EqualFold(c, "utf-8") && !strings.EqualFold(c, "utf8") && !strings.EqualFold(c, "us-ascii") {
		return body{}, refuse(fault.BadRequest, "the body must be UTF-8, not %s", c)
	}
	switch {
	case media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"):
		return decodeJSON(raw)
	case media == "application/x-www-form-urlencoded":
		return decodeForm(raw)
	case media == "multipart/form-data":
		return decodeMultipart(args["boundary"], raw)
	case media == "application/xml" || media == "text/xml" || strings.HasSuffix(media, "+xml"):
		return decodeXML(raw)
	case (media == "" || media == "text/plain") && firstByte(raw) == '{':
		return decodeJSON(raw)
	}
	return body{}, refuse(fault.BadRequest, "a body of Content-Type %q is not understood; send application/json, "+
		"application/x-www-form-urlencoded, multipart/form-data or application/xml", contentType)
}

func decodeJSON(raw []byte) (body, error) {
	object, err := checkObject(raw)
	return body{object: object}, err
}

func decodeForm(raw []byte) (body, error) {
	if firstByte(raw) == '{' {
		return body{}, refuse(fault.BadRequest, "the body looks like JSON but its Content-Type says form; send Content-Type: application/json")
	}
	fields, err := url.ParseQuery(string(raw))
	if err != nil {
		return body{}, refuse(fault.BadRequest, "the form cannot be read: %v", err)
	}
	return body{fields: fields}, nil
}

// firstByte is the first byte after a byte order mark and white space; 0 when there is none.
func firstByte(raw []byte) byte {
	if t := bytes.TrimLeft(bytes.TrimPrefix(raw, mark), " \t\r\n"); len(t) > 0 {
		return t[0]
	}
	return 0
}

// plainQuery is queryOf for the platform's own addresses, where no value has a use for NUL,
// which PostgreSQL keeps in no text.
func plainQuery(u *url.URL) (url.Values, error) {
	q, err := queryOf(u)
	if err != nil {
		return q, err
	}
	for name, values := range q {
		if strings.Contains(name+strings.Join(values, ""), "\x00") {
			return q, refuse(fault.BadRequest, "the query string has a NUL").with(map[string]any{"Field": strings.ReplaceAll(name, "\x00", "")})
		}
	}
	return q, nil
}

// queryOf reads the query string; nil when there is none.
func queryOf(u *url.URL) (url.Values, error) {
	if u.RawQuery == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return q, refuse(fault.BadRequest, "the query string cannot be read: %v", err)
	}
	return q, nil
}
