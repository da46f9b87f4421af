// Package client does what the commands of apiengine that talk to a server do: it keeps
// a folder of definition files and a server's tenant in step, runs and explains APIs, and
// handles tokens, tenants, statements and tasks, all over HTTP.
//
// Every command returns one result value. Its String is for people, its JSON for programs.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"apiengine/fault"
)

// Client is one server, seen as one tenant. The zero URL is a server on this machine.
type Client struct {
	URL    string       // default http://127.0.0.1:8080
	Token  string       // sent as Authorization: Bearer
	Tenant string       // empty: the token's, else the server's default
	HTTP   *http.Client // default http.DefaultClient: a command is ended by its context
}

const (
	defaultURL  = "http://127.0.0.1:8080"
	adminPrefix = "/admin/api/v1"
	maxAnswer   = 1 << 30 // bytes; a tenant's definitions come in one answer
)

// ServerError is a refusal by the server. It has the Kind that the server named.
type ServerError struct {
	Status  int
	K       fault.Kind
	Msg     string
	Fields  map[string]any // DataAppend.Error
	Request string         // X-Request-Id
}

func (e *ServerError) Error() string { return e.Msg }

// Kind classifies the error.
func (e *ServerError) Kind() fault.Kind { return e.K }

// Public is the server's own text.
func (e *ServerError) Public() string { return e.Msg }

// Details are the particulars that the server gave.
func (e *ServerError) Details() map[string]any { return e.Fields }

// request is one call of the admin API, or of another part of the server.
type request struct {
	method, path string
	root         string // what path is below; default adminPrefix
	header       map[string]string
	body         any // nil: none
}

// call sends r and decodes Data of the answer into data, which may be nil.
func (c *Client) call(ctx context.Context, r request, data any) error {
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return err
	}
	res, err := cmp.Or(c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return unreachable(ctx, c.url(), err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return unreachable(ctx, c.url(), err)
	}
	err = decodeAnswer(res, text, data)
	if refused := new(ServerError); c.Token == "" && errors.As(err, &refused) && refused.K == fault.Unauthenticated {
		refused.Msg += "; give one by --token or APIENGINE_TOKEN"
	}
	return err
}

func (c *Client) newRequest(ctx context.Context, r request) (*http.Request, error) {
	base, err := url.Parse(c.url())
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fault.New(fault.BadRequest, "%q is no address of a server: it must be like http://127.0.0.1:8080", c.URL)
	}
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.url()+cmp.Or(r.root, adminPrefix)+r.path, body)
	if err != nil {
		return nil, err
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Tenant != "" {
		req.Header.Set("OsClient", c.Tenant)
	}
	return req, nil
}

func (c *Client) url() string { return strings.TrimRight(cmp.Or(c.URL, defaultURL), "/") }

// decodeAnswer reads the envelope. A Code other than 1 is a refusal whatever the status
// is: a server can be set to answer everything by 200.
func decodeAnswer(res *http.Response, text []byte, data any) error {
	var envelope struct {
		Code       int
		Data       json.RawMessage
		Msg        string
		DataAppend struct{ Error map[string]any }
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return fault.New(fault.Internal, "%s answered %s, which is no answer of the admin API: is this the address of an apiengine server?", res.Request.URL, res.Status)
	}
	if envelope.Code != 1 {
		kind, _ := envelope.DataAppend.Error["Kind"].(string)
		return &ServerError{Status: res.StatusCode, K: fault.Kind(cmp.Or(kind, string(fault.Internal))), Msg: cmp.Or(envelope.Msg, res.Status),
			Fields: envelope.DataAppend.Error, Request: res.Header.Get("X-Request-Id")}
	}
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(envelope.Data, data); err != nil {
		return fault.Wrap(fault.Internal, err, "%s: the answer cannot be read; is the server of another version?", res.Request.URL)
	}
	return nil
}

// unreachable tells the caller's own end from a server that is not there.
func unreachable(ctx context.Context, address string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fault.New(fault.StoreUnavailable, "the server at %s cannot be reached: %v", address, err)
}

// visible writes control characters as escapes: what a server or a file says must not
// steer the terminal.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && r != '\t' && (r < ' ' || (r >= 0x7f && r < 0xa0)) {
			fmt.Fprintf(&b, `\x%02x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
