package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"
)

// NewToken is a token to be made, for the client's tenant unless AllTenants.
type NewToken struct {
	Name       string
	Roles      []string
	Scopes     []string   `json:",omitempty"`
	ExpiresAt  *time.Time `json:",omitempty"` // nil: never
	AllTenants bool       `json:",omitempty"`
}

// Token is what may be known of a token. Token is its text, only in the answer to its
// making.
type Token struct {
	Id        string
	Token     string `json:",omitempty"`
	Tenant    string
	Name      string
	Roles     []string
	Scopes    []string
	CreatedAt time.Time
	ExpiresAt *time.Time `json:",omitempty"`
	RevokedAt *time.Time `json:",omitempty"`
}

// String is the token's text when it is new; that is the one time it is shown.
func (t *Token) String() string {
	if t.Token == "" {
		return t.Id + "\n"
	}
	return t.Token + "\n"
}

// Tokens is a list of tokens.
type Tokens []Token

func (l Tokens) String() string {
	return table("ID\tTENANT\tNAME\tROLES\tSCOPES\tCREATED\tEXPIRES\tREVOKED", len(l), func(i int) []any {
		t := l[i]
		tenant := t.Tenant
		if tenant == "" {
			tenant = "(all)"
		}
		return []any{t.Id, tenant, t.Name, strings.Join(t.Roles, ","), strings.Join(t.Scopes, ","), day(&t.CreatedAt), day(t.ExpiresAt), day(t.RevokedAt)}
	})
}

func day(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

// CreateToken makes a token.
func (c *Client) CreateToken(ctx context.Context, t NewToken) (*Token, error) {
	out := &Token{}
	return out, c.call(ctx, request{method: http.MethodPost, path: "/tokens", body: t}, out)
}

// Tokens lists the tokens that the client may see.
func (c *Client) Tokens(ctx context.Context) (Tokens, error) {
	var out Tokens
	return out, c.call(ctx, request{method: http.MethodGet, path: "/tokens"}, &out)
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/tokens/" + url.PathEscape(id)}, nil)
}

// Tenant is one tenant.
type Tenant struct {
	Name      string
	CreatedAt time.Time
}

func (t *Tenant) String() string { return t.Name + "\n" }

// Tenants is a list of tenants.
type Tenants []Tenant

func (l Tenants) String() string {
	return table("NAME\tCREATED", len(l), func(i int) []any { return []any{l[i].Name, day(&l[i].CreatedAt)} })
}

// CreateTenant makes a tenant.
func (c *Client) CreateTenant(ctx context.Context, name string) (*Tenant, error) {
	out := &Tenant{}
	return out, c.call(ctx, request{method: http.MethodPost, path: "/tenants", body: map[string]string{"Name": name}}, out)
}

// Tenants lists the tenants that the client may see.
func (c *Client) Tenants(ctx context.Context) (Tenants, error) {
	var out Tenants
	return out, c.call(ctx, request{method: http.MethodGet, path: "/tenants"}, &out)
}

// SQLResult is the answer to a statement: rows, or how many were changed.
type SQLResult struct {
	Columns  []string
	Rows     []json.RawMessage // each a JSON array
	Affected int64
}

func (r *SQLResult) String() string {
	if len(r.Columns) == 0 {
		return fmt.Sprintf("%d rows changed\n", r.Affected)
	}
	return table(strings.Join(r.Columns, "\t"), len(r.Rows), func(i int) []any { return cells(r.Rows[i]) }) +
		fmt.Sprintf("%d rows\n", len(r.Rows))
}

// cells are the values of a row as text. Numbers keep their digits.
func cells(row json.RawMessage) []any {
	var list []any
	dec := json.NewDecoder(bytes.NewReader(row))
	dec.UseNumber()
	if err := dec.Decode(&list); err != nil {
		return []any{string(row)}
	}
	for i, v := range list {
		switch v.(type) {
		case nil:
			list[i] = "NULL"
		case map[string]any, []any:
			text, _ := json.Marshal(v) // it came as JSON
			list[i] = string(text)
		}
	}
	return list
}

// SQL runs one statement in the tenant's database, or in its named one.
func (c *Client) SQL(ctx context.Context, database, statement string) (*SQLResult, error) {
	out := &SQLResult{}
	body := map[string]string{"Sql": statement}
	if database != "" {
		body["Database"] = database
	}
	return out, c.call(ctx, request{method: http.MethodPost, path: "/sql", body: body}, out)
}

// table lines n rows up under a heading of names parted by tabs.
func table(heading string, n int, row func(i int) []any) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, visible(heading))
	for i := range n {
		for j, cell := range row(i) {
			if j > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(visible(fmt.Sprint(cell))))
		}
		fmt.Fprintln(w)
	}
	w.Flush() // into memory
	return b.String()
}
