package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// Egress is what a tenant may reach outside.
type Egress struct {
	Mode  string
	Allow []string `json:",omitempty"`
}

func (e *Egress) String() string {
	return strings.Join(append([]string{e.Mode}, e.Allow...), "\n") + "\n"
}

// Egress returns a tenant's rules.
func (c *Client) Egress(ctx context.Context, tenant string) (*Egress, error) {
	out := &Egress{}
	return out, c.call(ctx, request{method: http.MethodGet, path: "/tenants/" + url.PathEscape(tenant) + "/egress"}, out)
}

// SetEgress replaces a tenant's rules and returns them in full.
func (c *Client) SetEgress(ctx context.Context, tenant string, e Egress) (*Egress, error) {
	out := &Egress{}
	return out, c.call(ctx, request{method: http.MethodPut, path: "/tenants/" + url.PathEscape(tenant) + "/egress", body: e}, out)
}
