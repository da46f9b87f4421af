package server

import (
	"context"
	"net/http"
	"sync"

	"apiengine/fault"
)

// healthz says that the process answers.
func (x *exchange) healthz() reply {
	return reply{http.StatusOK, typeJSON, []byte(`{"Code":1}`)}
}

// readyz runs all checks at once and names those that failed.
func (x *exchange) readyz() reply {
	failed, kind := x.s.failedChecks(x.r.Context())
	if x.s.draining.Load() {
		failed["draining"] = "the server is shutting down"
	}
	if len(failed) == 0 {
		return reply{http.StatusOK, typeJSON, []byte(`{"Code":1}`)}
	}
	if x.s.draining.Load() {
		kind = fault.Draining
	}
	return x.fail(refuse(kind, "not ready").with(map[string]any{"Failed": failed}))
}

// failedChecks returns a text for each failed check by its name, and what kind of trouble it
// is: that of the first check that says so, else overloaded.
func (s *Server) failedChecks(ctx context.Context) (failed map[string]string, kind fault.Kind) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CheckTimeout)
	defer cancel()
	errs := make([]error, len(s.cfg.Checks))
	var wg sync.WaitGroup
	for i, c := range s.cfg.Checks {
		wg.Go(func() { errs[i] = c.Func(ctx) })
	}
	wg.Wait()
	failed, kind = map[string]string{}, fault.Overloaded
	for i, err := range errs {
		if err == nil {
			continue
		}
		name := s.cfg.Checks[i].Name
		s.cfg.Log.WarnContext(ctx, "not ready", "check", name, "error", err)
		failed[name] = fault.Public(err)
		if k := fault.Of(err); kind == fault.Overloaded && (k == fault.LockUnavailable || k == fault.StoreUnavailable) {
			kind = k
		}
	}
	return failed, kind
}
