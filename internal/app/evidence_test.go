package app

import (
	"encoding/json"
	"testing"

	"apiengine/engine"
	"apiengine/store/tenantdb"
)

// What an unknown commit turns out to have been is the outcome of the run only together with
// what the run committed before it and had to roll back after it.
func TestTheWordOfAnUnknownCommit(t *testing.T) {
	left := (&tenantdb.UnknownError{Witness: tenantdb.Witness{Lock: "l", Token: 7, Xid: "9"}}).Evidence()
	for _, c := range []struct {
		name         string
		before, rest bool
		landed, lost string
	}{
		{"the only transaction", false, false, "committed", "rolled_back"},
		{"the first of several", false, true, "partly_committed", "rolled_back"},
		{"one between others", true, true, "partly_committed", "partly_committed"},
		{"the last of several", true, false, "committed", "partly_committed"},
	} {
		var e evidence
		if err := json.Unmarshal(evidenceOf(engine.Unknown{Evidence: left, Database: "erp", Before: c.before, Rest: c.rest}), &e); err != nil {
			t.Fatal(err)
		}
		if e.Database != "erp" || e.Witness != (tenantdb.Witness{Lock: "l", Token: 7, Xid: "9"}) {
			t.Errorf("%s: %+v", c.name, e)
		}
		if landed, lost := e.word(true), e.word(false); landed != c.landed || lost != c.lost {
			t.Errorf("%s: %s or %s, want %s or %s", c.name, landed, lost, c.landed, c.lost)
		}
	}
	var old evidence // as it was kept before there were named databases
	if err := json.Unmarshal(left, &old); err != nil || old.Token != 7 || old.word(true) != "committed" {
		t.Errorf("%+v, %v", old, err)
	}
}
