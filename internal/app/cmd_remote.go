package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"apiengine/apis"
	"apiengine/fault"
	"apiengine/internal/client"
	"apiengine/jsbridge"
)

// remote is what every command that talks to a server takes.
type remote struct {
	URL    string `default:"http://127.0.0.1:8080" env:"APIENGINE_URL" help:"Address of the server."`
	Token  string `env:"APIENGINE_TOKEN" help:"Admin token."`
	Tenant string `env:"APIENGINE_TENANT" help:"Tenant; none: the token's, else default."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

func (r *remote) client() *client.Client {
	return &client.Client{URL: r.URL, Token: r.Token, Tenant: r.Tenant}
}

// result is what a command found out: text for people, JSON for programs.
type result interface {
	fmt.Stringer
}

// show prints v; a result that says it failed makes the command fail without further words.
func show(io streams, asJSON bool, v result, err error) error {
	if err != nil {
		if asJSON {
			return errorJSON(io, err)
		}
		return err
	}
	if asJSON {
		enc := json.NewEncoder(io.out)
		enc.SetIndent("", "  ")
		err = enc.Encode(withLists(v))
	} else {
		_, err = fmt.Fprint(io.out, v.String())
	}
	if f, ok := v.(interface{ Failed() bool }); ok && err == nil && f.Failed() {
		return errReported
	}
	return err
}

// errorJSON prints a failure in the form of the server's envelope.
func errorJSON(io streams, err error) error {
	text := fault.Public(err)
	if fault.Of(err) == fault.Internal {
		text = err.Error() // a local failure has no server's log to look into
	}
	details := map[string]any{"Kind": fault.Of(err)}
	for name, v := range fault.Details(err) {
		details[name] = v
	}
	if err := json.NewEncoder(io.out).Encode(map[string]any{"Code": 0, "Msg": text, "DataAppend": map[string]any{"Error": details}}); err != nil {
		return err
	}
	return errReported
}

// compile is how every definition becomes a program.
func compile(d apis.Definition) (*jsbridge.Program, error) {
	return jsbridge.Compile(sourceOf(d))
}

// compiles finds what is wrong with a definition's script.
func compiles(d apis.Definition) error {
	_, err := compile(d)
	return err
}

type pushCmd struct {
	remote
	Dir   string `arg:"" help:"Folder of definition files."`
	Force bool   `help:"Overwrite what was changed on the server since the last pull or push."`
	Prune bool   `help:"Remove APIs whose file is gone since the last pull or push."`
}

// Run implements the command.
func (c *pushCmd) Run(ctx context.Context, io streams) error {
	done, err := c.client().Push(ctx, c.Dir, client.PushOptions{Force: c.Force, Prune: c.Prune, Compile: compiles})
	return show(io, c.JSON, done, err)
}

type pullCmd struct {
	remote
	Dir   string `arg:"" help:"Folder to write into."`
	Force bool   `help:"Overwrite files that were changed here since the last pull or push."`
}

// Run implements the command.
func (c *pullCmd) Run(ctx context.Context, io streams) error {
	done, err := c.client().Pull(ctx, c.Dir, client.PullOptions{Force: c.Force})
	return show(io, c.JSON, done, err)
}

type diffCmd struct {
	remote
	Dir      string `arg:"" help:"Folder of definition files."`
	ExitCode bool   `help:"Fail (exit code 1) when push would change something."`
}

// Run implements the command.
func (c *diffCmd) Run(ctx context.Context, io streams) error {
	found, err := c.client().Diff(ctx, c.Dir)
	err = show(io, c.JSON, found, err)
	if err == nil && (len(found.Problems) > 0 || c.ExitCode && found.Differs()) {
		return errReported
	}
	return err
}

// call is the API and the parameters of run and plan.
type call struct {
	Key   string `arg:"" help:"ApiEngineKey."`
	Param string `default:"{}" help:"Parameters, a JSON object; @FILE reads them from a file."`
}

func (c *call) param() (json.RawMessage, error) {
	text := []byte(c.Param)
	if len(c.Param) > 1 && c.Param[0] == '@' {
		var err error
		if text, err = os.ReadFile(c.Param[1:]); err != nil {
			return nil, &SettingError{"param", err.Error()}
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, &SettingError{"param", "must be a JSON object"}
	}
	return text, nil
}

type runCmd struct {
	remote
	call
	Version int `help:"Run this version instead of the live one."`
}

// Run implements the command.
func (c *runCmd) Run(ctx context.Context, io streams) error {
	param, err := c.param()
	if err != nil {
		return err
	}
	done, err := c.client().Run(ctx, client.RunRequest{Key: c.Key, Param: param, Version: c.Version})
	if err == nil && !c.JSON {
		fmt.Fprint(io.err, done.ConsoleText()) // apart from the answer, which may be piped on
	}
	return show(io, c.JSON, done, err)
}

type planCmd struct {
	remote
	call
	Task bool `help:"As a slice of a background task, whose leases are renewed."`
}

// Run implements the command.
func (c *planCmd) Run(ctx context.Context, io streams) error {
	param, err := c.param()
	if err != nil {
		return err
	}
	found, err := c.client().Plan(ctx, client.PlanRequest{Key: c.Key, Param: param, Task: c.Task})
	return show(io, c.JSON, found, err)
}

type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token; it is shown once."`
	List   tokenListCmd   `cmd:"" help:"List the tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"End a token."`
}

