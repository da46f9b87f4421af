package apis

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"apiengine/fault"
)

func TestValidate(t *testing.T) {
	wait := func(n int) *int { return &n }
	long := strings.Repeat("x", 300)
	tests := []struct {
		name string
		set  func(*Definition)
		want string // the one problem, empty: none
	}{
		{"the least", func(d *Definition) {}, ""},
		{"no key", func(d *Definition) { d.ApiEngineKey = "" }, "ApiEngineKey is missing"},
		{"key with a slash", func(d *Definition) { d.ApiEngineKey = "a/b" }, `ApiEngineKey must be 1 to 100 of A-Z, a-z, 0-9, '_', '.' and '-', not "a/b"`},
		{"key too long", func(d *Definition) { d.ApiEngineKey = strings.Repeat("a", 101) }, "ApiEngineKey must be"},
		{"key of 100", func(d *Definition) { d.ApiEngineKey = strings.Repeat("a", 100) }, ""},
		{"key of dots", func(d *Definition) { d.ApiEngineKey = ".." }, "ApiEngineKey must not begin with a dot"},
		{"key with a line end", func(d *Definition) { d.ApiEngineKey = "a\n" }, "ApiEngineKey must be"},
		{"key with the tenant's mark", func(d *Definition) { d.ApiEngineKey = "a--OSCLIENT--b" }, "ApiEngineKey must not contain --OsClient--"},
		{"key of a declaration file", func(d *Definition) { d.ApiEngineKey, d.Language = "a.d", "ts" }, "ApiEngineKey must not end in .d"},
		{"name of two lines", func(d *Definition) { d.ApiName = "a\nb" }, "ApiName must be one line"},
		{"name not UTF-8", func(d *Definition) { d.ApiName = "\xff" }, "ApiName must be valid UTF-8"},
		{"long remark", func(d *Definition) { d.ApiRemark = strings.Repeat("x", maxRemark+1) }, "ApiRemark must be at most 16384 bytes, not 16385"},
		{"other language", func(d *Definition) { d.Language = "py" }, `Language must be one of js, ts, not "py"`},
		{"word in other case", func(d *Definition) { d.ResponseType, d.Transaction = "json", "OWN" }, ""},
		{"other response type", func(d *Definition) { d.ResponseType = "XML" }, "ResponseType must be one of auto, JSON, String, HTML, File"},
		{"other transaction", func(d *Definition) { d.Transaction = "on" }, "Transaction must be one of"},
		{"other effects", func(d *Definition) { d.Effects = "later" }, "Effects must be one of"},
		{"library with a lock", func(d *Definition) { d.Library, d.Lock = true, true }, "Lock has no place in a library"},
		{"library with an address", func(d *Definition) { d.Library, d.ApiAddress = true, "/x" }, "ApiAddress has no place in a library"},
		{"library", func(d *Definition) { d.Library = true }, ""},
		{"required idempotency", func(d *Definition) { d.Idempotency = "required" }, ""},
		{"method", func(d *Definition) { d.Methods = []string{"get", "HEAD"} }, `Methods must be some of GET, POST, PUT, PATCH, DELETE, not "HEAD"`},
		{"method twice", func(d *Definition) { d.Methods = []string{"get", "GET"} }, `Methods has "GET" twice`},
		{"role empty", func(d *Definition) { d.ApiRole = []string{" "} }, "ApiRole must be names of roles"},
		{"role too long", func(d *Definition) { d.ApiRole = []string{long} }, "ApiRole has an item of 300 bytes"},
		{"many roles", func(d *Definition) { d.ApiRole = make([]string, 101) }, "ApiRole must have at most 100 items, not 101"},
		{"origins", func(d *Definition) { d.Cors = []string{"HTTPS://A.example", "http://[::1]:80"} }, ""},
		{"any origin", func(d *Definition) { d.Cors = []string{"*"} }, ""},
		{"any origin and another", func(d *Definition) { d.Cors = []string{"*", "https://a"} }, `Cors must be "*" alone`},
		{"origin with a path", func(d *Definition) { d.Cors = []string{"https://a/"} }, "Cors must be origins like"},
		{"origin with a user", func(d *Definition) { d.Cors = []string{"https://u@a"} }, "Cors must be origins like"},
		{"origin null", func(d *Definition) { d.Cors = []string{"null"} }, "Cors must be origins like"},
		{"origin with a wildcard", func(d *Definition) { d.Cors = []string{"https://*.a"} }, "Cors must be origins like"},
		{"lock keys", func(d *Definition) { d.LockKey = "a.b.c, 编号 ,$x-1" }, ""},
		{"lock key of dots", func(d *Definition) { d.LockKey = "a..b" }, "LockKey must be names"},
		{"lock key with a gap", func(d *Definition) { d.LockKey = "a,,b" }, "LockKey must be names"},
		{"lock key template", func(d *Definition) { d.LockKey = "${V8.OsClient}" }, "LockKey must be names"},
		{"lock key in a script's words", func(d *Definition) { d.LockKey = "V8.Param.Order.Id" }, "LockKey names parameters: Order.Id and not V8.Param.Order.Id"},
		{"lock key twice", func(d *Definition) { d.LockKey = "a, a" }, `LockKey has "a" twice`},
		{"timeout", func(d *Definition) { d.Timeout = 43200 }, ""},
		{"timeout too long", func(d *Definition) { d.Timeout = 43201 }, "Timeout must be from 1 to 43200 seconds"},
		{"timeout negative", func(d *Definition) { d.Timeout = -1 }, "Timeout must be"},
		{"timeout beyond all", func(d *Definition) { d.Timeout = 1 << 62 }, "Timeout must be"},
		{"wait none", func(d *Definition) { d.LockWait = wait(0) }, ""},
		{"wait beyond all", func(d *Definition) { d.LockWait = wait(1 << 62) }, "LockWait must be"},
		{"wait negative", func(d *Definition) { d.LockWait = wait(-1 << 62) }, "LockWait must be"},
		{"rate", func(d *Definition) { d.RateLimit = "60 per minute" }, "RateLimit must be a number of calls and a unit"},
		{"schedule", func(d *Definition) { d.Schedule = "TZ=Asia/Shanghai 0 3 * * *" }, ""},
		{"schedule of a zone alone", func(d *Definition) { d.Schedule = "TZ=UTC" }, "Schedule must be TZ=<zone>"},
		{"schedule of the other prefix", func(d *Definition) { d.Schedule = "CRON_TZ=UTC" }, "Schedule must be TZ=<zone>"},
		{"schedule of 6 fields", func(d *Definition) { d.Schedule = "0 0 3 * * *" }, "Schedule is no cron expression of 5 fields"},
		{"schedule of no zone", func(d *Definition) { d.Schedule = "TZ= 0 3 * * *" }, "Schedule must be TZ=<zone>"},
		{"schedule of a day that never comes", func(d *Definition) { d.Schedule = "0 0 31 2 *" }, "Schedule names a day that never comes"},
		{"schedule of a day that comes in leap years", func(d *Definition) { d.Schedule = "0 0 29 2 *" }, ""},
		{"schedule by name", func(d *Definition) { d.Schedule = "@daily" }, "Schedule is no cron expression"},
		{"a task's timeout", func(d *Definition) { d.Schedule, d.Timeout = "* * * * *", 172800 }, ""},
		{"test parameters", func(d *Definition) { d.TestParam = json.RawMessage("[1]") }, "TestParam must be an object"},
		{"test parameters no JSON", func(d *Definition) { d.TestParam = json.RawMessage("{a:1}") }, "TestParam is not valid JSON"},
		{"test parameters twice", func(d *Definition) { d.TestParam = json.RawMessage(`{"a":1,"a":2}`) }, "TestParam is not valid JSON: duplicate"},
		{"test parameters deep", func(d *Definition) {
			d.TestParam = json.RawMessage(`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}")
		}, "TestParam must be nested at most 100 deep, not 101"},
		{"test parameters large", func(d *Definition) {
			d.TestParam = json.RawMessage(`{"a":"` + strings.Repeat("x", maxTestParam) + `"}`)
		}, "TestParam must be at most 65536 bytes"},
		{"no script", func(d *Definition) { d.ApiV8Code = " \n" }, "ApiV8Code is missing"},
		{"largest script", func(d *Definition) { d.ApiV8Code = strings.Repeat("x", MaxCode) }, ""},
		{"too large a script", func(d *Definition) { d.ApiV8Code = strings.Repeat("x", MaxCode+1) }, "ApiV8Code must be at most 1048576 bytes"},
		{"first line", func(d *Definition) { d.FirstLine = -1 }, "FirstLine must be"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Definition{ApiEngineKey: "a", ApiV8Code: "return 1"}
			tt.set(&d)
			got, err := d.Validate()
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if again, err := got.Validate(); err != nil || !again.Same(&got) {
					t.Errorf("a valid definition changes when it is validated again: %v", err)
				}
				return
			}
			first := ""
			if all := flat(err); len(all) > 0 {
				first = all[0].Error()
			}
			if !strings.HasPrefix(first, tt.want) || len(flat(err)) != 1 || fault.Of(err) != fault.BadRequest {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestEffects(t *testing.T) {
	for _, tt := range []struct {
		lock        bool
		transaction string
		want        string
	}{{true, "", "staged"}, {true, "own", "immediate"}, {false, "auto", "immediate"}, {false, "none", "immediate"}} {
		d, err := Definition{ApiEngineKey: "a", ApiV8Code: "x", Lock: tt.lock, Transaction: tt.transaction}.Validate()
		if err != nil || d.Effects != tt.want {
			t.Errorf("%+v: %s, %v", tt, d.Effects, err)
		}
	}
	// What was derived does not stick: who reads, sets Lock and saves gets staged effects.
	d, _ := Definition{ApiEngineKey: "a", ApiV8Code: "x"}.Validate()
	text, _ := EncodeJSON(d)
	back, err := DecodeJSON(text)
	back.Lock = true
	if err != nil {
		t.Fatal(err)
	}
	if back, err = back.Validate(); err != nil || back.Effects != "staged" {
		t.Errorf("%s, %v", back.Effects, err)
	}
}

func TestEffectiveLockScope(t *testing.T) {
	for _, tt := range []struct{ scope, key, want string }{
		{"", "", "api:order_pay"}, {"", "OrderId", "OrderId"}, {"order", "OrderId", "order"}, {"order", "", "order"},
	} {
		d := Definition{ApiEngineKey: "Order_Pay", LockScope: tt.scope, LockKey: tt.key}
		if got := d.EffectiveLockScope(); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

func TestPlan(t *testing.T) {
	d, err := Definition{ApiEngineKey: "a", ApiV8Code: "x", Timeout: 1200}.Validate()
	if err != nil {
		t.Fatal(err)
	}
	for trusted, lease := range map[bool]time.Duration{false: 1200 * time.Second, true: time.Minute} {
		if p, err := d.Plan(trusted); err != nil || p.Lease != lease {
			t.Errorf("trusted %v: %v, %v", trusted, p.Lease, err)
		}
	}
	if p, err := (Definition{}).Plan(false); err != nil || p.Run != 30*time.Second {
		t.Errorf("the default is %v, %v", p.Run, err)
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]string{
		"60/m": "60 1m0s", "1000/h": "1000 1h0m0s", "1/s": "1 1s", "9999999/s": "9999999 1s",
		"0/s": "", "-1/s": "", "01/s": "", "60/d": "", "60": "", "/m": "", "60/m ": "", "60/M": "", "10000000/s": "", "": "", "6.5/s": "", "60/m\n": "",
	} {
		count, per, err := ParseRate(text)
		got := ""
		if err == nil {
			got = fmt.Sprint(count, per)
		}
		if got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestDecodeJSON(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`{"ApiEngineKey":"a","ApiV8Code":"x","Version":3,"ChangeHistory":[],"SavedAt":"","SavedBy":null,"Note":"","Deleted":false}`, "<nil>"},
		{`{"Timeout":null,"LockWait":null,"Methods":null}`, "<nil>"},
		{`{"Timeot":1}`, "Timeot is no field of a definition; did you mean Timeout?"},
		{`{"timeout":1}`, "timeout is no field of a definition; did you mean Timeout?"},
		{`{"Lock":true,"Lock":false}`, "Lock is there twice"},
		{`{"Lock":"true"}`, "Lock must be true or false"},
		{`{"Timeout":"5"}`, "Timeout must be a whole number of seconds from 1"},
		{`{"Timeout":0}`, "Timeout must be at least 1 second, not 0"},
		{`{"Timeout":1.5}`, "Timeout must be a whole number of seconds from 1"},
		{`{"Methods":"GET"}`, "Methods must be a list of texts, like [A, B]"},
		{`{"ApiV8Code":1}`, "ApiV8Code must be text"},
		{`[]`, "must be an object"},
		{"{\n\"Lock\":tru}", "2:11: the definition is not valid JSON: "},
		{`{} {}`, "1:4: the definition is not valid JSON: "},
		{"{\"ApiV8Code\":\"\xff\"}", "1:15: the definition is not valid JSON: "},
		{``, "1:1: the definition is not valid JSON: "},
	} {
		_, err := DecodeJSON([]byte(tt.body))
		if got := fmt.Sprint(err); got != tt.want && (!strings.HasSuffix(tt.want, ": ") || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s: %s\nwant %s", tt.body, got, tt.want)
		} else if err != nil && fault.Of(err) != fault.BadRequest {
			t.Errorf("%s: kind %s", tt.body, fault.Of(err))
		}
	}
}
