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
		{"2 ** 53", "9007199254740992", "float64 9.007199254740992e+15", "9007199254740992"},
		{"1e18", "1000000000000000000", "float64 1e+18", "1000000000000000000"},
		{"1e16 + 0.5", "10000000000000000", "float64 1e+16", "10000000000000000"},
		{"2 ** 60", "1152921504606847000", "float64 1.152921504606847e+18", "1152921504606847000"},
		{"-(2 ** 60)", "-1152921504606847000", "float64 -1.152921504606847e+18", "-1152921504606847000"},
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
		{"new Date(NaN)", "null", "!invalid Date", "null"},
		{"new Number(NaN)", "null", "float64 NaN", "null"},
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
		{"9007199254740991", "number 9007199254740991 true"}, {"9007199254740992", "number 9007199254740992 true"}, {"-9007199254740993", "string -9007199254740993 true"},
		{"1000000000000000000", "number 1000000000000000000 true"}, {"1152921504606846976", "string 1152921504606846976 true"}, {"1152921504606847000", "string 1152921504606847000 true"},
		{"1.152921504606847e+18", "number 1152921504606847000 true"}, {"1152921504606846976.0", "number 1152921504606847000 true"}, {"1e21", "number 1e+21 true"},
		{"1000000000000000000000", "string 1000000000000000000000 true"},
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

// TestLargeNumbersStayNumbers: what a script made as a number is one wherever it comes, from
// caller to child and back, in long values that nobody touched too; an integer that came as
// text and is a string is one there as well.
func TestLargeNumbersStayNumbers(t *testing.T) {
	b := newBridge(t, Config{})
	for _, pad := range []int{0, 2 * lazyFrom} {
		for _, c := range []struct{ value, want string }{
			{"1e18", "number 1000000000000000000"}, {"2 ** 53", "number 9007199254740992"}, {"1e16 + 0.5", "number 10000000000000000"},
			{"2 ** 60", "number 1152921504606847000"}, {"2 ** 60 + 1", "number 1152921504606847000"}, {"-1e300", "number -1e+300"}, {"'1152921504606846976'", "string 1152921504606846976"},
			{"JSON.parse('[1152921504606846976]')[0]", "number 1152921504606847000"}, {"V8.Param.id", "string 1152921504606846976"},
		} {
			code := fmt.Sprintf(`var got = V8.ApiEngine.Run('child', {v: %s, pad: 'x'.repeat(%d)}).v; return typeof got + ' ' + got`, c.value, pad)
			if got := throughChild(t, b, code); got != c.want {
				t.Errorf("%s with %d more characters: got %s, want %s", c.value, pad, got, c.want)
			}
		}
		// The whole long value, untouched: its digits say something else than its number does.
		code := fmt.Sprintf(`var got = V8.ApiEngine.Run('child', JSON.parse('{"v":1152921504606846976,"pad":"%s"}')).v; return typeof got + ' ' + got`, strings.Repeat("x", pad))
		if got := throughChild(t, b, code); got != "number 1152921504606847000" {
			t.Errorf("JSON.parse, %d more characters: got %s", pad, got)
		}
		e := env()
		e.Param = json.RawMessage(fmt.Sprintf(`{"id":1152921504606846976,"pad":"%s"}`, strings.Repeat("x", pad)))
		rep, err := b.Run(t.Context(), compile(t, `return V8.Param`), e)
		want := map[bool]string{false: `{"id":"1152921504606846976"`, true: `{"id":1152921504606846976,`}[pad > 0] // long and untouched: as it came
		if err != nil || !strings.HasPrefix(string(rep.Outcome.Result), want) {
			t.Errorf("V8.Param, %d more characters: %s, %v", pad, rep.Outcome.Result, err)
		}
	}
}

// throughChild is the text that code returns, where V8.ApiEngine.Run runs a child that returns
// its parameters once they came as they were sent.
func throughChild(t *testing.T, b *Bridge, code string) string {
	t.Helper()
	e := env()
	e.Param = json.RawMessage(`{"id":1152921504606846976}`)
	e.Invoke = func(ctx context.Context, _ string, param json.RawMessage) (json.RawMessage, error) {
		inner := env()
		inner.Param, inner.Limits.Depth = param, 1
		rep, err := b.Run(ctx, compile(t, `var v = V8.Param.v; return {v: typeof v === 'number' ? v * 2 / 2 : v}`), inner)
		return rep.Outcome.Result, err
	}
	rep, err := b.Run(t.Context(), compile(t, code), e)
	if err != nil {
		t.Fatal(err)
	}
	return rep.Outcome.Text
}
