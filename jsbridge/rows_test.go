package jsbridge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"apiengine/fault"
)

// rowCall is a right call of a row. Missing, surplus and wrong-typed arguments follow from
// the row itself; what an argument of any type must not be has to be said here.
type rowCall struct {
	args  []string       // JavaScript
	want  string         // of JSON.stringify of the answer; "*" anything
	wrong map[int]string // by argument, for those of any type; "" when any value will do
}

const anyValue = ""

var rowCalls = map[string]rowCall{
	"Cache.Get": {args: []string{`'k'`}, want: `"5"`}, "Cache.Set": {args: []string{`'k'`, `'v'`, `60`}, want: `true`},
	"Cache.Remove": {args: []string{`'k'`}, want: `true`}, "Cache.Del": {args: []string{`'k'`}, want: `true`}, "Cache.Delete": {args: []string{`'k'`}, want: `true`},
	"Cache.Exists": {args: []string{`'k'`}, want: `true`}, "Cache.KeyExist": {args: []string{`'k'`}, want: `true`},
	"Cache.Expire": {args: []string{`'k'`, `60`}, want: `true`}, "Cache.SetIfNotExists": {args: []string{`'new'`, `'v'`, `60`}, want: `true`},
	"Cache.Increment":     {args: []string{`'k'`, `2`, `60`}, want: `7`, wrong: map[int]string{1: `'2'`}},
	"Cache.GetAndRemove":  {args: []string{`'k'`}, want: `"5"`},
	"Cache.CompareAndSet": {args: []string{`'k'`, `'5'`, `'6'`, `60`}, want: `true`},
	"Cache.SetFenced":     {args: []string{`'k'`, `'v'`, `60`}, want: `true`},
	"Cache.HashSet":       {args: []string{`'h'`, `'f'`, `'v'`}, want: `true`}, "Cache.HashGet": {args: []string{`'h'`, `'f'`}, want: `"1"`},
	"Cache.HashGetAll": {args: []string{`'h'`}, want: `{"f":"1"}`}, "Cache.HashGetAllKeys": {args: []string{`'h'`}, want: `["f"]`},
	"Cache.HashDelete": {args: []string{`'h'`, `'f'`}, want: `true`}, "Cache.HashExists": {args: []string{`'h'`, `'f'`}, want: `true`},
	"Cache.HashLength": {args: []string{`'h'`}, want: `1`}, "Cache.HashIncrement": {args: []string{`'h'`, `'f'`, `2`}, want: `3`, wrong: map[int]string{2: `1.5`}},

	"Db.FromSql":            {args: []string{`'SELECT 1'`}, want: `{}`},
	"Query.AddInParameter":  {args: []string{`'@p0'`, `1`}, want: `{}`, wrong: map[int]string{1: `{}`}},
	"Query.ToArray":         {want: `[{"a":1}]`},
	"Query.First":           {want: `{"a":1}`},
	"Query.ToScalar":        {want: `[{"a":1}]`}, // the fake's only answer
	"Query.ExecuteNonQuery": {want: `1`},

	"Outbox.Send": {args: []string{`{EventId: 'e1', Type: 't', Data: {a: 1}, Target: 'api'}`}, want: `true`, wrong: map[int]string{0: `'x'`}},
	"Inbox.Once":  {args: []string{`'e1'`}, want: `true`},

	"Task.Submit":                 {args: []string{`{ApiEngineKey: 'import', Param: {a: 1}, Delay: 5}`}, want: `{"Id":"t1","Status":"Pending"}`, wrong: map[int]string{0: `'x'`}},
	"Method.UpdateBackgroundTask": {args: []string{`{Current: 5, Total: 10, Msg: 'half', Log: ['a']}`}, want: `true`, wrong: map[int]string{0: `{Current: -1}`}},

	"ApiEngine.Run": {args: []string{`'child'`, `{a: 1}`}, want: `{"child":{"a":1}}`, wrong: map[int]string{0: `5`, 1: `'x'`}},
	"Use":           {args: []string{`'lib/money'`}, want: `{"unit":"cent"}`},
	"Secret":        {args: []string{`'k'`}, want: `"secret k"`},

	"Lock.RemainingMs": {want: `3000`}, "Lock.IsHeld": {want: `true`}, "Lock.EnsureHeld": {want: `true`},
	"Response.Status": {args: []string{`201`}}, "Response.Header": {args: []string{`'X-A'`, `'b'`}}, "Response.Redirect": {args: []string{`'/x'`}},

	".NewGuid": {want: "*"}, ".crypto.randomUUID": {want: "*"}, ".System.Guid.NewGuid": {want: "*"},
	".btoa": {args: []string{`'ÿ'`}, want: `"/w=="`}, ".atob": {args: []string{`'/w=='`}, want: `"ÿ"`},
	"Base64.StringToBase64": {args: []string{`'é'`}, want: `"w6k="`}, "Base64.Base64ToString": {args: []string{`'w6k='`}, want: `"é"`},
	".System.Convert.ToBase64String": {args: []string{`new Uint8Array([255])`}, want: `"/w=="`}, ".System.Convert.FromBase64String": {args: []string{`'w6k='`}, want: `"é"`},
	".System.Text.Encoding.UTF8.GetBytes":     {args: []string{`'é'`}, want: `{"0":195,"1":169}`},
	".System.Text.Encoding.UTF8.GetByteCount": {args: []string{`'é'`}, want: `2`},
	".System.Text.Encoding.UTF8.GetString":    {args: []string{`new Uint8Array([195, 169])`}, want: `"é"`},
	".DateNow":                                {args: []string{`'yyyy'`}, want: "*"},
	".DateFormat":                             {args: []string{`'2024-02-29'`, `'yyyy/MM'`}, want: `"2024/02"`, wrong: map[int]string{0: `'never'`}},
	".DateAdd":                                {args: []string{`'2024-02-29'`, `'y'`, `1`, `'yyyy-MM-dd'`}, want: `"2025-02-28"`, wrong: map[int]string{0: `'never'`, 2: `'x'`}},

	"Method.NewGuid": {want: "*"}, "Method.NewUlid": {want: "*"}, "Method.GetTimestamp": {want: "*"}, "Method.GetClientIP": {want: `"10.0.0.9"`},
	"Method.GetCurrentToken": {args: []string{`''`, `'t1'`}, want: `{"CurrentUser":{"Id":"u1"},"OsClient":"t1","Token":""}`, wrong: map[int]string{0: `'other'`, 1: `'t2'`}},
	"Method.ParseWhere":      {args: []string{`[['OR', '(', 'a', '>', 1, ')']]`}, want: `[{"Name":"a","Value":1,"Type":">","AndOr":"OR","GroupStart":true,"GroupEnd":true}]`},
	"Method.AddSysLog":       {args: []string{`'title'`, `'content'`, `'type'`}, want: `{"Code":1,"Msg":""}`, wrong: map[int]string{0: `5`}},

	"EncryptHelper.MD5Encrypt": {args: []string{`'abc'`, `32`}, want: `"900150983cd24fb0d6963f7d28e17f72"`},
	"EncryptHelper.SHA1":       {args: []string{`'abc'`}, want: `"A9993E364706816ABA3E25717850C26C9CD0D89D"`},
	"EncryptHelper.SHA256":     {args: []string{`'abc'`}, want: `"BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"`},
	"EncryptHelper.SHA512":     {args: []string{`'abc'`}, want: `"DDAF35A193617ABACC417349AE20413112E6FA4E89A97EA20A9EEEE64B55D39A2192992A274FC1A836BA3C23A3FEEBBD454D4423643CE80E2A9AC94FA54CA49F"`},
	"EncryptHelper.Sha256Hex":  {args: []string{`'abc'`}, want: `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`},
	"EncryptHelper.HmacSha256": {args: []string{`'key'`, `'The quick brown fox jumps over the lazy dog'`}, want: `"f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"`},
	// The first block is NIST SP 800-38A's F.2.1; with the padding it is what openssl gives.
	"EncryptHelper.AESEncode": {args: []string{`new Uint8Array([0x6b,0xc1,0xbe,0xe2,0x2e,0x40,0x9f,0x96,0xe9,0x3d,0x7e,0x11,0x73,0x93,0x17,0x2a])`,
		`new Uint8Array([0x2b,0x7e,0x15,0x16,0x28,0xae,0xd2,0xa6,0xab,0xf7,0x15,0x88,0x09,0xcf,0x4f,0x3c])`, `new Uint8Array([0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15])`},
		want: `"dkmrrIEZskbO6Y6bEukZfYlk4LFJwQt7aC5uOarrcxw="`},
	"EncryptHelper.AESDecode": {args: []string{`V8.EncryptHelper.AESEncode('grüße', '0123456789abcdef')`, `'0123456789abcdef'`}, want: `"grüße"`},
}

