package jsbridge

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/dop251/goja"
)

// property is a row of the V8 object: a value made at first touch and kept for the run.
type property struct {
	name string
	doc  string
	make func(r *run) (goja.Value, error)
	// set tells what an assignment does: a plain value is replaced for the script, who
	// calls and which lock is held cannot be.
	set bool
}

func properties() []property {
	return []property{
		{name: "Param", doc: "the request's parameters", set: true, make: func(r *run) (goja.Value, error) { return r.jsonObject(r.env.Param) }},
		{name: "Header", doc: "the request's headers, looked up in any case; the caller's token for this server is not among them", make: (*run).headerValue},
		{name: "FilesByteBase64", doc: "uploaded files, {name: base64}", set: true, make: func(r *run) (goja.Value, error) { return r.stringMap(r.env.Files), nil }},
		{name: "CurrentUser", doc: "who calls: Id, Account, Name, Roles, Level; {} when anonymous", make: func(r *run) (goja.Value, error) { return r.frozenJSON(r.env.User) }},
		{name: "OsClient", doc: "the tenant", make: func(r *run) (goja.Value, error) { return r.toJS(r.env.Tenant) }},
		{name: "ApiEngineKey", doc: "this API's key", make: func(r *run) (goja.Value, error) { return r.toJS(r.env.APIKey) }},
		{name: "InvokeType", doc: "Client or Server", make: func(r *run) (goja.Value, error) { return r.toJS(r.env.InvokeType) }},
		{name: "SysConfig", doc: "the tenant's settings", make: func(r *run) (goja.Value, error) { return r.frozenJSON(r.env.SysConfig) }},
		{name: "Result", doc: "the answer when the script returns nothing", set: true, make: func(*run) (goja.Value, error) { return goja.Undefined(), nil }},
		{name: "Request", doc: "Method, Path, Ip, Id", make: (*run).requestValue},
		{name: "FencingToken", doc: "the lock's fencing token; 0 without a lock", make: (*run).tokenValue},
		{name: "Lock", doc: "the lock that is held: Key, FencingToken, RemainingMs(), IsHeld(), EnsureHeld(); null without one", make: (*run).lockValue},
	}
}

