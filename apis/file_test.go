package apis

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"apiengine/fault"
)

func TestParseFile(t *testing.T) {
	tests := []struct {
		name, file, src string
		want            func(*Definition)
	}{
		{"no settings", "a.js", "return 1\n", func(d *Definition) { d.ApiV8Code = "return 1\n"; d.FirstLine = 1 }},
		{"the ending is the language", "dir/A.b.ts", "return 1", func(d *Definition) {
			d.ApiEngineKey, d.Language, d.ApiV8Code, d.FirstLine = "A.b", "ts", "return 1", 1
		}},
		{"settings", "x.js", "/*---\nApiEngineKey: a\nLock: true\nLockKey: Shop.Id, OrderId\nTimeout: 10\nLockWait: 0\nMethods: [post]\n---*/\nreturn 1\n", func(d *Definition) {
			zero := 0
			d.Lock, d.LockKey, d.Timeout, d.LockWait, d.Methods = true, "Shop.Id,OrderId", 10, &zero, []string{"POST"}
			d.Effects, d.ApiV8Code, d.FirstLine = "staged", "return 1\n", 9
		}},
		{"byte order mark and CRLF", "a.js", "\uFEFF/*---\r\nStopHttp: true\r\n---*/\r\nlet a = 1\r\nreturn a\r\n", func(d *Definition) {
			d.StopHttp, d.ApiV8Code, d.FirstLine = true, "let a = 1\nreturn a\n", 4
		}},
		{"blank lines and line comments before", "a.js", "\n// by me\n\n/*---\nLock: true\n---*/\nreturn 1", func(d *Definition) {
			d.Lock, d.Effects, d.ApiV8Code, d.FirstLine = true, "staged", "\n// by me\n\nreturn 1", 4
		}},
		{"settings and script on one line", "a.js", "/*--- Lock: true ---*/ return 1\n", func(d *Definition) {
			d.Lock, d.Effects, d.ApiV8Code, d.FirstLine = true, "staged", strings.Repeat(" ", 23)+"return 1\n", 1
		}},
		{"an ordinary first comment is no settings", "a.js", "/* Lock: true */\nreturn 1", func(d *Definition) {
			d.ApiV8Code, d.FirstLine = "/* Lock: true */\nreturn 1", 1
		}},
		{"a banner is no settings", "a.js", "/*--------\n Orders\n--------*/\nreturn 1", func(d *Definition) {
			d.ApiV8Code, d.FirstLine = "/*--------\n Orders\n--------*/\nreturn 1", 1
		}},
		{"empty settings", "a.js", "/*---\n---*/\nreturn 1", func(d *Definition) { d.ApiV8Code, d.FirstLine = "return 1", 3 }},
		{"adjoining marks", "a.js", "/*------*/\nreturn 1", func(d *Definition) { d.ApiV8Code, d.FirstLine = "/*------*/\nreturn 1", 1 }},
		{"an empty value is the default", "a.js", "/*---\nLockKey:\nTimeout: ~\n---*/\nreturn 1", func(d *Definition) { d.ApiV8Code, d.FirstLine = "return 1", 5 }},
		{"a comment end in quotes", "a.js", "/*---\nApiName: \"*\\/5\"\n---*/\nreturn 1", func(d *Definition) {
			d.ApiName, d.ApiV8Code, d.FirstLine = "*/5", "return 1", 4
		}},
		{"TestParam keeps numbers as they are written", "a.js", "/*---\nTestParam:\n  a: 12345678901234567890123\n  b: [1.50, -3e2, '7', x, true, null]\n  c: {d: |-\n    x}\n---*/\nreturn 1", nil},
		{"TestParam as YAML", "a.js", "/*---\nTestParam:\n  a: 12345678901234567890123\n  b: [1.50, -3e2, '7', x, true, null]\n  c:\n    d: é\n---*/\nreturn 1", func(d *Definition) {
			d.TestParam, d.ApiV8Code, d.FirstLine = json.RawMessage(`{"a":12345678901234567890123,"b":[1.50,-3e2,"7","x",true,null],"c":{"d":"é"}}`), "return 1", 8
		}},
		{"own address", "a.js", "/*---\nApiAddress: /apiengine/A\n---*/\nreturn 1", func(d *Definition) {
			d.ApiAddress, d.ApiV8Code, d.FirstLine = "/apiengine/A", "return 1", 4
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseFile(tt.file, []byte(tt.src))
			if tt.want == nil {
				if err == nil {
					t.Fatal("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Definition{ApiEngineKey: "a"}
			tt.want(&want)
			want = want.withDefaults()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			lines, at := strings.Split(newlines(tt.src), "\n"), strings.Index(got.ApiV8Code, "return")
			line := strings.Count(got.ApiV8Code[:at], "\n") + got.FirstLine
			if !strings.Contains(lines[line-1], "return") {
				t.Errorf("FirstLine leads to line %d, %q", line, lines[line-1])
			}
		})
	}
}

func TestParseFileSaysWhere(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"unknown field", "/*---\nLock: true\nTimeot: 3\n---*/\nreturn 1", "f.js:3:1: Timeot is no field of a definition; did you mean Timeout?"},
		{"other case", "/*---\nlockkey: a\n---*/\nreturn 1", "f.js:2:1: lockkey is no field of a definition; did you mean LockKey?"},
		{"unlike any field", "/*---\nxyzzyxyzzy: a\n---*/\nreturn 1", "f.js:2:1: xyzzyxyzzy is no field of a definition"},
		{"twice", "/*---\nLock: true\nLock: false\n---*/\nreturn 1", "f.js:3:1: Lock is there twice, first in line 2"},
		{"a number for text", "/*---\nApiName: 5\n---*/\nreturn 1", "f.js:2:10: ApiName must be text; put it in quotes when it looks like something else"},
		{"yes for a bool", "/*---\nLock: yes\n---*/\nreturn 1", "f.js:2:7: Lock must be true or false"},
		{"text for a list", "/*---\nMethods: POST\n---*/\nreturn 1", "f.js:2:10: Methods must be a list of texts, like [A, B]"},
		{"number in a list", "/*---\nApiRole: [a, 5]\n---*/\nreturn 1", "f.js:2:14: ApiRole must be a list of texts; put this item in quotes"},
		{"text for a number", "/*---\nTimeout: \"10\"\n---*/\nreturn 1", "f.js:2:10: Timeout must be a whole number of seconds from 1"},
		{"half a second", "/*---\nTimeout: 0.5\n---*/\nreturn 1", "f.js:2:10: Timeout must be a whole number of seconds from 1"},
		{"an explicit zero", "/*---\nTimeout: 0\n---*/\nreturn 1", "f.js:2:10: Timeout must be a whole number of seconds from 1"},
		{"out of range", "/*---\nApiName: x\nTimeout: 43201\n---*/\nreturn 1", "f.js:3:1: Timeout must be from 1 to 43200 seconds, not 12h0m1s"},
		{"a negative wait", "/*---\nLockWait: -1\n---*/\nreturn 1", "f.js:2:1: LockWait must be from 0 to 43200 seconds, not -1s"},
		{"TestParam no object", "/*---\nTestParam: [1]\n---*/\nreturn 1", "f.js:2:12: TestParam must be an object"},
		{"TestParam no JSON", "/*---\nTestParam:\n  a: .inf\n---*/\nreturn 1", `f.js:3:6: TestParam has ".inf", which is no JSON value`},
		{"read-only", "/*---\nVersion: 3\n---*/\nreturn 1", "f.js:2:1: Version is read-only: every save makes a version; leave it out"},
		{"the script as a setting", "/*---\nApiV8Code: x\n---*/\nreturn 1", "f.js:2:1: ApiV8Code is what follows the settings; it cannot be set in them"},
		{"the other language", "/*---\nLanguage: ts\n---*/\nreturn 1", "f.js:2:1: Language is ts, but the file ends in .js"},
		{"no script", "/*---\nLock: true\n---*/\n", "f.js:4:1: ApiV8Code is missing: the API has no script"},
		{"bad YAML", "\n\n/*---\nA: [1\n---*/\nreturn 1", "f.js:4:4: the settings are not valid YAML: sequence end token ']' not found"},
		{"no end", "\n/*---\nLock: true\nreturn 1", "f.js:2:1: the settings that begin here do not end: ---*/ is missing"},
		{"second comment", "/* licence */\n /*---\nLock: true\n---*/\nreturn 1", "f.js:2:2: the settings must be the first block comment of the file"},
		{"not a mapping", "/*---\nLock\n---*/\nreturn 1", "f.js:2:1: the settings must be lines of the form Name: value"},
		{"two documents", "/*---\nLock: true\n---\nStopHttp: true\n---*/\nreturn 1", "f.js:4:1: the settings must be one YAML document, without a line ---"},
		{"two documents, one of them empty", "/*---\nLock: true\n---\n{}\n---*/\nreturn 1", "f.js:4:1: the settings must be one YAML document, without a line ---"},
		{"not UTF-8", "return 1\nx = '\xff'", "f.js:2:6: the file must be UTF-8 text"},
		{"all of it", "/*---\nLock: 1\nTimeout: 0x\nMethods: [GET, TRACE]\nApiAddress: admin\n---*/\nreturn 1",
			"f.js:2:7: Lock must be true or false\nf.js:3:10: Timeout must be a whole number of seconds from 1\n" +
				"f.js:4:1: Methods must be some of GET, POST, PUT, PATCH, DELETE, not \"TRACE\"\nf.js:5:1: ApiAddress must begin with '/', not \"admin\""},
		{"too deep", "/*---\nTestParam: " + strings.Repeat("[", 2000) + "\n---*/\nreturn 1", "f.js:1:1: the settings are nested too deep"},
		{"too deep by dashes", "/*---\n" + strings.Repeat("- ", 100_000) + "\n---*/\nreturn 1", "f.js:1:1: the settings are nested too deep"},
		{"too long", "/*---\n" + strings.Repeat("# x\n", maxSettings/4+1) + "---*/\nreturn 1", "f.js:1:1: the settings are too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseFile("f.js", []byte(tt.src))
			if fmt.Sprint(err) != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if fault.Of(err) != fault.BadRequest {
				t.Errorf("kind %s", fault.Of(err))
			}
		})
	}
}

