package jsbridge

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// methodFuncs are V8.Method: small things that most handlers need.
func methodFuncs() []Func {
	return []Func{
		Fn("Method.NewGuid", "a random UUID", func(*Call, struct{}) (any, error) { return newUUID() }),
		Fn("Method.NewUlid", "a ULID: 26 characters that sort by the time they were made",
			func(*Call, struct{}) (any, error) { return ulid.Make().String(), nil }),
		Fn("Method.GetTimestamp", "seconds since 1970",
			func(*Call, struct{}) (any, error) { return time.Now().Unix(), nil }),
		Fn("Method.GetClientIP", "the address that the request came from; empty when it came from no client",
			func(c *Call, _ struct{}) (any, error) { return c.Env.Request.IP, nil }),
		Fn("Method.GetCurrentToken", "{OsClient, CurrentUser, Token} of who calls, or null; Token is always empty, and another's token is not looked up", currentToken),
		Fn("Method.ParseWhere", "a _Where of arrays as one of objects {Name, Value, Type, AndOr, GroupStart, GroupEnd}",
			func(_ *Call, in struct {
				Where json.RawMessage `js:"where"`
			}) (any, error) {
				return parseWhere(in.Where)
			}),
		Fn("Method.AddSysLog", "a line of this execution's log, from {Type, Title, Content, Level, Remark, OtherInfo} or (title, content, type); {Code: 1}", addSysLog),
	}
}

func currentToken(c *Call, in struct {
	Token    any `js:"token,optional"`
	OsClient any `js:"osClient,optional"`
}) (any, error) {
	if in.Token != nil && in.Token != "" {
		return nil, argErrorf("V8.Method.GetCurrentToken: only who calls is known, another's token cannot be looked up; call it without arguments")
	}
	if tenant, ok := in.OsClient.(string); ok && tenant != "" && !strings.EqualFold(tenant, c.Env.Tenant) {
		return nil, argErrorf("V8.Method.GetCurrentToken: %q is not this tenant", tenant)
	}
	var user struct {
		ID string `json:"Id"`
	}
	if len(c.Env.User) == 0 || json.Unmarshal(c.Env.User, &user) != nil || user.ID == "" {
		return nil, nil
	}
	return jsonOf(map[string]any{"OsClient": c.Env.Tenant, "CurrentUser": c.Env.User, "Token": ""})
}

// jsonOf is a native's answer that is an object.
func jsonOf(v any) (any, error) {
	text, err := json.Marshal(v)
	return json.RawMessage(text), err
}

// sysLogLevels are the console's levels for the numbers that AddSysLog is given.
var sysLogLevels = map[string]string{"2": "warn", "3": "error", "warn": "warn", "warning": "warn", "error": "error"}

func addSysLog(c *Call, in struct {
	Entry   any    `js:"entry"`
	Content string `js:"content,optional"`
	Type    string `js:"type,optional"`
}) (any, error) {
	var e map[string]json.RawMessage
	switch first := in.Entry.(type) {
	case string:
		e = map[string]json.RawMessage{}
		for name, text := range map[string]string{"Title": first, "Content": in.Content, "Type": in.Type} {
			e[name], _ = json.Marshal(text) // a string always encodes
		}
	case json.RawMessage:
		if err := json.Unmarshal(first, &e); err != nil {
			return nil, argErrorf("V8.Method.AddSysLog: the entry must be an object or a title")
		}
	default:
		return nil, argErrorf("V8.Method.AddSysLog: the entry must be an object or a title, not %s", got(first))
	}
	level, ok := sysLogLevels[strings.ToLower(textOf(e["Level"]))]
	if !ok {
		level = "info"
	}
	c.run.console.add(c.run.limits, Line{Level: level, Line: c.run.callerLine(), Text: sysLogText(e)})
	return json.RawMessage(`{"Code":1,"Msg":""}`), nil
}

func sysLogText(e map[string]json.RawMessage) string {
	var parts []string
	if typ := textOf(e["Type"]); typ != "" {
		parts = append(parts, "["+typ+"]")
	}
	for _, name := range []string{"Title", "Content", "Remark", "OtherInfo"} {
		if text := textOf(e[name]); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

// textOf is a member as text: a string's own, null's none, else the JSON.
func textOf(v json.RawMessage) string {
	var s string
	if v == nil || string(v) == "null" || json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}
