package tasks

import (
	"context"
	"slices"
	"sync"
	"time"

	"apiengine/jsbridge"
	"apiengine/store/tenantdb"
)

// live is what runs on this node.
type live struct {
	mu   sync.Mutex
	runs map[string]*running // by run
	idle chan struct{}       // closed and replaced whenever a run has ended
}

func newLive() *live { return &live{runs: map[string]*running{}, idle: make(chan struct{})} }

// running is one slice under way.
type running struct {
	l        *live
	tenant   string
	id, run  string
	mu       sync.Mutex
	end      context.CancelCauseFunc // nil: not begun
	ended    error                   // why it must not begin
	current  int64                   // told, and never going back
	total    int64
	best     int    // thousandths, never going back
	kept     string // the task's Msg when the slice began
	of       int64  // and its Total
	msg      string // told
	told     bool   // since the last look
	log      []tenantdb.TaskLine
	first    int // number of log[0]: so many before it were dropped
	reported int // number of the first line that is not kept yet
}

// maxLines is how many lines of one slice wait to be kept; the oldest give way.
const maxLines = 500

func (l *live) begin(tenant string, t tenantdb.Task) *running {
	r := &running{l: l, tenant: tenant, id: t.ID, run: t.Run, current: t.Current, total: t.Total, best: max(t.Best, perMille(t.Current, t.Total)), kept: t.Msg, of: t.Total}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[t.Run] = r
	return r
}

// endBy gives the run the function that ends it; false: it is to be ended already, and done.
func (r *running) endBy(end context.CancelCauseFunc) bool {
	r.mu.Lock()
	r.end = end
	ended := r.ended
	r.mu.Unlock()
	if ended != nil {
		r.done()
	}
	return ended == nil
}

func (r *running) stop(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended = cause; r.end != nil {
		r.end(cause)
	}
}

// done is called when the run has come back.
func (r *running) done() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	delete(r.l.runs, r.run)
	close(r.l.idle)
	r.l.idle = make(chan struct{})
}

// report hears V8.Method.UpdateBackgroundTask.
func (r *running) report(p jsbridge.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = true
	if p.Total != nil {
		r.total = *p.Total
	}
	if p.Current != nil {
		r.current = max(r.current, *p.Current)
	}
	r.best = max(r.best, perMille(r.current, r.total))
	if p.Msg != "" {
		r.msg = fit(p.Msg, maxMsg)
	}
	for _, line := range p.Log {
		if len(r.log) >= maxLines {
			r.log, r.first = slices.Delete(r.log, 0, 1), r.first+1
		}
		at := time.Now().UTC().Truncate(time.Microsecond)
		if n := len(r.log); n > 0 && !at.After(r.log[n-1].At) {
			at = r.log[n-1].At.Add(time.Microsecond) // a line is known by its time
		}
		r.log = append(r.log, tenantdb.TaskLine{At: at, Text: fit(line, maxMsg)})
	}
}

// lines are those that were not returned before, or kept otherwise.
func (r *running) lines() []tenantdb.TaskLine {
	lines, upTo := r.unkept()
	r.noted(upTo)
	return lines
}

// unkept are the lines that are not kept yet; noted must be told upTo when they are.
func (r *running) unkept() (lines []tenantdb.TaskLine, upTo int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open(), r.first + len(r.log)
}

// open are the lines that are not kept yet.
func (r *running) open() []tenantdb.TaskLine {
	return slices.Clone(r.log[min(max(r.reported-r.first, 0), len(r.log)):])
}

func (r *running) noted(upTo int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reported = max(r.reported, upTo)
}

// news is what was told since the last look.
func (r *running) news() (s Shown, told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told, r.told = r.told, false
	return Shown{Task: r.id, Run: r.run, Current: r.current, Total: r.total, Best: r.best, Msg: r.msg}, told
}

// toldAgain makes what was told news again.
func (r *running) toldAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = true
}

// into keeps what was told from going back with the slice's end.
func (r *running) into(e *tenantdb.SliceEnd) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Current = max(e.Current, r.current)
	if e.Total == 0 || e.Total == r.of { // else the slice's answer says another
		e.Total = r.total
	}
	if e.Total > 0 {
		e.Total = max(e.Total, e.Current)
	}
	e.Best = max(r.best, perMille(e.Current, e.Total))
	if r.msg != "" && (e.Msg == "" || e.Msg == r.kept) { // else the slice's answer says another
		e.Msg = r.msg
	}
}

// unkeptOf are the lines of a slice on this node that are not kept yet.
func (l *live) unkeptOf(t tenantdb.Task) []tenantdb.TaskLine {
	l.mu.Lock()
	r := l.runs[t.Run]
	l.mu.Unlock()
	if r == nil || t.Run == "" || t.State != tenantdb.TaskRunning {
		return nil
	}
	lines, _ := r.unkept()
	return lines
}

// all are the runs under way, by tenant.
func (l *live) all() map[string][]*running {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string][]*running{}
	for _, r := range l.runs {
		out[r.tenant] = append(out[r.tenant], r)
	}
	return out
}

// end ends the runs of one task on this node.
func (l *live) end(tenant, id string, cause error) {
	for _, r := range l.all()[tenant] {
		if r.id == id {
			r.stop(cause)
		}
	}
}

func (l *live) endAll(cause error) {
	for _, list := range l.all() {
		for _, r := range list {
			r.stop(cause)
		}
	}
}

// wait returns true when nothing runs, false when ctx ends first.
func (l *live) wait(ctx context.Context) bool {
	for {
		l.mu.Lock()
		n, changed := len(l.runs), l.idle
		l.mu.Unlock()
		if n == 0 {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
