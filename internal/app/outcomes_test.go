package app

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"apiengine/engine"
	"apiengine/store/tenantdb"
)

// An unknown outcome is told to the run's caller and to an administrator, and the same on
// every ask, also when what told it is gone.
func TestOutcomes(t *testing.T) {
	s := Defaults()
	s.DataDir, s.AdminToken = t.TempDir(), "aek_admin-token-of-the-outcome-test-0123456789"
	a, err := Open(t.Context(), s, NewLog(s, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	db, err := a.databases.tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"landed", "lost"} {
		attempt, _, err := db.Claim(t.Context(), tenantdb.Claim{ID: run, Fingerprint: "f", Execution: run, Keep: 1})
		if err != nil {
			t.Fatal(err)
		}
		tx, err := db.Begin(t.Context(), tenantdb.Guard{})
		if err == nil {
			err = tx.Complete(t.Context(), attempt, tenantdb.Answer{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if run == "landed" {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		u := &tenantdb.UnknownError{Witness: tenantdb.Witness{ID: run, Execution: run}}
		a.outcomes.keep(t.Context(), engine.Unknown{Execution: run, Tenant: "default", Caller: "somebody", Evidence: u.Evidence()})
	}
	a.outcomes.keep(t.Context(), engine.Unknown{Execution: "nothing left", Tenant: "default", Evidence: (&tenantdb.UnknownError{}).Evidence()})
	ask := func(execution, token string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/executions/"+execution+"/outcome", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for range 2 {
		for _, c := range []struct {
			execution, token string
			status           int
			body             string
		}{
			{"landed", s.AdminToken, 200, `{"Code":1,"Data":{"ExecutionId":"landed","Outcome":"committed"}}`},
			{"lost", s.AdminToken, 200, `{"Code":1,"Data":{"ExecutionId":"lost","Outcome":"rolled_back"}}`},
			{"landed", "", 404, ""}, // somebody else
			{"other", s.AdminToken, 404, ""},
		} {
			if status, body := ask(c.execution, c.token); status != c.status || c.body != "" && body != c.body {
				t.Errorf("%s: %d %s", c.execution, status, body)
			}
		}
		if _, err := db.ForgetAnswers(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	a.outcomes.settle(t.Context())
	if kept, err := a.Store.Outcome(t.Context(), "default", "nothing left"); err != nil || kept.Word != "" {
		t.Errorf("%+v, %v", kept, err)
	}
}
