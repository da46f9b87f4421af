package storetest

import (
	"testing"

	"apiengine/fault"
	"apiengine/store"
)

func egressRules(t *testing.T, open Opener) {
	s := open(t)
	must(s.CreateTenant(t.Context(), "acme"))(t)
	if got := must(s.EgressRules(t.Context(), "acme"))(t); len(got) != 0 {
		t.Errorf("at first: %s", got)
	}
	for _, rules := range []string{`{"Mode":"off"}`, `{"Mode":"public"}`} {
		if err := s.SetEgressRules(t.Context(), "Acme", "root", []byte(rules)); err != nil {
			t.Fatal(err)
		}
		if got := must(s.EgressRules(t.Context(), "ACME"))(t); string(got) != rules {
			t.Errorf("%s, want %s", got, rules)
		}
	}
	if got := must(s.EgressRules(t.Context(), "default"))(t); len(got) != 0 {
		t.Errorf("another tenant has %s", got)
	}
	if _, err := s.EgressRules(t.Context(), "nobody"); fault.Of(err) != fault.NotFound {
		t.Errorf("nobody's: %v", err)
	}
	if err := s.SetEgressRules(t.Context(), "nobody", "root", []byte(`{}`)); fault.Of(err) != fault.NotFound {
		t.Errorf("for nobody: %v", err)
	}
	trail := must(s.Audit(t.Context(), store.AuditQuery{Tenant: "acme", Limit: 10}))(t)
	if len(trail) != 2 || trail[1].Action != "tenant.egress" || trail[1].Actor != "root" || string(trail[1].Detail) != `{"Mode":"off"}` {
		t.Errorf("the trail: %+v", trail)
	}
}
