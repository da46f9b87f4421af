package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"apiengine/apis"
	"apiengine/fault"
)

// remote is a definition on the server.
type remote struct {
	key     string // in lower case
	def     apis.Definition
	version int
}

// definitions returns all of the tenant's, in the order of their keys.
func (c *Client) definitions(ctx context.Context) ([]remote, error) {
	var list []json.RawMessage
	if err := c.call(ctx, request{method: http.MethodGet, path: "/definitions"}, &list); err != nil {
		return nil, err
	}
	out := make([]remote, len(list))
	for i, text := range list {
		var err error
		if out[i], err = readRemote(text); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b remote) int { return strings.Compare(a.key, b.key) })
	return out, nil
}

// readRemote validates what the server sent: its key becomes the name of a file.
func readRemote(text json.RawMessage) (remote, error) {
	var v struct{ Version int }
	if err := json.Unmarshal(text, &v); err != nil {
		return remote{}, err
	}
	d, err := apis.DecodeJSON(text)
	if err == nil {
		d, err = d.Validate()
	}
	if err != nil {
		return remote{}, fault.Wrap(fault.Internal, err, "the server's definition %q cannot be read (%s); is the server of another version?", d.ApiEngineKey, fault.Public(err))
	}
	return remote{strings.ToLower(d.ApiEngineKey), d, v.Version}, nil
}

// put saves a definition when the live version is still ifVersion; 0: when there is none.
func (c *Client) put(ctx context.Context, d apis.Definition, ifVersion int) (version int, err error) {
	text, err := apis.EncodeJSON(d)
	if err != nil {
		return 0, err
	}
	header := map[string]string{"If-None-Match": "*"}
	if ifVersion > 0 {
		header = map[string]string{"If-Match": strconv.Quote(strconv.Itoa(ifVersion))}
	}
	var saved struct{ Version int }
	err = c.call(ctx, request{method: http.MethodPut, path: definitionPath(d.ApiEngineKey), header: header, body: json.RawMessage(text)}, &saved)
	return saved.Version, err
}

func (c *Client) remove(ctx context.Context, key string, ifVersion int) error {
	header := map[string]string{"If-Match": strconv.Quote(strconv.Itoa(ifVersion))}
	return c.call(ctx, request{method: http.MethodDelete, path: definitionPath(key), header: header}, nil)
}

func definitionPath(key string) string { return "/definitions/" + url.PathEscape(key) }
