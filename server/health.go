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
// is: overloaded, unless a check says better.
func (s *Server) failedChecks(ctx context.Context) (failed map[string]string, kind fault.Kind) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CheckTimeout)
	defer cancel()
	failed, kind = map[string]string{}, fault.Overloaded
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, c := range s.cfg.Checks {
		wg.Go(func() {
			err := c.Func(ctx)
			if err == nil {
				return
			}
			s.cfg.Log.WarnContext(ctx, "not ready", "check", c.Name, "error", err)
			mu.Lock()
			defer mu.Unlock()
			failed[c.Name] = fault.Public(err)
			switch k := fault.Of(err); k {
			case fault.LockUnavailable, fault.StoreUnavailable:
				kind = k
			}
		})
	}
	wg.Wait()
	return failed, kind
}
