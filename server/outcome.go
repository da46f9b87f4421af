package server

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"apiengine/fault"
)

// Outcomes tells what became of a run, that was answered with outcome_unknown above all.
type Outcomes interface {
	// Outcome returns committed, rolled_back, partly_committed or unknown (not yet). A run that the asker
	// may not see, and one that nothing is known of, are one and the same not_found.
	Outcome(ctx context.Context, q OutcomeQuery) (string, error)
}

// OutcomeQuery asks for one run.
type OutcomeQuery struct {
	Tenant, Execution string
	Caller            string // the asker, who must be the run's caller, or
	Admin             bool   // an administrator of the tenant
}

func (s *Server) mountOutcome(m chi.Router) {
	if s.cfg.Outcomes != nil {
		m.Method(http.MethodGet, "/api/v1/executions/{id}/outcome", s.handle((*exchange).outcome))
	}
}

func (x *exchange) outcome() reply {
	query, err := plainQuery(x.r.URL)
	if err != nil {
		return x.fail(err)
	}
	id, tenant, err := x.admit("", query)
	if err != nil {
		return x.fail(err)
	}
	execution := x.param("id")
	if !saneID(execution) {
		return x.fail(refuse(fault.NotFound, "that is no execution's id"))
	}
	word, err := x.s.cfg.Outcomes.Outcome(x.r.Context(), OutcomeQuery{Tenant: tenant, Execution: execution, Caller: id.ID, Admin: id.may(RoleAdmin)})
	if err != nil {
		return x.fail(err)
	}
	return x.success(answer{data: struct{ ExecutionId, Outcome string }{execution, word}})
}
