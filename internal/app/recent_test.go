package app

import (
	"errors"
	"fmt"
	"testing"

	"apiengine/engine"
	"apiengine/fault"
)

func TestRecentRuns(t *testing.T) {
	failed := errors.New("no")
	for _, c := range []struct {
		name string
		x    *engine.Execution
		want string // empty: not known
	}{
		{"committed", &engine.Execution{Outcome: engine.OutcomeOK, Committed: true}, "committed"},
		{"nothing to commit", &engine.Execution{Outcome: engine.OutcomeOK}, ""},
		{"a Code of its own", &engine.Execution{Outcome: engine.OutcomeBusiness}, "rolled_back"},
		{"failed", &engine.Execution{Err: failed, Kind: fault.Timeout}, "rolled_back"},
		{"failed after a commit of its own", &engine.Execution{Err: failed, Kind: fault.Timeout, Committed: true}, "partly_committed"},
		{"a Code of its own after a commit of its own", &engine.Execution{Outcome: engine.OutcomeBusiness, Committed: true}, "partly_committed"},
		{"unknown", &engine.Execution{Err: failed, Kind: fault.OutcomeUnknown}, ""},
		{"replayed", &engine.Execution{Outcome: engine.OutcomeOK, Committed: true, ReplayOf: "x"}, ""},
	} {
		r := recent{}
		c.x.ID, c.x.Tenant, c.x.CallerID = "e", "t", "me"
		r.observe(c.x)
		got, ok := r.of("t", "e")
		if got.word != c.want || ok != (c.want != "") || ok && got.caller != "me" {
			t.Errorf("%s: %+v, %v", c.name, got, ok)
		}
		if _, ok := r.of("other", "e"); ok {
			t.Errorf("%s: another tenant hears of it", c.name)
		}
	}
	r := recent{size: 3}
	for i := range 8 {
		r.observe(&engine.Execution{ID: fmt.Sprint(i), Tenant: "t", Committed: true})
	}
	for i := range 8 {
		if _, ok := r.of("t", fmt.Sprint(i)); ok != (i >= 5) {
			t.Errorf("the run %d of 8 is known: %v", i, ok)
		}
	}
	if len(r.runs) != 3 {
		t.Errorf("%d are kept", len(r.runs))
	}
}
