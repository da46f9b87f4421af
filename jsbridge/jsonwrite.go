package jsbridge

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"

	"apiengine/fault"
)

// maxStringify bounds what JSON.stringify makes.
const maxStringify = 16 << 20

// jsonWriter turns a value into JSON text by the rules of JSON.stringify: toJSON and
// getters run, functions and undefined are left out, boxed values unboxed. It must be
// used inside a call from the runtime, so that what a getter throws has a place to go.
type jsonWriter struct {
	r      *run
	buf    []byte
	max    int
	count  int
	exact  bool // untouched lazy text is written anew, as JSON.stringify would
	native bool // for a native: a BigInt is its digits as text, a buffer base64
	inward bool // read by a script again, in which a number must stay one
	columns
	stack []*goja.Object // the containers that hold the value being written
	names []unistring.String

	replacer goja.Callable
	allow    []unistring.String // keys to write; nil: all
	gap      string

	code *float64 // the root object's Code
}

var (
	errCycle  = errors.New("a structure that contains itself")
	errBigInt = errors.New("a BigInt")
	errDepth  = fmt.Errorf("more than %d levels", maxJSONDepth)
	errSize   = errors.New("too much text")

	typeProxy = reflect.TypeFor[goja.Proxy]()
	typeArray = reflect.TypeFor[[]any]()
	typeInt   = reflect.TypeFor[int64]()
	typeFloat = reflect.TypeFor[float64]()
	typeBool  = reflect.TypeFor[bool]()

	typeBigInt = reflect.TypeFor[*big.Int]()

	typePromise = reflect.TypeFor[*goja.Promise]()
)

// write appends v. It reports false when v has no JSON (undefined, a function).
func (w *jsonWriter) write(holder goja.Value, key unistring.String, v goja.Value) (bool, error) {
	if w.count++; w.count%256 == 0 {
		w.r.checkStopped()
	}
	obj, isObj := v.(*goja.Object)
	if w.columns.on && isObj {
		if invalidDate(obj) && w.columnValue() {
			return false, &unstorableError{"an invalid Date"}
		}
		if key == "_Where" && len(w.stack) == 1 {
			w.columns.where = true
			defer func() { w.columns.where = false }()
		}
	}
	if isObj && !w.exact {
		if text, ok := w.r.untouched(obj, w.inward || w.native); ok {
			if len(w.stack) == 0 {
				w.code = topCode(text)
			}
			w.buf = append(w.buf, text...)
			return true, w.sized()
		}
	}
	if isObj && w.replacer == nil {
		if wrote, err := w.fast(obj); wrote || err != nil {
			return wrote, err
		}
	}
	if isObj {
		if f, ok := goja.AssertFunction(orUndefined(obj.Get("toJSON"))); ok {
			v = mustCall(f, obj, w.r.m.nameText(key))
		}
	}
	if w.replacer != nil {
		v = mustCall(w.replacer, holder, w.r.m.nameText(key), v)
	}
	if obj, isObj = v.(*goja.Object); isObj {
		v = w.unbox(obj)
		if obj, isObj = v.(*goja.Object); isObj {
			if raw, ok := bufferOf(obj); ok && w.native {
				w.buf = append(base64.StdEncoding.AppendEncode(append(w.buf, '"'), raw), '"')
				return true, w.sized()
			}
			return w.container(obj)
		}
	}
	return w.primitive(v)
}

// mustCall calls f and throws on what f throws.
func mustCall(f goja.Callable, this goja.Value, args ...goja.Value) goja.Value {
	v, err := f(this, args...)
	if err != nil {
		panic(err)
	}
	return v
}

// unbox returns the primitive inside new Number(1) and its kin.
func (w *jsonWriter) unbox(obj *goja.Object) goja.Value {
	switch obj.ClassName() {
	case "Number":
		return obj.ToNumber()
	case "String":
		return obj.ToString()
	case "Boolean":
		if b, ok := obj.Export().(bool); ok {
			return w.r.m.rt.ToValue(b)
		}
	case "Object":
		if obj.ExportType() == typeBigInt {
			return w.r.m.rt.ToValue(obj.Export())
		}
	}
	return obj
}

func (w *jsonWriter) primitive(v goja.Value) (bool, error) {
	if v == nil {
		return false, nil
	}
	if text, ok := v.(goja.String); ok {
		w.buf = appendString(w.buf, text)
		return true, w.sized()
	}
	switch v.ExportType() {
	case typeInt:
		if n := v.ToInteger(); n <= maxSafeInteger && n >= -maxSafeInteger {
			w.buf = strconv.AppendInt(w.buf, n, 10)
			return true, nil
		}
		w.number(v.ToFloat())
		return true, nil
	case typeFloat:
		f := v.ToFloat()
		if (math.IsNaN(f) || math.IsInf(f, 0)) && w.columnValue() {
			return false, &unstorableError{v.String()}
		}
		w.number(f)
		return true, nil
	case typeBool:
		w.buf = strconv.AppendBool(w.buf, v.ToBoolean())
		return true, nil
	}
	switch {
	case goja.IsNull(v):
		w.buf = append(w.buf, "null"...)
		return true, nil
	case goja.IsBigInt(v) && w.native:
		w.buf = strconv.AppendQuote(w.buf, v.String())
		return true, nil
	case goja.IsBigInt(v):
		return false, errBigInt
	}
	return false, nil // undefined, a Symbol
}