func TestParseFileNames(t *testing.T) {
	for name, ok := range map[string]bool{"a.js": true, "a.ts": true, "x/a.b.js": true, "a.d.ts": false, ".a.js": false, "a.mjs": false, "a": false, "a.JS": false, "é.js": false, ".js": false} {
		_, err := ParseFile(name, []byte("return 1"))
		if (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsAreJoined(t *testing.T) {
	_, err := ParseFile("f.js", []byte("/*---\nLock: 1\nTimeout: x\n---*/\nreturn 1"))
	var one *FieldError
	if !errors.As(err, &one) || one.Field != "Lock" || one.Line != 2 || one.Column != 7 || one.File != "f.js" {
		t.Errorf("first problem %+v", one)
	}
	details := fault.Details(err)
	if details["Field"] != "Lock" || details["Line"] != 2 || len(details["Problems"].([]string)) != 2 {
		t.Errorf("details %v", details)
	}
	if p := fault.Public(err); !strings.Contains(p, "Lock") || !strings.Contains(p, "Timeout") {
		t.Errorf("public text %q", p)
	}
}

// The canonical form: what FormatFile wrote, it writes again.
func TestFormatFileGolden(t *testing.T) {
	names, _ := filepath.Glob("testdata/canonical/*")
	if len(names) < 4 {
		t.Fatal("the golden files are missing")
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := ParseFile(name, src)
		if err != nil {
			t.Fatal(err)
		}
		out, text := FormatFile(d)
		if out != filepath.Base(name) || string(text) != string(src) {
			t.Errorf("%s became %s:\n%s", name, out, text)
		}
	}
}

func TestFormatRoundTrip(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		d, err := randomDefinition(r).Validate()
		if err != nil {
			t.Fatalf("the generator made a wrong definition: %v", err)
		}
		checkRoundTrip(t, d)
	}
}

// checkRoundTrip goes through the file and through JSON.
func checkRoundTrip(t *testing.T, d Definition) {
	t.Helper()
	name, src := FormatFile(d)
	back, err := ParseFile(name, src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	if !strings.HasSuffix(string(src), d.ApiV8Code) || strings.Count(string(src[:len(src)-len(d.ApiV8Code)]), "\n")+1 != back.FirstLine {
		t.Errorf("FirstLine %d is wrong:\n%s", back.FirstLine, src)
	}
	back.FirstLine = d.FirstLine
	if !reflect.DeepEqual(back, d) || !back.Same(&d) {
		t.Fatalf("got  %+v\nwant %+v\n%s", back, d, src)
	}
	if _, again := FormatFile(back); string(again) != string(src) {
		t.Fatalf("written again it is\n%s\nfirst it was\n%s", again, src)
	}
	text, err := EncodeJSON(d)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := DecodeJSON(text)
	if err == nil {
		decoded, err = decoded.Validate()
	}
	if err != nil || !reflect.DeepEqual(decoded, d) {
		t.Fatalf("through JSON: %v\ngot  %+v\nwant %+v\n%s", err, decoded, d, text)
	}
}

func randomDefinition(r *rand.Rand) Definition {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	coin := func() bool { return r.IntN(2) == 0 }
	off := coin()
	d := Definition{
		ApiEngineKey: pick("a", "Order.Pay", "x-1_2", "007", "true", "null", "-", "1e3"),
		ApiName:      randomLine(r), ApiRemark: randomText(r), Category: randomLine(r), LockScope: randomLine(r), LockMsg: randomLine(r),
		ApiAddress: pick("", "/x/{id}", "/日本/a'b(c)", "/a/{b}/c:d"), Language: pick("js", "ts", ""), IsEnable: &off,
		StopHttp: coin(), AllowAnonymous: coin(), Lock: coin(), LogParam: coin(), LogResult: coin(),
		Methods: [][]string{nil, {"GET"}, {"POST", "GET"}}[r.IntN(3)], ResponseType: pick("", "auto", "JSON", "html"),
		LockKey: pick("", "OrderId", "a.b,$c", "编号"), Timeout: r.IntN(43200) + 1,
		Transaction: pick("", "own", "none"), Effects: pick("", "staged", "immediate"), Idempotency: pick("", "off", "required"),
		RateLimit: pick("", "60/m", "9999999/h"), Cors: [][]string{nil, {"*"}, {"https://a.example", "http://localhost:3000", "https://[::1]:80"}}[r.IntN(3)],
		TestParam: randomJSON(r), ApiV8Code: pick("return 1", "\n\nreturn 1\n", "/*---\nLock: true\n---*/\nreturn 1", "//x\r\nreturn '\u2028'\n\n", "  return 1"),
	}
	d.Library = coin() && !d.Lock && d.ApiAddress == ""
	if wait := r.IntN(100); coin() {
		d.LockWait = &wait
	}
	if coin() {
		d.ApiRole = []string{"a" + strings.TrimSpace(randomLine(r)), "true", "1", "b: c", "{d", "e,f"}
	}
	return d
}

var oddRunes = []rune("ab 1:#-*/\\\"'{}[],&!|>%@`~?=.<\u00a0\u2028\ufeff\U0001F600é中\u200b\u0085\ufffd\U000E0001")

func randomLine(r *rand.Rand) string {
	words := []string{"", "true", "null", "~", "12", "1.5", "0x1f", "2024-01-01", "- a", "a: b", "# a", "*/", "---*/", "a's thing, done -> now.", " x ", "'", "\"", "|", ">-", "yes", "=", "<<", "%a", "@a", "a #b", "a:", ".nan", "1_0", "*\\/"}
	if r.IntN(2) == 0 {
		return words[r.IntN(len(words))]
	}
	var b strings.Builder
	for range r.IntN(8) {
		if c := oddRunes[r.IntN(len(oddRunes))]; c != '\u0085' { // a control character
			b.WriteRune(c)
		}
	}
	return b.String()
}

func randomText(r *rand.Rand) string {
	lines := make([]string, r.IntN(4))
	for i := range lines {
		lines[i] = randomLine(r)
	}
	return strings.Join(lines, []string{"\n", "\r\n", "\t", "\u0085", "\u0001", "\n\n"}[r.IntN(6)])
}

func randomJSON(r *rand.Rand) json.RawMessage {
	text := func() string { b, _ := json.Marshal(randomText(r)); return string(b) }
	values := []string{"1", "-0", "1.50", "1e400", "12345678901234567890", "true", "null", "{}", "[]", "[[1,[]]]", `{"":{"a":[{}]}}`, `"\u0000"`, `"\ud83d\ude00"`, `"\/"`, text(), text()}
	var b strings.Builder
	b.WriteString("{ ")
	for i := range r.IntN(5) {
		if i > 0 {
			b.WriteString(" , ")
		}
		key, _ := json.Marshal(fmt.Sprint(i, randomLine(r)))
		b.WriteString(string(key) + " : " + values[r.IntN(len(values))])
	}
	return json.RawMessage(b.String() + "}")
}

func FuzzParseFile(f *testing.F) {
	for _, s := range []string{
		"return 1", "/*---\nLock: true\n---*/\nreturn 1", "\uFEFF/*---\r\nTimeout: 5\r\n---*/\r\nx", "/*--- Lock: true ---*/ 1",
		"// a\n/*---\nTestParam: {\"a\": [1, {\"b\": null}]}\n---*/\n1", "/*---\nA: &a *a\n<<: {}\n---*/", "/*---\n? - x\n---*/", "/*---\nApiRemark: |2\n   a\n  b\n---*/1",
		"/*---\nSchedule: TZ=x\n---*/1", "/*---\nCors: [\"http://a\", *]\n---*/1", "/*---\n!!binary x: y\n---*/1", "/*---\nTestParam: {a: 1, a: 2}\n---*/1", "/*---\nA: 1\n---\n{}\n---\n[]\n...\n---*/1", "/*---\nMethods:\n- GET\n- |\n POST\nLockMsg: >-\n  a\n\n  b\n---*/1",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := ParseFile("f.js", src)
		if err == nil {
			checkRoundTrip(t, d)
			return
		}
		for _, e := range flat(err) {
			if e.File != "f.js" || e.Line < 1 || e.Line > strings.Count(newlines(string(src)), "\n")+1 || e.Column < 1 || e.Msg == "" {
				t.Errorf("a problem without its place: %+v", e)
			}
		}
	})
}

// Settings in a wrong form or place are an error: to ignore them would lose the Lock.
func TestParseFileRefusesStraySettings(t *testing.T) {
	for _, c := range []struct {
		name, src string
		line      int
	}{
		{"blanks before the dashes", "/* ---\nLock: true\n--- */\nreturn 1;", 1},
		{"dashes on the next line", "/*\n---\nLock: true\n---\n*/\nreturn 1;", 1},
		{"a doc comment", "/**---\nLock: true\n---*/\nreturn 1;", 1},
		{"after a statement", "var a = 1;\n/*---\nLock: true\n---*/\nreturn 1;", 2},
		{"more dashes", "/*--------\n Lock: true\n--------*/\nreturn 1", 1},
		{"starred lines", "/*\n * ---\n * Timeout: 5\n */\nreturn 1;", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseFile("a.js", []byte(c.src))
			var e *FieldError
			if !errors.As(err, &e) || e.Line != c.line || !strings.Contains(e.Msg, "/*---") {
				t.Errorf("got %v, want an error at line %d", err, c.line)
			}
		})
	}
	for _, src := range []string{"/* --- helpers --- */\nreturn 1;", "/*\n---\nnote: nothing\n*/\nreturn 1;", "var s = 1; /* a */ return s;"} {
		if _, err := ParseFile("a.js", []byte(src)); err != nil {
			t.Errorf("%q is a plain script: %v", src, err)
		}
	}
}
