package jsbridge

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"apiengine/digits"
)

// FuzzConvert: JSON that comes in as a parameter goes out to a native as the same value,
// whether the script has touched it or not.
func FuzzConvert(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x\u0000\ud800"],"__proto__":{"b":null}}`, `{"n":9007199254740993,"m":-0,"e":1e21,"s":"1e3"}`,
		`{"a":1152921504606846976.0,"b":1e18,"c":1000000000000000000,"d":1152921504606846976}`,
		`{"":"","a":{"toJSON":1}}`, `{"long":"` + strings.Repeat("é", 300) + `","list":[[],{},[null,true,false]]}`, `{"a":1,"a":2}`, `{"length":3,"0":"x"}`} {
		f.Add(s)
	}
	b := newBridge(f, Config{})
	touched := compile(f, `for (var k in V8.Param) { void V8.Param[k] } return V8.Cache.Set('k', 'v') && V8.ApiEngine.Run('x', V8.Param)`)
	untouched := compile(f, `return V8.Cache.Set('k', 'v') && V8.ApiEngine.Run('x', V8.Param)`)
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.TrimSpace(text)
		if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) || !utf8.ValidString(text) || strings.Count(text, "[")+strings.Count(text, "{") > 200 {
			return
		}
		for _, p := range []*Program{touched, untouched} {
			e := env()
			e.Cache, e.Param = &memCache{}, json.RawMessage(text)
			var sent json.RawMessage
			e.Invoke = func(_ context.Context, _ string, param json.RawMessage) (json.RawMessage, error) {
				sent = param
				return json.RawMessage(`{"Code":1}`), nil
			}
			if _, err := b.Run(t.Context(), p, e); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if got, want := plainJSON(t, sent), plainJSON(t, json.RawMessage(text)); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s was sent as %s", text, sent)
			}
		}
	})
}

// plainJSON is the value of JSON text, numbers as doubles; whole numbers that no double
// holds are text, as scripts see them.
func plainJSON(t *testing.T, text json.RawMessage) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return plainNumbers(v)
}

func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if whole := !strings.ContainsAny(v.String(), ".eE"); err != nil || whole && (f > maxSafeInteger || f < -maxSafeInteger) && !digits.Kept(v.String()) {
			if whole {
				return v.String()
			}
			return nil // beyond what a double holds: Infinity, which has no JSON
		}
		return f + 0
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	}
	return v
}
