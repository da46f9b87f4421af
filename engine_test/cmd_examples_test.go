package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"apiengine/examples"
)

// The examples answer what examples/README.md says, on every backend pair.
func TestExamples(t *testing.T) {
	for _, p := range backendPairs {
		t.Run(p.name, func(t *testing.T) {
			h := newHouse(t, p)
			tenant := h.tenant(t)
			h.load(t, tenant, examples.FS)
			call := func(method, path, body string, code float64) answer {
				t.Helper()
				a := h.do(tenant, method, path, body)
				if a.Status != 200 || a.JSON.Code != code {
					t.Fatalf("%s %s: %d %s", path, body, a.Status, a.Body)
				}
				return a
			}
			field := func(a answer, name string) any {
				m, _ := a.JSON.Data.(map[string]any)
				return m[name]
			}
			if a := call("GET", "/hello/Ada", "", 1); a.JSON.Data != "Hello, Ada!" {
				t.Error(a.Body)
			}
			for _, want := range []string{"database", "cache"} {
				a := call("GET", "/apiengine/product_detail?ProductId=P1", "", 1)
				if got := from(t, a); got != want {
					t.Errorf("the product came from %q, want %q", got, want)
				}
			}
			call("POST", "/apiengine/product_stock", `{"ProductId":"P1","Stock":12}`, 1)
			if a := call("POST", "/apiengine/product_refresh", `{"ProductId":"P1"}`, 1); field(a, "stock") != 12.0 {
				t.Errorf("stock after a refresh: %s", a.Body)
			}
			claim := call("POST", "/apiengine/job_claim", `{"JobId":"J1"}`, 1)
			call("POST", "/apiengine/job_claim", `{"JobId":"J1"}`, 0)
			finish := fmt.Sprintf(`{"JobId":"J1","OwnerToken":%.0f,"Ok":true,"Result":"done"}`, field(claim, "OwnerToken"))
			call("POST", "/apiengine/job_finish", finish, 1)
			call("POST", "/apiengine/job_finish", `{"JobId":"J1","OwnerToken":1,"Ok":true}`, 0)
			if a := call("POST", "/apiengine/order_pay", `{"OrderId":"O1"}`, 1); field(a, "Cents") != 5800.0 {
				t.Errorf("paid: %s", a.Body)
			}
			if a := call("POST", "/apiengine/order_pay", `{"OrderId":"O1"}`, 0); a.JSON.Msg != "already paid" {
				t.Error(a.Body)
			}
			if a := call("POST", "/apiengine/order_pay", `{"OrderId":"O3"}`, 0); a.JSON.Msg != "only 10 left of Teapot" {
				t.Error(a.Body)
			}
			if a := call("GET", "/apiengine/product_detail?ProductId=P1", "", 1); field(a, "stock") != 10.0 {
				t.Errorf("stock after one payment and one refusal: %s", a.Body)
			}
		})
	}
}

// from is where product_detail says it read.
func from(t *testing.T, a answer) string {
	t.Helper()
	var body struct{ DataAppend struct{ From string } }
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
		t.Fatal(err)
	}
	return body.DataAppend.From
}
