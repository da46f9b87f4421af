package app

import (
	"encoding/json"
	"testing"
	"time"

	"apiengine/internal/client"
)

// No result prints null where a list belongs; what was a list or null by itself stays.
func TestListsAreNeverNull(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{&client.CheckResult{}, `{"Files":0,"Problems":[]`},
		{&client.SQLResult{}, `{"Columns":[],"Rows":[],"Affected":0}`},
		{&client.SQLResult{Columns: []string{"a"}, Rows: []json.RawMessage{[]byte("[null]"), nil}}, `{"Columns":["a"],"Rows":[[null],null],"Affected":0}`},
		{client.Tenants(nil), `[]`},
		{client.Tokens{{Id: "x"}}, `[{"Id":"x","Tenant":"","Name":"","Roles":[],"Scopes":[],"CreatedAt":"0001-01-01T00:00:00Z"}]`},
		{migrated{}, `{"Applied":[],"Pending":[]}`},
		{done("x"), `"x"`},
		{struct{ At *time.Time }{}, `{"At":null}`},
	} {
		got, err := json.Marshal(withLists(c.v))
		if err != nil || len(got) < len(c.want) || string(got[:len(c.want)]) != c.want {
			t.Errorf("%T: %s (%v), want %s", c.v, got, err, c.want)
		}
	}
}