func formCall(op string) rowCall {
	return rowCall{args: []string{`'t'`, `{Id: 1}`, `V8.DbTrans`}, want: `{"Code":1,"Data":["` + op + `"],"DataCount":0,"Msg":""}`, wrong: map[int]string{0: `5`, 1: `'x'`}}
}

// httpCall is what the echo of rowEnv answers.
func httpCall(name string) rowCall {
	c := rowCall{args: []string{`'https://example.com/a'`}, want: `"` + strings.ToUpper(strings.TrimSuffix(name, "Response")) + ` https://example.com/a"`, wrong: map[int]string{0: `5`}}
	if strings.HasSuffix(name, "Response") {
		raw := base64.StdEncoding.EncodeToString([]byte(strings.Trim(c.want, `"`)))
		c.want = `{"StatusCode":200,"Content":` + c.want + `,"Headers":{},"RawBytes":"` + raw + `","ErrorMessage":""}`
	}
	return c
}

func callOf(f Func) (rowCall, bool) {
	if name, ok := strings.CutPrefix(f.Name, "Http."); ok {
		return httpCall(name), true
	}
	if op, ok := strings.CutPrefix(f.Name, "FormEngine."); ok && (strings.HasPrefix(op, "Get") || !strings.Contains(op, "TableData") && !strings.HasSuffix(op, "Batch")) {
		return formCall(op), true
	}
	if op, ok := strings.CutPrefix(f.Name, "FormEngine."); ok {
		c := formCall(op)
		c.args[1], c.wrong[1] = `[{Id: 1}]`, `{Id: 1}`
		return c, true
	}
	c, ok := rowCalls[f.Name]
	return c, ok
}

