package lockwrap_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"apiengine/lockwrap"
)

// The text is stored, by the guard and by Redis: these lines may never change.
func TestKeyString(t *testing.T) {
	for _, c := range []struct {
		key  lockwrap.Key
		want string
	}{
		{lockwrap.Key{Tenant: "acme", Scope: "OrderId", Value: "42"}, "acme:OrderId:42"},
		{lockwrap.Key{Tenant: "acme", Scope: "api:order_pay"}, "acme:api%3Aorder_pay:"},
		{lockwrap.Key{Tenant: "a", Scope: "ShopId,OrderId", Value: "7,8"}, "a:ShopId,OrderId:7,8"},
		{lockwrap.Key{Tenant: "a", Scope: "订单", Value: "é~🙂"}, "a:订单:é%7E%F0%9F%99%82"},
		{lockwrap.Key{Tenant: "a", Scope: "s", Value: "{x} %\n\x00\xff"}, "a:s:%7Bx%7D%20%25%0A%00%FF"},
		{lockwrap.Key{Tenant: "a", Scope: "s", Value: strings.Repeat("x", 256)}, "a:s:" + strings.Repeat("x", 256)},
		{lockwrap.Key{Tenant: "a", Scope: "s", Value: strings.Repeat("x", 257)},
			"a:s:~15eb95a462ee20bd91a415ae2d4aed341288186ddaa2b37908f7d592f0c3f85f"},
	} {
		if got := c.key.String(); got != c.want {
			t.Errorf("%+q:\n got %s\nwant %s", c.key, got, c.want)
		}
	}
}

// FuzzKey looks for two keys with one text, and for text that is not what String promises.
func FuzzKey(f *testing.F) {
	f.Add("a", "b:c", "d", "a:b", "c", "d")
	f.Add("a", "b", "~", "a", "b", "%7E")
	f.Add("a", "b", strings.Repeat("{", 100), "a", "b", lockwrap.Encode(strings.Repeat("{", 100)))
	f.Add("\xff", "\xef\xbf\xbd", "", "\xef\xbf\xbd", "\xff", "")
	f.Fuzz(func(t *testing.T, t1, s1, v1, t2, s2, v2 string) {
		k1, k2 := lockwrap.Key{Tenant: t1, Scope: s1, Value: v1}, lockwrap.Key{Tenant: t2, Scope: s2, Value: v2}
		checkKeys(t, k1, k2)
	})
}

func checkKeys(t *testing.T, k1, k2 lockwrap.Key) {
	t.Helper()
	a, b := k1.String(), k2.String()
	if (a == b) != (k1 == k2) {
		t.Fatalf("%+q and %+q become %q and %q", k1, k2, a, b)
	}
	if len(a) > 770 || !utf8.ValidString(a) || strings.ContainsAny(a, "{} \x00\r\n") || strings.Count(a, ":") != 2 {
		t.Fatalf("%+q becomes %q", k1, a)
	}
}

func TestKeysNeverCollide(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{"a", ":", "%", "%3A", "~", "{", "}", "é", "\xc3", "\xff", "\x00", ",", "订", strings.Repeat("x", 255)}
	part := func() string {
		var b strings.Builder
		for range 1 + r.IntN(3) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		return b.String()
	}
	seen := map[string]lockwrap.Key{}
	for range 50_000 {
		k := lockwrap.Key{Tenant: part(), Scope: part(), Value: part()}
		text := k.String()
		if other, ok := seen[text]; ok && other != k {
			t.Fatalf("%+q and %+q both become %q", k, other, text)
		}
		seen[text] = k
		checkKeys(t, k, k)
	}
}
