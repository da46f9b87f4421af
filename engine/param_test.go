package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/apis"
	"apiengine/fault"
)

func TestLockValue(t *testing.T) {
	for _, c := range []struct{ key, param, want string }{
		{"Id", `{"Id":1}`, "1"}, {"Id", `{"Id":"1"}`, "1"}, {"Id", `{"Id":1.0}`, "1"}, {"Id", `{"Id":1e2}`, "100"}, {"Id", `{"Id":-0}`, "0"},
		{"Id", `{"Id":0.5}`, "0.5"}, {"Id", `{"Id":1e400}`, "1e400"}, {"Id", `{"Id":123456789012345678901}`, "123456789012345678901"},
		{"Id", `{"Id":true}`, "true"}, {"Id", `{"Id":"\u0061b"}`, "ab"}, {"Id", `{"Id":1,"Id":2}`, "2"}, {"Id", `{"\u0049d":3}`, "3"},
		{"O.Id", `{"O":{"Id":7}}`, "7"}, {"O.P.Id", `{"O":{"P":{"Id":"x"}}}`, "x"}, {"A, B", `{"A":1,"B":"2"}`, "1,2"},
		{"A,B", `{"A":"1,2","B":"3"}`, `1\,2,3`}, {"A,B", `{"A":"1\\","B":"3"}`, `1\\,3`}, {"", `{}`, ""},
		{"Id", `{}`, "lock_key_missing"}, {"Id", `{"Id":null}`, "lock_key_missing"}, {"Id", `{"Id":""}`, "lock_key_missing"}, {"Id", `{"id":1}`, "lock_key_missing"},
		{"O.Id", `{"O":5}`, "lock_key_missing"}, {"O.Id", `{"O.Id":5}`, "lock_key_missing"}, {"A,B", `{"A":1}`, "lock_key_missing"},
		{"Id", `{"Id":{}}`, "bad_request"}, {"Id", `{"Id":[1]}`, "bad_request"},
	} {
		got, err := lockValue(&apis.Definition{LockKey: c.key}, json.RawMessage(c.param))
		if err != nil {
			got = string(fault.Of(err))
		}
		if got != c.want {
			t.Errorf("LockKey %q in %s: %q, want %q", c.key, c.param, got, c.want)
		}
	}
}

// Two different lists of values never make one lock.
func TestJoinedLockValuesAreApart(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	word := func() string {
		var b strings.Builder
		b.WriteByte('x')
		for range r.IntN(4) {
			b.WriteByte(`,\a`[r.IntN(3)])
		}
		return b.String()
	}
	seen := map[string][2]string{}
	for range 5000 {
		pair := [2]string{word(), word()}
		param, _ := json.Marshal(map[string]string{"A": pair[0], "B": pair[1]})
		v, err := lockValue(&apis.Definition{LockKey: "A,B"}, param)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if before, ok := seen[v]; ok && before != pair {
			t.Fatalf("seed %d: %q and %q are both %q", seed, before, pair, v)
		}
		seen[v] = pair
	}
}