// onForm is the fake database for rows: it answers with the operation's name.
type onForm struct{ fakeDB }

func (d *onForm) Form(_ context.Context, op, _ string, _ json.RawMessage) (FormResult, error) {
	return FormResult{Code: 1, Data: json.RawMessage(`["` + op + `"]`)}, nil
}

// post is an outbox that takes everything, echo a server that answers with the request.
type (
	post struct{}
	echo struct{}
)

func (post) Send(context.Context, Event) (bool, error)  { return true, nil }
func (post) Once(context.Context, string) (bool, error) { return true, nil }

// clerk keeps every task.
type clerk struct{}

func (clerk) Submit(context.Context, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"Id":"t1","Status":"Pending"}`), nil
}

func (echo) Do(_ context.Context, r HTTPRequest) (HTTPResponse, error) {
	return HTTPResponse{Status: 200, Body: []byte(r.Method + " " + r.URL)}, nil
}

func rowEnv() *Env {
	e := env()
	e.Outbox, e.Tasks, e.HTTP = post{}, clerk{}, echo{}
	e.Report = func(Progress) {}
	e.Cache = &memCache{strings: map[string]string{"k": "5"}, hashes: map[string]map[string]string{"h": {"f": "1"}}}
	e.DB = func(string) (Database, error) { return &onForm{fakeDB{rows: `[{"a":1}]`, n: 1}}, nil }
	e.Lock = &fakeLock{}
	e.User = json.RawMessage(`{"Id":"u1"}`)
	e.Request.IP = "10.0.0.9"
	e.Secret = func(_ context.Context, name string) (string, error) { return "secret " + name, nil }
	e.Library = libraries(map[string]string{"money": `return { unit: 'cent', twice: function (n) { return 2 * n; } };`})
	e.Invoke = func(_ context.Context, key string, param json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"` + key + `":` + string(param) + `}`), nil
	}
	return e
}

