package jsbridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"

	"apiengine/fault"
)

const (
	defaultStack     = 1000
	defaultHostCalls = 100_000
	defaultResult    = 8 << 20
	defaultConsole   = 64 << 10
	maxConsoleLines  = 200
)

// Report is what one run left behind.
type Report struct {
	Outcome Outcome
	Console []Line
	Stats   Stats
}

// run is the state of one run. Its context ends at the deadline, when the caller's does
// or when the lease is lost.
type run struct {
	context.Context
	cancel  context.CancelFunc
	m       *machine
	p       *Program
	env     *Env
	limits  Limits
	stopped atomic.Bool // the run was interrupted; natives must not go on
	hosting atomic.Bool // a host function works

	call      Call
	values    map[string]goja.Value // V8's properties that were made or assigned
	lazies    map[*goja.Object]*lazyValue
	queries   map[*goja.Object]any // Go state behind the run's own objects
	thrown    map[*goja.Object]error
	rejected  map[*goja.Promise]goja.Value
	dbs       map[dbHandle]Database
	dbObjs    map[string]goja.Value
	v8        *goja.Object // the V8 object of this run
	libs      map[string]*library
	failed    []*Program // libraries that threw, for the positions of their errors
	loading   []string   // names of the libraries being loaded, the outermost first
	console   console
	said      Response
	stats     Stats
	calls     int
	proxies   int                   // made so far
	failure   error                 // why the run was interrupted from inside
	killed    atomic.Pointer[error] // why it was ended from another goroutine
	heap      int64                 // the process's heap when it began
	at        []goja.StackFrame     // where a native was interrupted
	firstHeap int64                 // and when the watch first saw this run while it was in doubt; the watch's own
	ended     func()                // called when the run that was left behind has ended; set before it is

	report Report
	err    error
	broken bool // the machine must not be used again
}

func newRun(ctx context.Context, p *Program, env *Env) (*run, error) {
	l := env.Limits
	if l.Deadline.IsZero() {
		return nil, errors.New("jsbridge: Env.Limits.Deadline is missing")
	}
	l.MaxStack = cmp.Or(l.MaxStack, defaultStack)
	l.MaxHostCalls = cmp.Or(l.MaxHostCalls, defaultHostCalls)
	l.MaxResult = cmp.Or(l.MaxResult, defaultResult)
	l.MaxConsole = cmp.Or(l.MaxConsole, defaultConsole)
	if !time.Now().Before(l.Deadline) && ctx.Err() == nil {
		return nil, &LimitError{K: fault.Timeout}
	}
	r := &run{p: p, env: env, limits: l}
	r.Context, r.cancel = context.WithDeadlineCause(ctx, l.Deadline, &LimitError{K: fault.Timeout})
	r.call = Call{Context: r, Env: env, run: r}
	return r, nil
}

// checkStopped ends the run from inside a native when it was interrupted.
func (r *run) checkStopped() {
	if r.stopped.Load() || r.Err() != nil {
		r.interrupted()
	}
}

// atHost marks that a host function works until done is called. The mark comes before the
// look at stopped: whoever has stopped the run and then sees no mark knows that none works,
// nor will.
func (r *run) atHost() (done func()) {
	outer := r.hosting.Swap(true)
	done = func() { r.hosting.Store(outer) }
	if r.stopped.Load() {
		done()
		r.checkStopped()
	}
	return done
}

// end interrupts the run from inside a native: nothing in the script can catch it.
func (r *run) end(err error) {
	if r.failure == nil {
		r.failure = err
	}
	r.m.rt.Interrupt(nil)
	r.interrupted()
}

// interrupted ends a native as an interrupt ends a step of the script, and notes where.
func (r *run) interrupted() {
	if r.at == nil {
		r.at = r.m.rt.CaptureCallStack(0, nil)
	}
	panic(&goja.InterruptedError{})
}

// execute runs the script on the machine's goroutine and fills report and err.
func (r *run) execute() {
	m := r.m
	m.cur = r
	defer func() {
		if x := recover(); x != nil {
			r.broken = true
			r.err = fmt.Errorf("jsbridge: the script engine panicked: %v", x)
		}
		r.console.close()
		r.report.Console, r.report.Stats = r.console.lines, r.stats
		m.cur = nil
	}()
	m.rt.SetMaxCallStackSize(r.limits.MaxStack)
	v, err := r.evaluate()
	if err == nil {
		_, err = m.finish(goja.Undefined(), v)
	}
	if err == nil && r.failure != nil {
		err = r.failure
	}
	if err != nil {
		r.report.Outcome = Outcome{}
		r.err = r.explain(err)
	}
	r.reportRejections()
}

// evaluate makes the script's function anew, so that nothing hangs on it from an earlier
// run, calls it and lets its promise jobs run.
func (r *run) evaluate() (goja.Value, error) {
	v, err := r.m.start(goja.Undefined())
	if err != nil {
		return nil, err
	}
	return r.settle(v)
}

// startRun is evaluate's part inside the runtime: one entry into it for both steps.
func (m *machine) startRun(goja.FunctionCall) goja.Value {
	m.level, m.growing = 0, nil
	fn := m.function(m.cur.p)
	m.cur.v8 = m.rt.CreateObject(m.v8Proto)
	return mustCall(fn, goja.Undefined(), m.cur.v8)
}

