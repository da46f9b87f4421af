package storetest

import (
	"fmt"
	"strings"
	"testing"

	"apiengine/fault"
	"apiengine/store"
)

func namedDatabases(t *testing.T, open Opener) {
	s := open(t)
	must(s.CreateTenant(t.Context(), "acme"))(t)
	names := func(tenant string) string {
		var list []string
		for _, d := range must(s.Databases(t.Context(), tenant))(t) {
			if d.CreatedAt.IsZero() {
				t.Errorf("%s has no time", d.Name)
			}
			list = append(list, d.Name)
		}
		return strings.Join(list, " ")
	}
	add := func(tenant, name string) error {
		_, err := s.AddDatabase(t.Context(), store.DatabaseChange{Tenant: tenant, Name: name, Actor: "root"})
		return err
	}
	remove := func(tenant, name string) error {
		return s.RemoveDatabase(t.Context(), store.DatabaseChange{Tenant: tenant, Name: name, Actor: "root"})
	}
	long := strings.Repeat("a", 40)
	for _, c := range []struct {
		do           func(tenant, name string) error
		tenant, name string
		want         fault.Kind
	}{
		{add, "Acme", "Stock", ""}, {add, "acme", "erp2", ""}, {add, "acme", long, ""},
		{add, "acme", "STOCK", fault.VersionConflict}, {add, "nobody", "stock", fault.NotFound}, {add, "no/body", "stock", fault.NotFound},
		{add, "acme", "", fault.BadRequest}, {add, "acme", "2erp", fault.BadRequest}, {add, "acme", "_erp", fault.BadRequest},
		{add, "acme", "a-b", fault.BadRequest}, {add, "acme", "a b", fault.BadRequest}, {add, "acme", "a.db", fault.BadRequest},
		{add, "acme", "../x", fault.BadRequest}, {add, "acme", "a/b", fault.BadRequest}, {add, "acme", `a\b`, fault.BadRequest},
		{add, "acme", "a\x00", fault.BadRequest}, {add, "acme", "a\n", fault.BadRequest}, {add, "acme", `a"b`, fault.BadRequest},
		{add, "acme", "stoc\u212a", fault.BadRequest}, {add, "acme", "库存", fault.BadRequest}, {add, "acme", long + "a", fault.BadRequest},
		{remove, "acme", "Erp2", ""}, {remove, "acme", "erp2", fault.NotFound}, {remove, "default", "stock", fault.NotFound},
		{remove, "nobody", "stock", fault.NotFound}, {remove, "no/body", "stock", fault.NotFound},
	} {
		if err := c.do(c.tenant, c.name); fault.Of(err) != c.want {
			t.Errorf("%q of %q: %v, want %q", c.name, c.tenant, err, c.want)
		}
	}
	if got := names("ACME"); got != long+" stock" {
		t.Errorf("acme has %q", got)
	}
	if got := names("default"); got != "" {
		t.Errorf("another tenant has %q", got)
	}
	if _, err := s.Databases(t.Context(), "nobody"); fault.Of(err) != fault.NotFound {
		t.Errorf("nobody's: %v", err)
	}
	if err := add("acme", "erp2"); err != nil {
		t.Errorf("added again: %v", err)
	}
	var trail []string
	for _, e := range must(s.Audit(t.Context(), store.AuditQuery{Tenant: "acme", Limit: 10}))(t) {
		trail = append(trail, fmt.Sprint(e.Actor, " ", e.Action, " ", e.Subject[:min(5, len(e.Subject))]))
	}
	want := "root tenant.database.add erp2, root tenant.database.remove erp2, root tenant.database.add aaaaa, root tenant.database.add erp2, root tenant.database.add stock"
	if got := strings.Join(trail, ", "); got != want {
		t.Errorf("the trail:\n%s\nwant\n%s", got, want)
	}
}
