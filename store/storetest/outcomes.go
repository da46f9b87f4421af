package storetest

import (
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/store"
)

// The first word about a run counts for ever, and only its tenant hears it.
func outcomesKept(t *testing.T, open Opener) {
	s := open(t)
	o := store.Outcome{Execution: "e1", Tenant: "a", Caller: "me", Evidence: []byte(`{"Xid":"1"}`), At: time.UnixMicro(5).UTC()}
	for _, c := range []struct{ word, want string }{{"", ""}, {"committed", "committed"}, {"", "committed"}, {"rolled_back", "committed"}} {
		o.Word = c.word
		if err := s.SaveOutcome(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		got := must(s.Outcome(t.Context(), "a", "e1"))(t)
		if got.Word != c.want || got.Caller != "me" || string(got.Evidence) != `{"Xid":"1"}` || !got.At.Equal(o.At) {
			t.Errorf("after %q: %+v", c.word, got)
		}
	}
	if _, err := s.Outcome(t.Context(), "b", "e1"); fault.Of(err) != fault.NotFound {
		t.Errorf("another tenant: %v", err)
	}
}