// function makes the function of a program anew.
func (m *machine) function(p *Program) goja.Callable {
	fn, err := m.rt.RunProgram(p.prog)
	if err != nil {
		panic(err)
	}
	if p.guarded {
		fn = mustCall(callable(fn), goja.Undefined(), m.guards...)
	}
	return callable(fn)
}

// settle returns what a promise was resolved to.
func (r *run) settle(v goja.Value) (goja.Value, error) {
	obj, ok := v.(*goja.Object)
	if !ok || obj.ExportType() != typePromise {
		return v, nil
	}
	p, ok := obj.Export().(*goja.Promise)
	if !ok {
		return v, nil
	}
	delete(r.rejected, p)
	switch p.State() {
	case goja.PromiseStateFulfilled:
		return p.Result(), nil
	case goja.PromiseStateRejected:
		return nil, &rejection{p.Result()}
	}
	return nil, &ResultError{Msg: "a promise that is never settled"}
}

// rejection carries the value that a script's promise was rejected with.
type rejection struct{ value goja.Value }

func (e *rejection) Error() string { return "a promise was rejected" }

// finishRun turns the value that the script returned into the Outcome. It runs as a
// native, so that getters and toJSON are script like any other.
func (m *machine) finishRun(call goja.FunctionCall) goja.Value {
	r := m.cur
	v := call.Argument(0)
	if goja.IsUndefined(v) {
		if set, ok := r.values["Result"]; ok {
			v = set
		}
	}
	out := &r.report.Outcome
	out.Response = r.said
	switch obj, isObj := v.(*goja.Object); {
	case goja.IsUndefined(v):
		return goja.Undefined()
	case goja.IsString(v):
		out.IsText, out.Text = true, v.String()
	case isObj:
		out.IsObject = !m.isArray(obj)
	}
	w := jsonWriter{r: r, max: r.limits.MaxResult, buf: make([]byte, 0, 256), inward: r.limits.Depth > 0}
	wrote, err := w.write(goja.Undefined(), "", v)
	if err == nil && !wrote {
		err = errors.New("a " + typeName(v))
	}
	if err != nil {
		r.end(w.resultError(err))
	}
	out.Result = json.RawMessage(w.buf)
	if out.IsObject {
		out.Code = w.code
	}
	return goja.Undefined()
}

func typeName(v goja.Value) string {
	if _, ok := goja.AssertFunction(v); ok {
		return "function"
	}
	if _, ok := v.(*goja.Symbol); ok {
		return "symbol"
	}
	return "value without JSON"
}

// explain turns what ended the script into the run's error, and marks the machine as
// spent unless the script just threw.
func (r *run) explain(err error) error {
	var overflow *goja.StackOverflowError
	var interrupted *goja.InterruptedError
	var thrown *goja.Exception
	var rejected *rejection
	switch {
	case errors.As(err, &overflow):
		r.broken = true
		return r.limitAt(&LimitError{K: fault.LimitStack, Limit: fmt.Sprintf("a call stack of %d frames", r.limits.MaxStack)}, overflow.Stack())
	case errors.As(err, &interrupted):
		r.broken = true
		frames := interrupted.Stack()
		if len(frames) == 0 {
			frames = r.at
		}
		return r.limitAt(r.interruptCause(), frames)
	case errors.As(err, &thrown):
		return r.unlessInterrupted(r.scriptError(thrown.Value(), thrown.Stack()))
	case errors.As(err, &rejected):
		return r.unlessInterrupted(r.scriptError(rejected.value, nil))
	}
	return err
}

// limitAt adds to a *LimitError where the script was; what other errors say is no matter of
// a place.
func (r *run) limitAt(err error, frames []goja.StackFrame) error {
	limit, ok := err.(*LimitError)
	if !ok || len(frames) == 0 {
		return err
	}
	// A step without a place of its own, such as an empty loop, is told as the first letter.
	frames = slices.DeleteFunc(slices.Clone(frames), func(f goja.StackFrame) bool {
		p := f.Position()
		return f.FuncName() != entry && p.Line == 1 && p.Column == 1
	})
	var at ScriptError
	r.placeFrames(&at, frames)
	if at.Line == 1 && at.Column == 1 {
		return err
	}
	out := *limit // others may look at it
	out.File, out.Line, out.Column = at.File, at.Line, at.Column
	return &out
}

// cause is why the run was ended from outside the script.
func (r *run) cause() error {
	if err := r.killed.Load(); err != nil {
		return *err
	}
	return context.Cause(r)
}

func (r *run) interruptCause() error {
	if r.failure != nil {
		return r.failure
	}
	if cause := r.cause(); cause != nil {
		return cause
	}
	return errors.New("jsbridge: interrupted without a cause")
}

// unlessInterrupted returns e, or why the run was stopped while e was being described.
func (r *run) unlessInterrupted(e *ScriptError) error {
	if r.broken {
		return r.interruptCause()
	}
	return e
}

// noteInterrupt marks the machine as spent when err is more than a JS exception.
func (r *run) noteInterrupt(err error) {
	var thrown *goja.Exception
	if !errors.As(err, &thrown) {
		r.broken = true
	}
}