func (w *jsonWriter) sized() error {
	if len(w.buf) > w.max {
		return errSize
	}
	return nil
}

func (w *jsonWriter) container(obj *goja.Object) (bool, error) {
	if _, ok := goja.AssertFunction(obj); ok {
		return false, nil
	}
	if err := w.enter(obj); err != nil {
		return false, err
	}
	if w.r.m.isArray(obj) {
		return true, w.leave(w.array(obj))
	}
	return true, w.leave(w.object(obj))
}

// enter notes that obj is being written, leave that it has been.
func (w *jsonWriter) enter(obj *goja.Object) error {
	if len(w.stack) >= maxJSONDepth {
		return errDepth
	}
	if slices.Contains(w.stack, obj) {
		return errCycle
	}
	w.stack = append(w.stack, obj)
	return nil
}

func (w *jsonWriter) leave(err error) error {
	w.stack = w.stack[:len(w.stack)-1]
	if err == nil {
		err = w.sized()
	}
	return err
}

func (w *jsonWriter) newline() {
	if w.gap != "" {
		w.buf = append(w.buf, '\n')
		for range w.stack {
			w.buf = append(w.buf, w.gap...)
		}
	}
}

// end closes a container that began at start.
func (w *jsonWriter) end(start int, c byte) {
	if len(w.buf) > start && w.gap != "" {
		w.buf = append(w.buf, '\n')
		for range len(w.stack) - 1 {
			w.buf = append(w.buf, w.gap...)
		}
	}
	w.buf = append(w.buf, c)
}

func (w *jsonWriter) array(obj *goja.Object) error {
	w.buf = append(w.buf, '[')
	start := len(w.buf)
	n := orUndefined(obj.Get("length")).ToInteger()
	for i := range n {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.newline()
		key := indexName(i)
		wrote, err := w.write(obj, key, orUndefined(obj.Get(string(key))))
		if err := w.closeItem(i, wrote, err); err != nil {
			return err
		}
	}
	w.end(start, ']')
	return nil
}

// closeItem ends an array's item, which is null where it has no JSON.
func (w *jsonWriter) closeItem(i int64, wrote bool, err error) error {
	if err == nil && !wrote {
		w.buf = append(w.buf, "null"...)
		err = cmp.Or(w.absent("Value"), w.sized())
	}
	if err != nil {
		return at(err, "["+strconv.FormatInt(i, 10)+"]")
	}
	return nil
}

func (w *jsonWriter) object(obj *goja.Object) error {
	w.buf = append(w.buf, '{')
	start := len(w.buf)
	keys := w.allow
	if keys == nil {
		if items(obj) > maxItems { // a typed array, whose elements are its keys
			return errSize
		}
		keys = w.r.m.keys(obj)
	}
	for _, key := range keys {
		v := w.r.m.get(obj, key)
		before := w.openMember(start, key, v)
		wrote, err := w.write(obj, key, v)
		if err := w.closeMember(before, key, wrote, err); err != nil {
			return err
		}
	}
	w.end(start, '}')
	return nil
}

// openMember writes a member's name and returns where it begins; start is where the first
// member of its object does.
func (w *jsonWriter) openMember(start int, name unistring.String, v goja.Value) (before int) {
	if before = len(w.buf); before > start {
		w.buf = append(w.buf, ',')
	}
	w.newline()
	w.buf = append(appendName(w.buf, name), ':')
	if w.gap != "" {
		w.buf = append(w.buf, ' ')
	}
	if len(w.stack) == 1 && name == "Code" && goja.IsNumber(orUndefined(v)) {
		w.code = new(v.ToFloat())
	}
	return before
}

// closeMember ends the member that begins at before, and takes one without JSON back.
func (w *jsonWriter) closeMember(before int, name unistring.String, wrote bool, err error) error {
	if err == nil && !wrote {
		err = w.absent(name)
	}
	if err != nil {
		return at(err, "."+name.String())
	}
	if !wrote {
		w.buf = w.buf[:before]
	}
	return nil
}

// pathError carries the way to the value that failed.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.err.Error() + " at " + e.path }
func (e *pathError) Unwrap() error { return e.err }

func at(err error, step string) error {
	var p *pathError
	if errors.As(err, &p) {
		if len(p.path) < 200 {
			p.path = step + p.path
		}
		return p
	}
	return &pathError{path: step, err: err}
}

// resultError is what a failed write of the script's result means for the run.
func (w *jsonWriter) resultError(err error) error {
	if errors.Is(err, errSize) {
		return &LimitError{K: fault.LimitOutput, Limit: fmt.Sprintf("a result of %d bytes", w.max)}
	}
	out := &ResultError{Msg: err.Error()}
	var p *pathError
	if errors.As(err, &p) {
		out.Path, out.Msg = strings.TrimPrefix(p.path, "."), p.err.Error()
	}
	return out
}
