package jsbridge

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"apiengine/digits"
	"apiengine/fault"
)

// allFuncs are the rows of every namespace.
func allFuncs() []Func {
	var all []Func
	for _, rows := range [][]Func{cacheFuncs(), dbFuncs(), formFuncs(), apiFuncs(), lockFuncs(), responseFuncs(), globalFuncs(), dateFuncs(),
		methodFuncs(), encryptFuncs(), useFuncs(), outboxFuncs(), taskFuncs(), httpFuncs()} {
		all = append(all, rows...)
	}
	return all
}

// installFuncs makes the native functions of all rows, with their Async twins, and
// returns the objects that must be frozen because no global leads to them.
func (m *machine) installFuncs() []any {
	spaces := map[string]*goja.Object{}
	space := func(name string) *goja.Object {
		if spaces[name] == nil {
			spaces[name] = m.rt.CreateObject(m.unknownNames("V8." + name))
		}
		return spaces[name]
	}
	m.queryProto = m.rt.CreateObject(m.unknownNames("statement"))
	spaces["Query"] = m.queryProto
	v8 := m.rt.CreateObject(m.unknownNames("V8"))
	globals := map[string]*goja.Object{}
	for i := range m.b.funcs {
		f := &m.b.funcs[i]
		switch ns, name, dotted := strings.Cut(f.Name, "."); {
		case ns == "":
			m.global(name, f, globals)
		case dotted:
			m.define(space(ns), name, f)
		default:
			m.define(v8, ns, f)
		}
	}
	m.installV8(v8, spaces)
	frozen := []any{v8}
	for _, o := range spaces {
		frozen = append(frozen, o)
	}
	return frozen
}

// global puts a row such as ".System.Convert.ToBase64String" on the global object, below
// the objects on its path, which spaces holds. What System lacks of .NET's is named; crypto
// is the web's, where scripts ask what there is.
func (m *machine) global(path string, f *Func, spaces map[string]*goja.Object) {
	obj, full := m.rt.GlobalObject(), path
	for {
		name, rest, more := strings.Cut(path, ".")
		if !more {
			hide(obj, name, m.native(name, m.bind(f)))
			return
		}
		at := "/" + strings.TrimSuffix(full, "."+rest)
		if spaces[at] == nil {
			spaces[at] = m.rt.NewObject()
			if strings.HasPrefix(full, "System.") {
				spaces[at] = m.rt.CreateObject(m.unknownNames(at[1:]))
			}
			hide(obj, name, spaces[at])
		}
		obj, path = spaces[at], rest
	}
}

func (m *machine) define(obj *goja.Object, name string, f *Func) {
	hide(obj, name, m.native(name, m.bind(f)))
	hide(obj, name+"Async", m.native(name+"Async", m.bindAsync(f)))
}

// bind is the one way from JavaScript into Go: it counts, decodes, calls and throws.
func (m *machine) bind(f *Func) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value {
		v, err := m.invoke(f, call)
		if err != nil {
			m.cur.throw(err)
		}
		return v
	}
}

// bindAsync makes the twin that returns a promise. The work is done at once; what ends
// the run ends it here too.
func (m *machine) bindAsync(f *Func) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value {
		r := m.cur
		promise, resolve, reject := m.rt.NewPromise()
		var v goja.Value
		thrown := m.rt.Try(func() {
			var err error
			if v, err = m.invoke(f, call); err != nil {
				r.throw(err)
			}
		})
		var err error
		if thrown != nil {
			err = reject(thrown.Value())
		} else {
			err = resolve(v)
		}
		if err != nil {
			panic(err)
		}
		return m.rt.ToValue(promise)
	}
}

func (m *machine) invoke(f *Func, call goja.FunctionCall) (goja.Value, error) {
	r := m.cur
	r.checkStopped()
	if r.calls++; r.calls > r.limits.MaxHostCalls {
		r.end(&LimitError{K: fault.LimitOutput, Limit: fmt.Sprintf("%d host calls", r.limits.MaxHostCalls)})
	}
	if f.Host {
		r.stats.HostCalls++
	}
	args := make([]jsArg, len(call.Arguments))
	for i, v := range call.Arguments {
		args[i] = argValue{r, v}
	}
	c := r.call
	c.this = r.stateOf(call.This)
	out, err := f.call(&c, args)
	if err != nil {
		return nil, err
	}
	return r.toJS(out)
}

// stateOf finds the Go state behind the object that a method was called on.
func (r *run) stateOf(this goja.Value) any {
	obj, ok := this.(*goja.Object)
	if !ok {
		return nil
	}
	if h, ok := r.m.handles[obj]; ok {
		return h
	}
	return r.queries[obj]
}