func receiver(name string) string {
	switch {
	case strings.HasPrefix(name, "."):
		return name[1:]
	case strings.HasPrefix(name, "Query."):
		return "V8.Db.FromSql('SELECT 1')." + name[len("Query."):]
	}
	return "V8." + name
}

// TestEveryRow calls every native with right, missing, surplus and wrong-typed arguments.
// A row that is not in the tables above fails.
func TestEveryRow(t *testing.T) {
	b := newBridge(t, Config{})
	for _, f := range allFuncs() {
		t.Run(shownName(f.Name), func(t *testing.T) {
			c, ok := callOf(f)
			if !ok {
				t.Fatal("no call of this row in rowCalls")
			}
			if f.Doc == "" {
				t.Error("no doc")
			}
			call := func(args []string) string { return receiver(f.Name) + "(" + strings.Join(args, ", ") + ")" }
			if got := result(t, b, rowEnv(), `return JSON.stringify(`+call(c.args)+`)`); c.want != "*" && got != c.want && (c.want != "" || got != "undefined") {
				t.Errorf("%s: got %s, want %s", call(c.args), got, c.want)
			}
			if !strings.HasPrefix(f.Name, ".") { // the twin
				twin := `return JSON.stringify(await ` + receiver(f.Name) + "Async(" + strings.Join(c.args, ", ") + `))`
				if got := result(t, b, rowEnv(), twin); c.want != "*" && got != c.want && (c.want != "" || got != "undefined") {
					t.Errorf("the twin: got %s, want %s", got, c.want)
				}
			}
			for _, bad := range badArgs(t, f, c) {
				if msg := refusal(t, b, call(bad)); !strings.HasPrefix(msg, "TypeError: ") || !strings.Contains(msg, lastName(f.Name)) {
					t.Errorf("%s: %q is no TypeError that names the function", call(bad), msg)
				}
			}
		})
	}
}

func lastName(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// badArgs are lists of arguments that a row must refuse.
func badArgs(t *testing.T, f Func, c rowCall) (out [][]string) {
	full := append([]string{}, c.args...)
	for len(full) < len(f.args) {
		full = append(full, "undefined")
	}
	out = append(out, append(append([]string{}, full...), "1")) // surplus
	for i, a := range f.args {
		anything := a.typ == typeAny || a.typ == typeOrDB || a.typ == typeStored
		if !a.optional {
			out = append(out, full[:i]) // too few
		}
		if !a.optional && !anything {
			out = append(out, replacedArg(full, i, "null"))
		}
		if a.typ == typeInDB {
			for _, wrong := range []string{"{}", "'stock'", "true", "V8.Dbs", "V8.DbRead", "V8.Cache", "new Date(0)"} {
				out = append(out, replacedArg(full, i, wrong))
			}
		}
		if a.typ == typeOrDB || a.typ == typeStored {
			out = append(out, replacedArg(full, i, "V8.Dbs"), replacedArg(full, i, "V8.DbRead"))
		}
		wrong := wrongValue(a)
		if anything {
			w, said := c.wrong[i]
			if wrong = w; !said {
				t.Errorf("rowCalls says no wrong value for argument %q", a.name)
			}
		}
		if wrong != anyValue {
			out = append(out, replacedArg(full, i, wrong))
		}
		out = append(out, replacedArg(full, i, "function () {}"))
	}
	return out
}

func replacedArg(args []string, i int, with string) []string {
	out := append([]string{}, args...)
	out[i] = with
	return out
}

func wrongValue(a argField) string {
	switch a.typ {
	case typeRaw, typeInDB:
		return "5"
	case typeDuration:
		return "'soon'"
	case typeBytes:
		return "5"
	}
	switch a.typ.Kind().String() {
	case "string":
		return "5"
	case "bool":
		return "'x'"
	}
	return "'5x'"
}

func refusal(t *testing.T, b *Bridge, call string) string {
	t.Helper()
	e := rowEnv()
	e.Limits.Deadline = time.Now().Add(10 * time.Second)
	rep, err := b.Run(context.Background(), compile(t, "return "+call), e)
	if err == nil {
		return fmt.Sprintf("answered %s %s", rep.Outcome.Text, rep.Outcome.Result)
	}
	return fault.Public(err)
}
