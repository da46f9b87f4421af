package apis

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"apiengine/fault"
)

// program stands for what the bridge makes; a script of "syntax error" cannot be compiled.
type program struct{ code string }

var errCompile = fault.New(fault.ScriptSyntax, "the script cannot be compiled")

func newTestCatalog() *Catalog[*program] {
	return NewCatalog(func(d Definition) (*program, error) {
		if d.ApiV8Code == "syntax error" {
			return nil, errCompile
		}
		return &program{d.ApiV8Code}, nil
	})
}

func api(key, address string) Definition {
	return Definition{ApiEngineKey: key, ApiAddress: address, ApiV8Code: "code of " + key + " at " + address}
}

func TestByPath(t *testing.T) {
	c := newTestCatalog()
	for key, address := range map[string]string{
		"list": "/orders", "one": "/orders/{id}", "new": "/orders/new", "pay": "/orders/{OrderId}/pay", "newpdf": "/orders/new/pdf",
		"any": "/{a}/{b}/{c}/{d}", "deep": "/Shop/{x}/b/{y}", "cn": "/订单/{编}"[:len("/订单/")] + "{no}", "below": "/apiengine/a/b", "file": "/f/v1.0/a~b(c)",
	} {
		if err := c.Put("t", 1, api(key, address)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		path, key string
		values    map[string]string
	}{
		{"/orders", "list", nil},
		{"/ORDERS", "list", nil},
		{"/%6Frders", "list", nil},
		{"/orders/", "", nil},
		{"//orders", "", nil},
		{"/orders/42", "one", map[string]string{"id": "42"}},
		{"/orders/AbC", "one", map[string]string{"id": "AbC"}},
		{"/orders/a%2Fb%20c+d", "one", map[string]string{"id": "a/b c+d"}},
		{"/orders/new", "new", nil},
		{"/Orders/NEW", "new", nil},
		{"/orders/newer", "one", map[string]string{"id": "newer"}},
		{"/orders/new/pay", "pay", map[string]string{"OrderId": "new"}},
		{"/orders/new/pdf", "newpdf", nil},
		{"/orders/7/pdf", "", nil},
		{"/orders/7/pay/", "", nil},
		{"/shop/1/b/2", "deep", map[string]string{"x": "1", "y": "2"}},
		{"/shop/1/c/2", "any", map[string]string{"a": "shop", "b": "1", "c": "c", "d": "2"}},
		{"/admin/1/c/2", "", nil},
		{"/API/1/c/2", "", nil},
		{"/%E8%AE%A2%E5%8D%95/%E5%8F%B7", "cn", map[string]string{"no": "号"}},
		{"/apiengine/A/b", "below", nil},
		{"/f/v1.0/a~b(c)", "file", nil},
		{"/orders/..", "", nil},
		{"/orders/%2e%2E", "", nil},
		{"/orders/.", "", nil},
		{"/orders/%", "", nil},
		{"/orders/%ff", "", nil},
		{"/orders%2F42", "", nil},
		{"orders", "", nil},
		{"/", "", nil},
		{"", "", nil},
		{strings.Repeat("/a", 10000), "", nil},
	}
	for _, tt := range tests {
		e, values, ok := c.ByPath("t", tt.path)
		switch {
		case ok != (tt.key != ""):
			t.Errorf("%.60s: found %v", tt.path, ok)
		case ok && (e.Definition.ApiEngineKey != tt.key || !maps.Equal(values, tt.values)):
			t.Errorf("%s: %s %v", tt.path, e.Definition.ApiEngineKey, values)
		}
	}
	if _, _, ok := c.ByPath("other", "/orders"); ok {
		t.Error("another tenant sees the address")
	}
}

func TestAddressRefused(t *testing.T) {
	for address, want := range map[string]string{
		"orders": "must begin with '/'", "/": "empty segment", "/a/": "empty segment", "//a": "empty segment", "/a//b": "empty segment",
		"/a/../b": `".." as a segment`, "/./a": `"." as a segment`, "/a%2Fb": "character '%'", "/a%62": "character '%'", "/a b": "character ' '",
		"/a\\b": `character '\\'`, "/a?b": "character '?'", "/a#b": "character '#'", "/a*": "character '*'", "/a\x00": `character '\x00'`, "/a\u2028": `character '\u2028'`,
		"/{}": "a {name} stands alone", "/{a": "a {name} stands alone", "/a}": "a {name} stands alone", "/a{b}": "a {name} stands alone", "/{a}{b}": "a {name} stands alone",
		"/{a:[0-9]+}": "a {name} stands alone", "/{_CurrentUser}": "a {name} stands alone", "/{1}": "a {name} stands alone", "/{a...}": "a {name} stands alone", "/{a}/{a}": "has {a} twice",
		"/admin": "under /admin", "/Admin/x": "under /admin", "/api/x": "under /api", "/metrics": "under /metrics", "/healthz/x": "under /healthz", "/readyz": "under /readyz",
		"/openapi.json": "under /openapi.json", "/console/x": "under /console", "/apiengine": "called by their key", "/apiengine/other": "called by their key", "/apiengine/{x}": "called by their key",
		"/a--OsClient--b--": "--OsClient--", "/" + strings.Repeat("a", 255): "at most 255 bytes", strings.Repeat("/a", 33): "at most 32 segments", "/\xff": "valid UTF-8",
	} {
		_, err := api("k", address).Validate()
		var f *FieldError
		if !errors.As(err, &f) || f.Field != "ApiAddress" || !strings.Contains(f.Msg, want) {
			t.Errorf("%q: %v, want %s", address, err, want)
		}
	}
	for _, address := range []string{"/apis", "/healthz2", "/apiengine/K", "/apiengine/a/b", "/{a}", "/a.b/-/~", "/.well-known/x", "/a:b@c"} {
		if _, err := api("k", address).Validate(); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestConflict(t *testing.T) {
	c := newTestCatalog()
	put := func(key, address string) error { return c.Put("t", 1, api(key, address)) }
	if err := put("A", "/x/{id}"); err != nil {
		t.Fatal(err)
	}
	const want = `ApiAddress "/X/{other}" has the same shape as "/x/{id}" of the API A`
	for range 2 {
		_, _, err := c.Check("t", api("b", "/X/{other}"))
		if fmt.Sprint(err) != want || fault.Of(err) != fault.BadRequest {
			t.Errorf("check: %v", err)
		}
		if err := put("b", "/X/{other}"); fmt.Sprint(err) != want {
			t.Errorf("put: %v", err)
		}
	}
	if _, ok := c.ByKey("t", "b"); ok {
		t.Error("what was refused is live")
	}
	if err := c.Put("other", 1, api("b", "/X/{other}")); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	for _, err := range []error{put("b", "/x/one"), put("a", "/X/{no}"), put("b", "/x/one")} {
		if err != nil {
			t.Error(err)
		}
	}
	if e, v, ok := c.ByPath("t", "/x/Q"); !ok || e.Definition.ApiEngineKey != "a" || v["no"] != "Q" {
		t.Error("the address did not follow its own API's save under a key in another case")
	}
	// An address is free again when its API is gone, or has another.
	if err := put("a", "/y"); err != nil {
		t.Fatal(err)
	}
	if err := put("c", "/x/{id}"); err != nil {
		t.Error(err)
	}
	c.Delete("t", "C")
	if _, _, ok := c.ByPath("t", "/x/1"); ok {
		t.Error("the address outlived its API")
	}
	if err := put("d", "/x/{id}"); err != nil {
		t.Error(err)
	}
}

func TestAnErrorLeavesTheOldOneLive(t *testing.T) {
	c := newTestCatalog()
	if err := c.Put("t", 1, api("a", "/x")); err != nil {
		t.Fatal(err)
	}
	bad := api("a", "/y")
	bad.ApiV8Code = "syntax error"
	if err := c.Put("t", 2, bad); !errors.Is(err, errCompile) || fault.Of(err) != fault.ScriptSyntax {
		t.Errorf("compile: %v", err)
	}
	if _, _, err := c.Check("t", bad); !errors.Is(err, errCompile) {
		t.Errorf("check: %v", err)
	}
	bad = api("a", "/y")
	bad.Timeout = -1
	if err := c.Put("t", 3, bad); fault.Of(err) != fault.BadRequest {
		t.Errorf("invalid: %v", err)
	}
	e, _, ok := c.ByPath("t", "/x")
	if !ok || e.Version != 1 || e.Program.code != e.Definition.ApiV8Code || e.Plan.Run == 0 {
		t.Errorf("the old one is not live: %+v", e)
	}
}

func TestUpdatePassesAddressesOn(t *testing.T) {
	c := newTestCatalog()
	if errs := c.Replace("t", []Versioned{{1, api("a", "/x")}, {1, api("b", "/y")}, {1, api("gone", "/z")}}); len(errs) > 0 {
		t.Fatal(errs)
	}
	// a and b change places, c takes the address of one that goes away.
	errs := c.Update("t", []Versioned{{2, api("c", "/z")}, {2, api("b", "/x")}, {2, api("a", "/y")}}, []string{"GONE"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for path, key := range map[string]string{"/x": "b", "/y": "a", "/z": "c"} {
		if e, _, ok := c.ByPath("t", path); !ok || e.Definition.ApiEngineKey != key || e.Version != 2 {
			t.Errorf("%s is not %s's", path, key)
		}
	}
	// b cannot have a's address; it stays as it was, and so the one after it fails too.
	errs = c.Update("t", []Versioned{{3, api("b", "/y")}, {3, api("d", "/x")}, {3, api("e", "/e")}}, nil)
	keys := []string{}
	for _, err := range errs {
		var l *LoadError
		if errors.As(err, &l) {
			keys = append(keys, l.Key)
		}
	}
	if !slices.Equal(keys, []string{"b", "d"}) {
		t.Errorf("errors %v", errs)
	}
	if e, _, ok := c.ByPath("t", "/x"); !ok || e.Definition.ApiEngineKey != "b" || e.Version != 2 {
		t.Error("b is not as it was")
	}
	if _, _, ok := c.ByPath("t", "/e"); !ok {
		t.Error("one that fails takes another down")
	}
}

func TestReplace(t *testing.T) {
	c := newTestCatalog()
	broken := api("broken", "")
	broken.ApiV8Code = "syntax error"
	errs := c.Replace("t", []Versioned{{1, api("B", "/x")}, {1, broken}, {7, api("a", "")}, {1, api("c", "/x")}})
	if len(errs) != 2 || !strings.Contains(errs[0].Error(), "broken") || !strings.Contains(errs[1].Error(), "apis: c: ") {
		t.Errorf("errors %v", errs)
	}
	var keys []string
	for _, e := range c.List("t") {
		keys = append(keys, e.Definition.ApiEngineKey)
	}
	if !slices.Equal(keys, []string{"a", "B"}) {
		t.Errorf("live are %v", keys)
	}
	if errs := c.Replace("t", nil); len(errs) > 0 || len(c.List("t")) > 0 {
		t.Error("an empty list leaves something")
	}
}

func TestByKey(t *testing.T) {
	c := newTestCatalog()
	if err := c.Put("t", 3, api("Order_Pay", "")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"Order_Pay", "order_pay", "ORDER_PAY"} {
		if e, ok := c.ByKey("t", key); !ok || e.Definition.ApiEngineKey != "Order_Pay" || e.Version != 3 {
			t.Errorf("%s is not found", key)
		}
	}
	for _, at := range [][2]string{{"t", "order_pa"}, {"t", ""}, {"T", "order_pay"}, {"", "order_pay"}} {
		if _, ok := c.ByKey(at[0], at[1]); ok {
			t.Errorf("%v is found", at)
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.ByKey("t", "order_pay") }); n > 0 {
		t.Errorf("a look-up allocates %v times", n)
	}
}

// Readers see an entry whole, whatever writers do: route, program and version belong
// together.
func TestReadersSeeWholeEntries(t *testing.T) {
	c := newTestCatalog()
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for i := range 100 {
				key := fmt.Sprint("k", w)
				c.Update("t", []Versioned{{i, api(key, fmt.Sprintf("/%s/%d", key, i%3))}}, nil)
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for i := range 2000 {
				path := fmt.Sprintf("/k%d/%d", i%2, i%3)
				if e, _, ok := c.ByPath("t", path); ok && (e.Definition.ApiAddress != path || !strings.HasSuffix(e.Program.code, path) || e.Version%3 != i%3) {
					t.Errorf("%s leads to %+v", path, e)
				}
			}
		})
	}
	wg.Wait()
}
