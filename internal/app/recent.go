package app

import (
	"cmp"
	"sync"

	"apiengine/engine"
	"apiengine/fault"
)

// recent remembers what became of the runs that ended on this node lately and had something
// to commit, or failed. A run without either leaves nothing that anybody could ask about.
type recent struct {
	size int // how many; default recentRuns

	mu    sync.Mutex
	runs  map[string]ended
	order []string // ids, a ring
	next  int
}

// recentRuns is some seconds to minutes of a busy node, in 2 MB.
const recentRuns = 10_000

type ended struct{ tenant, caller, word string }

// observe is called by the engine when a run has ended.
func (r *recent) observe(x *engine.Execution) {
	word := wordOf(x)
	if word == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.size = cmp.Or(r.size, recentRuns)
		r.runs, r.order = make(map[string]ended), make([]string, r.size)
	}
	delete(r.runs, r.order[r.next])
	r.runs[x.ID], r.order[r.next] = ended{x.Tenant, x.CallerID, word}, x.ID
	r.next = (r.next + 1) % r.size
}

// wordOf is the outcome of a run that has ended; empty: there is nothing to tell, or another
// place tells it.
func wordOf(x *engine.Execution) string {
	undone := x.Err != nil || x.Outcome == engine.OutcomeBusiness
	switch {
	case x.Kind == fault.OutcomeUnknown, x.ReplayOf != "", !undone && !x.Committed:
		return ""
	case undone && x.Committed: // a nested call with a transaction of its own, or statements under Transaction: none
		return "partly_committed"
	case undone:
		return "rolled_back"
	}
	return "committed"
}

func (r *recent) of(tenant, execution string) (ended, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.runs[execution]
	return e, ok && e.tenant == tenant
}