// toJS makes the JS value of what a native returned.
func (r *run) toJS(v any) (goja.Value, error) {
	rt := r.m.rt
	switch v := v.(type) {
	case nil:
		return goja.Null(), nil
	case int64:
		if text := strconv.FormatInt(v, 10); len(text) >= safeDigits && !digits.Kept(text) {
			return rt.ToValue(text), nil
		}
		return rt.ToValue(v), nil
	case string, bool, float64:
		return rt.ToValue(v), nil
	case undefined:
		return goja.Undefined(), nil
	case json.RawMessage:
		if v == nil {
			return goja.Null(), nil
		}
		return r.jsonValue(string(v), true)
	case []byte:
		return r.bytesValue(v)
	case map[string]string:
		return r.stringMap(v), nil
	case FormResult:
		return r.formResult(v)
	case loaded:
		return v.Value, nil
	case *query:
		return r.queryObject(v), nil
	}
	return nil, fmt.Errorf("jsbridge: a native returned %T", v)
}

// undefined is returned by natives that have nothing to say.
type undefined struct{}

func (r *run) stringMap(in map[string]string) goja.Value {
	obj := r.m.rt.NewObject()
	for _, k := range sortedKeys(in) {
		_ = putOwn(obj, k, r.m.rt.ToValue(in[k]))
	}
	return obj
}

func (r *run) formResult(f FormResult) (goja.Value, error) {
	rt := r.m.rt
	obj := rt.NewObject()
	_ = obj.Set("Code", f.Code)
	if f.Data != nil {
		data, err := r.jsonValue(string(f.Data), true)
		if err != nil {
			return nil, err
		}
		_ = obj.Set("Data", data)
	}
	_ = obj.Set("DataCount", f.DataCount)
	_ = obj.Set("Msg", f.Msg)
	return obj, nil
}

// queryObject is the JS object of a statement, the same one through its whole chain.
func (r *run) queryObject(q *query) goja.Value {
	if q.obj == nil {
		q.obj = r.m.rt.CreateObject(r.m.queryProto)
		r.own(q.obj, q)
	}
	return q.obj
}

// own ties Go state to an object of this run.
func (r *run) own(obj *goja.Object, state any) {
	if r.queries == nil {
		r.queries = map[*goja.Object]any{}
	}
	r.queries[obj] = state
}

// argValue is one argument.
type argValue struct {
	r *run
	v goja.Value
}

func (a argValue) missing() bool { return goja.IsUndefined(a.v) || goja.IsNull(a.v) }

func (a argValue) database() (inDatabase, error) {
	h, ok := a.r.stateOf(a.v).(*dbHandle)
	if ok && h.reads || a.v == a.r.m.dbs {
		return inDatabase{}, errNoDatabase
	}
	if !ok {
		return inDatabase{}, nil
	}
	return inDatabase{h.name, true}, nil
}

func (a argValue) json() (json.RawMessage, error) {
	return a.written(&jsonWriter{r: a.r, max: maxStringify, native: true, inward: true})
}

func (a argValue) written(w *jsonWriter) (json.RawMessage, error) {
	wrote, err := w.write(goja.Undefined(), "", a.v)
	if err != nil {
		return nil, fmt.Errorf("cannot be JSON: %w", err)
	}
	if !wrote {
		return json.RawMessage("null"), nil
	}
	return json.RawMessage(w.buf), nil
}

func (a argValue) plain() (any, error) {
	v := a.v
	if obj, ok := v.(*goja.Object); ok {
		if _, isFunc := goja.AssertFunction(obj); isFunc {
			return nil, fmt.Errorf("must not be a function")
		}
		switch obj.ClassName() {
		case "Number":
			return argValue{a.r, obj.ToNumber()}.plain()
		case "Date", "String", "Boolean":
			if invalidDate(obj) {
				return nil, errBadDate
			}
			text, err := a.json()
			if err != nil {
				return nil, err
			}
			if v, err = parseJSON(a.r.m, string(text), false); err != nil {
				return nil, err
			}
		default:
			if _, ok := bufferOf(obj); ok {
				return a.bytes()
			}
			return a.json()
		}
	}
	switch {
	case goja.IsString(v):
		return v.String(), nil
	case goja.IsBigInt(v):
		return v.String(), nil
	case goja.IsUndefined(v) || goja.IsNull(v):
		return nil, nil
	case goja.IsNumber(v):
		if f := v.ToFloat(); f != math.Trunc(f) || math.Abs(f) > maxSafeInteger || math.IsNaN(f) {
			return f, nil
		}
		return v.ToInteger(), nil
	}
	if b, ok := v.Export().(bool); ok {
		return b, nil
	}
	return nil, fmt.Errorf("must not be a symbol")
}
