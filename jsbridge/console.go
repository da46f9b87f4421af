package jsbridge

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// console captures what a run logs, up to a number of bytes and lines.
type console struct {
	lines   []Line
	bytes   int
	dropped int
}

func (c *console) add(l Limits, line Line) {
	line.Text = escapeControl(line.Text)
	if len(c.lines) >= maxConsoleLines || c.bytes+len(line.Text) > l.MaxConsole {
		c.dropped++
		return
	}
	line.Time = time.Now()
	c.bytes += len(line.Text)
	c.lines = append(c.lines, line)
}

// close says how much is missing.
func (c *console) close() {
	if c.dropped > 0 {
		c.lines = append(c.lines, Line{Level: "warn", Time: time.Now(), Text: fmt.Sprintf("%d more console lines were dropped", c.dropped)})
	}
}

// escapeControl makes control characters visible, so that a line stays one line and no
// terminal obeys it.
func escapeControl(s string) string {
	control := func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == utf8.RuneError
	}
	if strings.IndexFunc(s, control) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r != utf8.RuneError && control(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// installConsole makes the console object: log, info, warn, error, and debug and trace
// as other names of log.
func (m *machine) installConsole() {
	obj := m.rt.NewObject()
	for name, level := range map[string]string{"log": "log", "info": "info", "warn": "warn", "error": "error", "debug": "log", "trace": "log"} {
		hide(obj, name, m.native(name, func(call goja.FunctionCall) goja.Value {
			r := m.cur
			r.checkStopped()
			if len(r.console.lines) >= maxConsoleLines {
				r.console.dropped++ // not worth the text
				return goja.Undefined()
			}
			parts := make([]string, len(call.Arguments))
			for i, v := range call.Arguments {
				parts[i] = r.show(v)
			}
			r.console.add(r.limits, Line{Level: level, Line: r.callerLine(), Text: strings.Join(parts, " ")})
			return goja.Undefined()
		}))
	}
	hide(m.rt.GlobalObject(), "console", obj)
}

// callerLine is the author's line of the script that called the native.
func (r *run) callerLine() int {
	var buf [8]goja.StackFrame
	frames := r.m.rt.CaptureCallStack(len(buf), buf[:0])
	for i := range frames {
		if line, _, ok := r.position(frames[i].SrcName(), frames[i].Position()); ok {
			return line
		}
	}
	return 0
}

// show is a value as console output: strings as they are, errors with their position,
// everything else as JSON. A log line is no reason to end a run: of a value with a getter or
// a toJSON that throws it says that.
func (r *run) show(v goja.Value) string {
	var text string
	var thrown *goja.Exception
	switch err := r.m.try(func() { text = r.text(v) }); {
	case errors.As(err, &thrown):
		return "[getter failed]"
	case err != nil:
		panic(err)
	}
	return text
}

func (r *run) text(v goja.Value) string {
	obj, ok := v.(*goja.Object)
	if !ok {
		if _, isSymbol := v.(*goja.Symbol); isSymbol {
			return "Symbol()"
		}
		return v.String()
	}
	if _, isFunc := goja.AssertFunction(obj); isFunc {
		return "[function " + orUndefined(obj.Get("name")).String() + "]"
	}
	if obj.ExportType() == typePromise {
		return "[promise]"
	}
	switch obj.ClassName() {
	case "Error":
		e := r.scriptError(obj, nil)
		if e.Line > 0 {
			return fmt.Sprintf("%s (line %d)", e.Msg, e.Line)
		}
		return e.Msg
	case "RegExp":
		return obj.String()
	}
	w := jsonWriter{r: r, max: r.limits.MaxConsole}
	if wrote, err := w.write(goja.Undefined(), "", obj); err != nil || !wrote {
		return fmt.Sprintf("[%s: %v]", obj.ClassName(), err)
	}
	return string(w.buf)
}