func TestCleanParam(t *testing.T) {
	for _, c := range []struct {
		param, want string
		values      map[string]string
	}{
		{"", `{}`, nil}, {" \n{\"a\":1}", `{"a":1}`, nil}, {`[1]`, "bad_request", nil}, {`null`, "bad_request", nil},
		{`{"_CURRENTUSER":1,"a":1}`, `{"a":1}`, nil}, {`{"\u005f\u0063urrentUser":1}`, `{}`, nil}, {`{"_BackgroundTaskAnything":1}`, `{}`, nil},
		{`{"_Where":[],"a_":1}`, `{"_Where":[],"a_":1}`, nil}, {`{"n":1.50,"_invokeType":"x"}`, `{"n":1.50}`, nil},
		{`{"Id":"body","\u0049d":2,"b":1}`, `{"Id":"p\"1","b":1}`, map[string]string{"Id": `p"1`}},
	} {
		got, err := cleanParam(json.RawMessage(c.param), c.values, OriginHTTP)
		if err != nil {
			got = json.RawMessage(fault.Of(err))
		}
		if string(got) != c.want {
			t.Errorf("%s with %v: %s, want %s", c.param, c.values, got, c.want)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		`{"Password":"a","n":12345678901234567890}`: `{"Password":"[redacted]","n":12345678901234567890}`,
		`[{"x":{"ACCESS_TOKEN":{"deep":1}}}]`:       `[{"x":{"ACCESS_TOKEN":"[redacted]"}}]`,
		`{"Pin":1,"Spin":2,"opinion":3}`:            `{"Pin":"[redacted]","Spin":2,"opinion":3}`,
		`"text"`:                                    `"text"`, `not JSON`: `"[redacted]"`, ``: `"[redacted]"`,
	} {
		if got := string(Redact(json.RawMessage(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRates()
		d := &apis.Definition{ApiEngineKey: "a", RateLimit: "2/m"}
		take := func(tenant, id, ip string) fault.Kind {
			return fault.Of(r.take(Call{Tenant: tenant, Caller: Caller{ID: id}, ClientIP: ip}, d))
		}
		for i, c := range []struct {
			tenant, id, ip string
			want           fault.Kind
		}{
			{"t", "x", "1", ""}, {"t", "x", "2", ""}, {"t", "x", "3", fault.RateLimited}, // by token, whatever the address
			{"t", "", "1", ""}, {"t", "", "1", ""}, {"t", "", "1", fault.RateLimited}, {"t", "", "2", ""}, // anonymous by address
			{"t", "1", "", ""}, {"u", "x", "1", ""}, // a token called like an address; another tenant
		} {
			if got := take(c.tenant, c.id, c.ip); got != c.want {
				t.Errorf("call %d: %q, want %q", i, got, c.want)
			}
		}
		err := r.take(Call{Tenant: "t", Caller: Caller{ID: "x"}}, d)
		wait := fault.Details(err)["RetryAfterMs"].(int64)
		time.Sleep(time.Duration(wait) * time.Millisecond)
		if k := take("t", "x", ""); k != "" || wait > 30001 {
			t.Errorf("after the %d ms that were asked for: %q", wait, k)
		}
		if k := take("t", "x", ""); k != fault.RateLimited {
			t.Errorf("a second one at once: %q", k)
		}
	})
}

// However many come at once, no more are inside than may be, and all leave.
func TestGate(t *testing.T) {
	g := gate{max: 5, maxTenant: 3}
	var mu sync.Mutex
	inside, worst := map[string]int{}, map[string]int{}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			tenant := fmt.Sprint(i % 3)
			at, err := g.enter(tenant)
			if err != nil {
				if k := fault.Of(err); k != fault.Overloaded && k != fault.TenantBusy {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			for _, who := range []string{tenant, "all"} {
				inside[who]++
				worst[who] = max(worst[who], inside[who])
			}
			mu.Unlock()
			mu.Lock()
			inside[tenant]--
			inside["all"]--
			mu.Unlock()
			at.leave()
		})
	}
	wg.Wait()
	if worst["all"] > 5 || worst["0"] > 3 || worst["all"] == 0 || g.all.Load() != 0 {
		t.Errorf("inside at most %v, left behind %d", worst, g.all.Load())
	}
	for range 3 {
		if _, err := g.enter("0"); err != nil {
			t.Error(err)
		}
	}
	if _, err := g.enter("0"); fault.Of(err) != fault.TenantBusy || fault.Details(err)["RetryAfterMs"] == nil {
		t.Errorf("a fourth of a tenant: %v", err)
	}
}

// patience leaves the caller some of its time.
func TestPatience(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{0: 0, 10 * time.Millisecond: 0, 100 * time.Millisecond: 80 * time.Millisecond, 10 * time.Second: 9 * time.Second} {
		if got := patience(left); got != want {
			t.Errorf("%v: %v, want %v", left, got, want)
		}
	}
}