// installV8 puts the properties and the namespaces on the prototype of V8 objects.
func (m *machine) installV8(v8 *goja.Object, spaces map[string]*goja.Object) {
	m.v8Proto = v8
	for _, p := range properties() {
		m.property(v8, p)
	}
	get := m.native("Limits", func(goja.FunctionCall) goja.Value { return m.cur.limitsValue() })
	_ = v8.DefineAccessorProperty("Limits", get, m.refuse("Limits"), goja.FLAG_FALSE, goja.FLAG_TRUE)
	for name, obj := range spaces {
		switch name {
		case "Query", "Lock", "Db": // reached through objects of their own
		default:
			_ = v8.DefineDataProperty(name, obj, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
		}
	}
	m.lockProto = spaces["Lock"]
	m.dbProto = spaces["Db"]
	for _, name := range databaseNames { // one transaction a run: all the same database
		obj := m.rt.CreateObject(m.dbProto)
		m.handles[obj] = &dbHandle{reads: name == "DbRead"}
		_ = v8.DefineDataProperty(name, obj, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
		spaces["/"+name] = obj
	}
	m.dbs = m.rt.ToValue(m.rt.NewProxy(m.rt.NewObject(), &goja.ProxyTrapConfig{Get: m.namedDatabase}))
	_ = v8.DefineDataProperty("Dbs", m.dbs, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
}

func (m *machine) property(v8 *goja.Object, p property) {
	get := m.native(p.name, func(goja.FunctionCall) goja.Value {
		r := m.cur
		if v, ok := r.values[p.name]; ok {
			return v
		}
		v, err := p.make(r)
		if err != nil {
			r.throw(err)
		}
		r.keep(p.name, v)
		return v
	})
	set := m.refuse(p.name)
	if p.set {
		set = m.native(p.name, func(call goja.FunctionCall) goja.Value {
			m.cur.keep(p.name, call.Argument(0))
			return goja.Undefined()
		})
	}
	_ = v8.DefineAccessorProperty(p.name, get, set, goja.FLAG_FALSE, goja.FLAG_TRUE)
}

func (m *machine) refuse(name string) *goja.Object {
	return m.native(name, func(goja.FunctionCall) goja.Value {
		panic(m.rt.NewTypeError("V8.%s cannot be set", name))
	})
}

func (r *run) keep(name string, v goja.Value) {
	if r.values == nil {
		r.values = map[string]goja.Value{}
	}
	r.values[name] = v
}

func (r *run) jsonObject(text json.RawMessage) (goja.Value, error) {
	if len(text) == 0 {
		return r.m.rt.NewObject(), nil
	}
	return r.jsonValue(string(text), true)
}

func (r *run) frozenJSON(text json.RawMessage) (goja.Value, error) {
	v, err := r.m.rt.NewObject(), error(nil)
	if len(text) > 0 {
		var parsed goja.Value
		if parsed, err = parseJSON(r.m, string(text), true); err != nil {
			return nil, err
		}
		obj, ok := parsed.(*goja.Object)
		if !ok {
			return parsed, nil
		}
		v = obj
	}
	return v, r.deepFreeze(v)
}

func (r *run) deepFreeze(obj *goja.Object) error {
	for _, k := range obj.Keys() {
		if inner, ok := obj.Get(k).(*goja.Object); ok {
			if err := r.deepFreeze(inner); err != nil {
				return err
			}
		}
	}
	_, err := r.m.freeze(goja.Undefined(), obj)
	return err
}

// headerValue is an object whose names are looked up in any case.
func (r *run) headerValue() (goja.Value, error) {
	obj := r.stringMap(r.env.Header).(*goja.Object)
	if _, err := r.m.freeze(goja.Undefined(), obj); err != nil {
		return nil, err
	}
	find := func(t *goja.Object, key string) goja.Value {
		if v := t.Get(key); v != nil {
			return v
		}
		for name, v := range r.env.Header {
			if strings.EqualFold(name, key) {
				return r.m.rt.ToValue(v)
			}
		}
		return goja.Undefined()
	}
	return r.m.rt.ToValue(r.m.rt.NewProxy(obj, &goja.ProxyTrapConfig{
		Get: func(t *goja.Object, key string, _ goja.Value) goja.Value { return find(t, key) },
		Has: func(t *goja.Object, key string) bool { return !goja.IsUndefined(find(t, key)) },
	})), nil
}

func (r *run) requestValue() (goja.Value, error) {
	q := r.env.Request
	return r.plainObject("Method", q.Method, "Path", q.Path, "Ip", q.IP, "Id", q.ID)
}

// plainObject is a frozen object of name, value pairs.
func (r *run) plainObject(pairs ...any) (goja.Value, error) {
	obj := r.m.rt.NewObject()
	for i := 0; i < len(pairs); i += 2 {
		_ = obj.Set(pairs[i].(string), pairs[i+1])
	}
	return r.m.freeze(goja.Undefined(), obj)
}

func (r *run) limitsValue() goja.Value {
	l := r.limits
	v, err := r.plainObject("RemainingMs", r.remaining().Milliseconds(), "Depth", l.Depth,
		"MaxStack", l.MaxStack, "HostCalls", r.calls, "MaxHostCalls", l.MaxHostCalls,
		"MaxResultBytes", l.MaxResult, "MaxConsoleBytes", l.MaxConsole)
	if err != nil {
		r.throw(err)
	}
	return v
}

func (r *run) tokenValue() (goja.Value, error) {
	if r.env.Lock == nil {
		return r.m.rt.ToValue(0), nil
	}
	return r.m.rt.ToValue(r.env.Lock.Token()), nil
}

func (r *run) lockValue() (goja.Value, error) {
	if r.env.Lock == nil {
		return goja.Null(), nil
	}
	obj := r.m.rt.CreateObject(r.m.lockProto)
	_ = obj.Set("Key", r.env.Lock.Key())
	_ = obj.Set("FencingToken", r.env.Lock.Token())
	return r.m.freeze(goja.Undefined(), obj)
}

// namedDatabase is the get trap of V8.Dbs. The name is checked at the first statement.
func (m *machine) namedDatabase(_ *goja.Object, name string, _ goja.Value) goja.Value {
	r := m.cur
	if name == "" || silentNames[name] { // an empty name is V8.Db's
		return goja.Undefined()
	}
	if v, ok := r.dbObjs[name]; ok {
		return v
	}
	if slices.Contains(m.namesOf("V8.Db"), name) {
		panic(m.rt.NewTypeError("V8.Dbs has no %s: name a database, V8.Dbs.<name>.%s", name, name))
	}
	obj := m.rt.CreateObject(m.dbProto)
	r.own(obj, &dbHandle{name: name})
	if r.dbObjs == nil {
		r.dbObjs = map[string]goja.Value{}
	}
	r.dbObjs[name] = obj
	return obj
}

// silentNames are looked up by the language itself on any object.
var silentNames = map[string]bool{"then": true, "toJSON": true, "constructor": true, "toString": true, "valueOf": true,
	"toLocaleString": true, "hasOwnProperty": true, "isPrototypeOf": true, "propertyIsEnumerable": true,
	"__proto__": true, "length": true, "name": true, "message": true, "nodeType": true}

// unknownNames is a prototype on which every lookup that comes this far fails by name.
func (m *machine) unknownNames(of string) *goja.Object {
	var known []string
	trap := func(t *goja.Object, name string, _ goja.Value) goja.Value {
		if silentNames[name] {
			return orUndefined(t.Get(name))
		}
		if known == nil {
			known = m.namesOf(of)
		}
		msg := unknownName(of, name, known)
		panic(m.rt.NewTypeError("%s", msg))
	}
	return m.rt.ToValue(m.rt.NewProxy(m.rt.NewObject(), &goja.ProxyTrapConfig{Get: trap})).(*goja.Object)
}

// namesOf lists what "V8", "V8.Cache" or "statement" has.
func (m *machine) namesOf(of string) []string {
	if of == "V8" {
		return m.v8Proto.GetOwnPropertyNames()
	}
	return rowNames(m.b.funcs, of)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
