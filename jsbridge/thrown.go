package jsbridge

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/file"

	"apiengine/fault"
)

// throw puts a failure of a native into the script: as an Error with the Kind where the
// script may go on, else as the end of the run.
func (r *run) throw(err error) {
	if r.Err() != nil || r.stopped.Load() {
		r.interrupted()
	}
	var wrong *argError
	if errors.As(err, &wrong) {
		panic(r.m.rt.NewTypeError("%s", wrong.msg))
	}
	if endsRun(err) {
		r.end(err)
	}
	panic(r.errorObject(err))
}

// errorObject is the JS Error for a service's failure. Only what the error says for
// callers is shown: its cause can hold SQL, addresses and paths.
func (r *run) errorObject(err error) *goja.Object {
	ctor := r.m.rt.Get("Error")
	obj, newErr := r.m.rt.New(ctor, r.m.rt.ToValue(fault.Public(err)))
	if newErr != nil {
		panic(newErr)
	}
	_ = obj.Set("Kind", string(fault.Of(err)))
	if r.thrown == nil {
		r.thrown = map[*goja.Object]error{}
	}
	r.thrown[obj] = err
	return obj
}

// scriptError describes a value that nobody caught.
func (r *run) scriptError(v goja.Value, frames []goja.StackFrame) *ScriptError {
	e := &ScriptError{File: r.p.name}
	obj, _ := v.(*goja.Object)
	if obj != nil {
		e.Cause = r.thrown[obj]
	}
	if err := r.m.try(func() { r.describe(e, v, obj) }); err != nil {
		e.Msg = "an error whose text cannot be read"
		r.noteInterrupt(err)
	}
	r.placeFrames(e, frames)
	if e.Line == 0 && obj != nil {
		r.placeStack(e, obj)
	}
	return e
}

// describe finds the text of a thrown value: an Error's own, else its string or JSON.
func (r *run) describe(e *ScriptError, v goja.Value, obj *goja.Object) {
	if obj == nil {
		e.Msg = orUndefined(v).String()
		return
	}
	name, message := orUndefined(obj.Get("name")), orUndefined(obj.Get("message"))
	if obj.ClassName() == "Error" || goja.IsString(message) {
		e.Msg = message.String()
		if obj.ClassName() == "Error" && goja.IsString(name) && name.String() != "Error" {
			e.Msg = name.String() + ": " + hintGlobal(e.Msg)
		}
		return
	}
	if msg := orUndefined(obj.Get("Msg")); goja.IsString(msg) { // throw {Code: 0, Msg: '...'}
		e.Msg = msg.String()
		return
	}
	w := jsonWriter{r: r, max: 4096}
	if wrote, err := w.write(goja.Undefined(), "", obj); err != nil || !wrote {
		e.Msg = obj.ClassName()
		return
	}
	e.Msg = string(w.buf)
}

// placeFrames takes position and stack from the frames of the throw.
func (r *run) placeFrames(e *ScriptError, frames []goja.StackFrame) {
	t := trace{e: e}
	for i := range frames {
		f := &frames[i]
		t.add(r.program(f.SrcName()), f.FuncName(), f.Position().Line, f.Position().Column)
	}
	e.Stack = t.String()
}

// trace writes the stack of an error, one line for each frame that its authors know.
type trace struct {
	e    *ScriptError
	skip *Program // whose frame of the wrapper comes next
	strings.Builder
}

// add adds a frame of p, nil for what is no script; the first one is the place of the error.
func (t *trace) add(p *Program, name string, line, col int) {
	if p == nil || line == 0 {
		return
	}
	if t.skip == p { // it calls what the author wrote
		t.skip = nil
		return
	}
	switch name {
	case entry:
		t.skip, name = p, ""
	case "<anonymous>":
		name = ""
	}
	line, col = p.author.place(line, col)
	if t.e.Line == 0 {
		t.e.File, t.e.Line, t.e.Column = p.name, line, col
	}
	if t.Len() > 0 {
		t.WriteByte('\n')
	}
	fmt.Fprintf(t, "at %s:%d:%d", p.name, line, col)
	if name != "" {
		fmt.Fprintf(t, " (%s)", name)
	}
}

// position maps a frame to the run's own script; what a library logs counts for the line
// that called it.
func (r *run) position(src string, pos file.Position) (line, col int, ok bool) {
	if src != r.p.name || pos.Line == 0 {
		return 0, 0, false
	}
	line, col = r.p.author.place(pos.Line, pos.Column)
	return line, col, true
}

var stackLine = regexp.MustCompile(`^\s*at (?:(.*) \()?(.*):(\d+):(\d+)\(\d+\)\)?$`)

// placeStack takes position and stack from the stack property of an Error that came
// without frames (a rejected promise).
func (r *run) placeStack(e *ScriptError, obj *goja.Object) {
	var text string
	if err := r.m.try(func() { text = orUndefined(obj.Get("stack")).String() }); err != nil {
		r.noteInterrupt(err)
		return
	}
	t := trace{e: e}
	for l := range strings.Lines(text) {
		m := stackLine.FindStringSubmatch(strings.TrimRight(l, "\n"))
		if m == nil {
			continue
		}
		line, _ := strconv.Atoi(m[3])
		col, _ := strconv.Atoi(m[4])
		t.add(r.program(m[2]), m[1], line, col)
	}
	e.Stack = t.String()
}

// trackRejection remembers promises that were rejected and that nobody handles.
func (m *machine) trackRejection(p *goja.Promise, op goja.PromiseRejectionOperation) {
	r := m.cur
	if r == nil {
		return
	}
	if op == goja.PromiseRejectionHandle {
		delete(r.rejected, p)
		return
	}
	if r.rejected == nil {
		r.rejected = map[*goja.Promise]goja.Value{}
	}
	r.rejected[p] = p.Result()
}

// maxRejections is how many promises of one run are reported.
const maxRejections = 20

// reportRejections puts what would else be lost on the console.
func (r *run) reportRejections() {
	if r.broken {
		return
	}
	reported := 0
	for _, v := range r.rejected {
		if reported++; reported > maxRejections {
			r.console.dropped += len(r.rejected) - maxRejections
			return
		}
		e := r.scriptError(v, nil)
		r.console.add(r.limits, Line{Level: "error", Line: e.Line, Text: "a promise was rejected and nobody handled it: " + e.Msg})
	}
}
