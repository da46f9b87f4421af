package storetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"apiengine/fault"
	"apiengine/store"
)

func auditEntries(t *testing.T, open Opener) {
	s := open(t)
	for i := range 5 {
		tenant := store.DefaultTenant
		if i%2 == 1 {
			tenant = "acme"
		}
		e := store.AuditEntry{Tenant: tenant, Actor: "root (t1)", Action: "lock.release", Subject: fmt.Sprint(i),
			Detail: json.RawMessage(fmt.Sprintf(`{"Token":%d}`, i))}
		if err := s.AddAudit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddAudit(t.Context(), store.AuditEntry{Action: "bare"}); err != nil {
		t.Error(err)
	}
	wantKind(t, "broken detail", s.AddAudit(t.Context(), store.AuditEntry{Detail: json.RawMessage("{")}), fault.BadRequest)

	subjects := func(q store.AuditQuery) (text string, last int64) {
		for _, e := range must(open(t).Audit(t.Context(), q))(t) {
			text, last = text+e.Subject, e.ID
			if e.At.IsZero() || !json.Valid(e.Detail) {
				t.Errorf("entry %+v", e)
			}
		}
		return text, last
	}
	if got, _ := subjects(store.AuditQuery{Tenant: "acme", Limit: 10}); got != "31" {
		t.Errorf("acme's entries %q", got)
	}
	first, last := subjects(store.AuditQuery{Limit: 4})
	second, _ := subjects(store.AuditQuery{Limit: 4, Before: last})
	if first != "432" || second != "10" { // the bare one has no subject
		t.Errorf("pages %q and %q", first, second)
	}
}
