package engine

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"apiengine/jsbridge"
	"apiengine/lockwrap"
)

// env is everything that the frame's script may see and use.
func (f *frame) env() *jsbridge.Env {
	cfg, c := &f.tree.e.cfg, &f.call
	root := &f.tree.call
	env := &jsbridge.Env{
		Tenant: c.Tenant, APIKey: f.api.Definition.ApiEngineKey, InvokeType: "Client",
		Param: c.Param, Header: root.Header, Files: c.Files,
		User: userJSON(c.Caller), SysConfig: cfg.Settings.SysConfig(c.Tenant),
		Request: jsbridge.Request{Method: root.Method, Path: root.Path, IP: root.ClientIP, ID: root.RequestID},
		// An instant after its caller's where the two have one deadline: then the caller's
		// comes first, in whose name the call ends, and no second timer runs.
		Limits: jsbridge.Limits{Deadline: f.deadline.Add(time.Duration(f.depth())), Depth: f.depth()},
		Secret: f.secret,
		Cache:  f.cache(),
		DB:     func(name string) (jsbridge.Database, error) { return session{f: f, name: strings.ToLower(name)}, nil },
		DBRead: func() (jsbridge.Database, error) { return session{f: f, reads: true}, nil },
		Outbox: mailbox{f},
		Tasks:  taskBox{f},
		Invoke: f.nested,
		Left:   root.place.keep,
		Library: func(_ context.Context, name string) (*jsbridge.Program, error) {
			return f.library(name)
		},
	}
	if cfg.HTTP != nil {
		env.HTTP = outside{f}
	}
	if t := root.trust; t != nil {
		env.Report = t.Report
	}
	if f.parent != nil || c.Origin == OriginOutbox || c.Origin == OriginTask {
		env.InvokeType = "Server"
	}
	if f.lease != nil {
		env.Lock = leaseView{f.lease}
	}
	return env
}

// userJSON is V8.CurrentUser.
func userJSON(c Caller) json.RawMessage {
	if c.Anonymous() {
		return json.RawMessage("{}")
	}
	roles := c.Roles
	if roles == nil {
		roles = []string{}
	}
	text, err := json.Marshal(struct {
		ID      string `json:"Id"`
		Account string
		Name    string
		Roles   []string
		Level   int
	}{c.ID, c.Account, c.Name, roles, c.Level})
	if err != nil {
		return json.RawMessage("{}") // strings and numbers always encode
	}
	return text
}

// leaseView is V8.Lock.
type leaseView struct{ l *lockwrap.Lease }

func (v leaseView) Key() string                       { return v.l.Key().String() }
func (v leaseView) Token() int64                      { return v.l.Token() }
func (v leaseView) Remaining() time.Duration          { return v.l.Remaining() }
func (v leaseView) Held() bool                        { return v.l.Held() }
func (v leaseView) Confirm(ctx context.Context) error { return v.l.Confirm(ctx) }

func remaining(deadline time.Time) time.Duration { return max(0, time.Until(deadline)) }