type tokenCreateCmd struct {
	remote
	Name    string        `arg:"" help:"What the token is for."`
	Roles   []string      `name:"role" help:"Roles, for ApiRole; admin, author and viewer also open the admin API."`
	Scopes  []string      `name:"scope" help:"What the token may do beside calling APIs: tasks:submit, tasks:manage."`
	Expires time.Duration `help:"End the token after this time, such as 720h; none: never."`
	Every   bool          `name:"all-tenants" help:"Make a token for every tenant; only such a token can."`
}

// Run implements the command.
func (c *tokenCreateCmd) Run(ctx context.Context, io streams) error {
	t := client.NewToken{Name: c.Name, Roles: c.Roles, Scopes: c.Scopes, AllTenants: c.Every}
	if c.Expires < 0 {
		return &SettingError{"expires", "must not be negative"}
	}
	if c.Expires > 0 {
		at := time.Now().Add(c.Expires)
		t.ExpiresAt = &at
	}
	made, err := c.client().CreateToken(ctx, t)
	return show(io, c.JSON, made, err)
}

type tokenListCmd struct{ remote }

// Run implements the command.
func (c *tokenListCmd) Run(ctx context.Context, io streams) error {
	list, err := c.client().Tokens(ctx)
	return show(io, c.JSON, list, err)
}

type tokenRevokeCmd struct {
	remote
	ID string `arg:"" help:"The token's id, from token list."`
}

// Run implements the command.
func (c *tokenRevokeCmd) Run(ctx context.Context, io streams) error {
	return show(io, c.JSON, done("revoked "+c.ID), c.client().RevokeToken(ctx, c.ID))
}

type tenantCmd struct {
	Create   tenantCreateCmd   `cmd:"" help:"Make a tenant with a database of its own."`
	List     tenantListCmd     `cmd:"" help:"List the tenants."`
	Egress   tenantEgressCmd   `cmd:"" help:"Show or set what a tenant may reach by V8.Http and V8.Outbox."`
	Database tenantDatabaseCmd `cmd:"" help:"Give a tenant more databases, list and remove them."`
}

type tenantCreateCmd struct {
	remote
	Name string `arg:"" help:"Lower-case letters, digits, - and _; at most 40."`
}

// Run implements the command.
func (c *tenantCreateCmd) Run(ctx context.Context, io streams) error {
	made, err := c.client().CreateTenant(ctx, c.Name)
	return show(io, c.JSON, made, err)
}

type tenantListCmd struct{ remote }

// Run implements the command.
func (c *tenantListCmd) Run(ctx context.Context, io streams) error {
	list, err := c.client().Tenants(ctx)
	return show(io, c.JSON, list, err)
}

type sqlCmd struct {
	remote
	Statement string `arg:"" help:"One SQL statement."`
	Database  string `help:"Name of a database beside the tenant's own (tenant database list)."`
}

// Run implements the command.
func (c *sqlCmd) Run(ctx context.Context, io streams) error {
	found, err := c.client().SQL(ctx, c.Database, c.Statement)
	return show(io, c.JSON, found, err)
}

// done is a result that is only a sentence.
type done string

func (d done) String() string { return string(d) + "\n" }
