package jsbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestConversions is the table of what becomes of a JavaScript value on its way out: as a
// part of the answer, as a statement's parameter and as a nested call's parameter. "!" begins
// the text of an error. (What databases make of parameters is in engine_test/testdata/corpus/11
// and store/tenantdb, for both of them.)
func TestConversions(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ js, answer, param, nested string }{
		{"1", "1", "int64 1", "1"},
		{"-0", "0", "int64 0", "0"},
		{"1.5", "1.5", "float64 1.5", "1.5"},
		{"1e21", "1e+21", "float64 1e+21", "1e+21"},
		{"9007199254740991", "9007199254740991", "int64 9007199254740991", "9007199254740991"},
		{"9007199254740993n", "!the result cannot be JSON: a BigInt at v", "string 9007199254740993", `"9007199254740993"`},
		{"5n", "!the result cannot be JSON: a BigInt at v", "string 5", `"5"`},
		{"NaN", "null", "float64 NaN", "null"},
		{"-Infinity", "null", "float64 -Inf", "null"},
		{"true", "true", "bool true", "true"},
		{"'é价😀'", `"é价😀"`, "string é价😀", `"é价😀"`},
		{"'a\\ud800b'", `"a\ud800b"`, "string a\ufffdb", `"a\ud800b"`},
		{"'\\u0000\\u2028\"'", `"\u0000` + "\u2028" + `\""`, "string \x00\u2028\"", `"\u0000` + "\u2028" + `\""`},
		{"null", "null", "<nil> <nil>", "null"},
		{"undefined", "", "<nil> <nil>", ""},
		{"function () {}", "", "!function", ""},
		{"Symbol('s')", "", "!symbol", ""},
		{"new Date(0)", `"1970-01-01T00:00:00.000Z"`, "string 1970-01-01T00:00:00.000Z", `"1970-01-01T00:00:00.000Z"`},
		{"new Date(NaN)", "null", "<nil> <nil>", "null"},
		{"new Uint8Array([0, 255])", `{"0":0,"1":255}`, "[]uint8 [0 255]", `"AP8="`},
		{"[1, undefined, [null]]", "[1,null,[null]]", "!not an object", "[1,null,[null]]"},
		{"[,1]", "[null,1]", "!not an object", "[null,1]"},
		{"({ a: undefined, b: null })", `{"b":null}`, "!not an object", `{"b":null}`},
		{"new Map([[1, 2]])", "{}", "!not an object", "{}"},
		{"new String('x')", `"x"`, "string x", `"x"`},
		{"({ toJSON() { return 7 } })", "7", "!not an object", "7"},
		{`JSON.parse('{"__proto__":{"a":1},"b":2,"b":3}')`, `{"__proto__":{"a":1},"b":3}`, "!not an object", `{"__proto__":{"a":1},"b":3}`},
		{"Object.create({ inherited: 1 })", "{}", "!not an object", "{}"},
	} {
		t.Run(c.js, func(t *testing.T) {
			expectJSON(t, "answer", converted(b, "return { v: "+c.js+" }", nil), c.answer)
			db := &fakeDB{rows: "1"}
			err := converted(b, "return { v: V8.Db.FromSql('S').AddInParameter('p', "+c.js+").ExecuteNonQuery() }", db)
			got := fmt.Sprintf("%T %v", db.params["p"], db.params["p"])
			if strings.HasPrefix(err, "!") {
				got = err
			}
			if want, fails := strings.CutPrefix(c.param, "!"); fails && !(strings.HasPrefix(got, "!") && strings.Contains(got, want)) || !fails && got != c.param {
				t.Errorf("as a parameter %q, want %q", got, c.param)
			}
			expectJSON(t, "nested", converted(b, "return V8.ApiEngine.Run('x', { v: "+c.js+" })", nil), c.nested)
		})
	}
}

// converted is the text of the member v of a run's answer; of a nested call, what it was
// called with.
func converted(b *Bridge, code string, db *fakeDB) string {
	e := env()
	e.DB = func(string) (Database, error) { return db, nil }
	e.Invoke = func(_ context.Context, _ string, param json.RawMessage) (json.RawMessage, error) { return param, nil }
	p, err := Compile(Source{Name: "c.js", Code: code})
	if err != nil {
		return "!" + err.Error()
	}
	rep, err := b.Run(context.Background(), p, e)
	if s := new(ScriptError); errors.As(err, &s) {
		return "!" + s.Msg
	} else if err != nil {
		return "!" + err.Error()
	}
	text := strings.TrimSuffix(strings.TrimPrefix(string(rep.Outcome.Result), "{"), "}")
	return strings.TrimPrefix(text, `"v":`)
}

func expectJSON(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("as %s %s, want %s", what, got, want)
	}
}

// TestConversionsIn is the table of what JSON from outside becomes in a script.
func TestConversionsIn(t *testing.T) {
	b := newBridge(t, Config{})
	p := compile(t, `var v = V8.Param.v; return typeof v + ' ' + (Array.isArray(v) ? 'array ' : '') + String(v) + ' ' + (v === Object(v) ? Object.keys(v) : '') + (({}).polluted === undefined)`)
	for _, c := range []struct{ json, want string }{
		{"1", "number 1 true"}, {"-0", "number 0 true"}, {"1.50", "number 1.5 true"}, {"1e400", "number Infinity true"},
		{"9007199254740991", "number 9007199254740991 true"}, {"9007199254740992", "string 9007199254740992 true"}, {"-9007199254740993", "string -9007199254740993 true"},
		{"9007199254740993.0", "number 9007199254740992 true"}, {"123456789012345678901234567890", "string 123456789012345678901234567890 true"},
		{`"2026-01-02T03:04:05Z"`, "string 2026-01-02T03:04:05Z true"}, {`"\ud83d\ude00"`, "string 😀 true"}, {"null", "object null true"}, {"true", "boolean true true"},
		{"[1,2]", "object array 1,2 0,1true"}, {`{"__proto__":{"polluted":1},"b":1}`, "object [object Object] __proto__,btrue"}, {`{"a":1,"a":2}`, "object [object Object] atrue"},
	} {
		e := env()
		e.Param = json.RawMessage(`{"v":` + c.json + `}`)
		rep, err := b.Run(t.Context(), p, e)
		if err != nil || rep.Outcome.Text != c.want {
			t.Errorf("%s is %q (%v), want %q", c.json, rep.Outcome.Text, err, c.want)
		}
	}
}
