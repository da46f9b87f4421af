package jsbridge

import (
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// lazyFrom is the length of JSON text from which on a lazy value is cheaper than
// parsing at once.
const lazyFrom = 256

// lazyValue is JSON text that became a JS value without being parsed. What the script
// holds is a Proxy over an empty target; the first trap parses the text into the target
// and takes all traps away, so that from then on the proxy is its target. A value that
// nobody touched goes into the answer as the text it came as. To another script, or to a
// native, it does so unless a number in it reads otherwise than it is written.
type lazyValue struct {
	text   string
	exact  bool
	anew   bool // must be written anew
	target *goja.Object
	proxy  *goja.Object
	traps  goja.ProxyTrapConfig
}

// escapesSurrogate tells that a key may be one that goja's traps would see as another.
func escapesSurrogate(text string) bool {
	return strings.Contains(text, `\ud`) || strings.Contains(text, `\uD`)
}

// jsonValue turns valid JSON text into a JS value, lazily when the text is long.
func (r *run) jsonValue(text string, exact bool) (goja.Value, error) {
	rt := r.m.rt
	lead := strings.TrimLeft(text, " \t\r\n")
	if len(text) < lazyFrom || lead == "" || lead[0] != '{' && lead[0] != '[' || !utf8.ValidString(text) || escapesSurrogate(text) {
		return parseJSON(r.m, text, exact)
	}
	anew, err := checkJSON(text)
	if err != nil {
		return nil, err
	}
	l := &lazyValue{text: text, exact: exact, anew: anew, traps: r.m.lazyTraps}
	if lead[0] == '{' {
		l.target = rt.NewObject()
	} else {
		l.target = rt.NewArray()
	}
	l.proxy = rt.ToValue(rt.NewProxy(l.target, &l.traps)).(*goja.Object)
	if r.lazies == nil {
		r.lazies = map[*goja.Object]*lazyValue{}
	}
	r.lazies[l.target] = l
	r.lazies[l.proxy] = l
	return l.proxy, nil
}

// untouched returns the text behind obj when obj is a lazy value that nobody touched. What
// goes inward, where scripts read it again, must besides read as it is written.
func (r *run) untouched(obj *goja.Object, inward bool) (string, bool) {
	if len(r.lazies) == 0 {
		return "", false
	}
	if l := r.lazies[obj]; l != nil && l.proxy == obj && !(inward && l.anew) {
		return l.text, true
	}
	return "", false
}

// fill parses the text behind target into it.
func (m *machine) fill(target *goja.Object) {
	l := m.cur.lazies[target]
	if l == nil {
		return
	}
	delete(m.cur.lazies, l.target)
	delete(m.cur.lazies, l.proxy)
	l.traps = goja.ProxyTrapConfig{}
	p := &jsonScan{s: l.text, m: m, exact: l.exact, keep: true}
	isArray := target.ClassName() == "Array"
	if !isArray {
		p.root = target
	}
	l.text = ""
	v, err := p.document()
	if err != nil { // it was checked when it was made
		panic(m.rt.NewTypeError("%s", err.Error()))
	}
	if isArray {
		_, from := m.in.list(v.(*goja.Object))
		_, to := m.in.list(target)
		*to = *from
	}
}

// newLazyTraps makes the traps that every lazy value of m starts with. Each fills the
// target and does what the target alone would have done.
func (m *machine) newLazyTraps() goja.ProxyTrapConfig {
	return goja.ProxyTrapConfig{
		SetPrototypeOf: func(t, proto *goja.Object) bool {
			m.fill(t)
			return t.SetPrototype(proto) == nil
		},
		PreventExtensions: func(t *goja.Object) bool {
			m.fill(t)
			_, err := m.preventExtensions(goja.Undefined(), t)
			return err == nil
		},
		GetOwnPropertyDescriptor: m.lazyDescriptor,
		GetOwnPropertyDescriptorSym: func(t *goja.Object, _ *goja.Symbol) goja.PropertyDescriptor {
			m.fill(t)
			return goja.PropertyDescriptor{}
		},
		DefineProperty:    m.lazyDefine,
		DefinePropertySym: m.lazyDefineSym,
		Has: func(t *goja.Object, key string) bool {
			m.fill(t)
			return t.Get(key) != nil
		},
		HasSym: func(t *goja.Object, key *goja.Symbol) bool {
			m.fill(t)
			return t.GetSymbol(key) != nil
		},
		Get: func(t *goja.Object, key string, _ goja.Value) goja.Value {
			m.fill(t)
			return orUndefined(t.Get(key))
		},
		GetSym: func(t *goja.Object, key *goja.Symbol, _ goja.Value) goja.Value {
			m.fill(t)
			return orUndefined(t.GetSymbol(key))
		},
		Set: m.lazySet,
		SetSym: func(t *goja.Object, key *goja.Symbol, v, _ goja.Value) bool {
			m.fill(t)
			return t.SetSymbol(key, v) == nil
		},
		DeleteProperty: func(t *goja.Object, key string) bool {
			m.fill(t)
			return t.Delete(key) == nil
		},
		DeletePropertySym: func(t *goja.Object, key *goja.Symbol) bool {
			m.fill(t)
			return t.DeleteSymbol(key) == nil
		},
		OwnKeys: func(t *goja.Object) *goja.Object {
			m.fill(t)
			names := t.GetOwnPropertyNames()
			keys := make([]any, len(names))
			for i, n := range names {
				keys[i] = n
			}
			return m.rt.NewArray(keys...)
		},
	}
}

func orUndefined(v goja.Value) goja.Value {
	if v == nil {
		return goja.Undefined()
	}
	return v
}

func (m *machine) lazyDescriptor(t *goja.Object, key string) goja.PropertyDescriptor {
	m.fill(t)
	d := goja.PropertyDescriptor{Writable: goja.FLAG_TRUE, Enumerable: goja.FLAG_TRUE, Configurable: goja.FLAG_TRUE}
	if key == "length" && t.ClassName() == "Array" {
		d.Enumerable, d.Configurable = goja.FLAG_FALSE, goja.FLAG_FALSE
	} else if own, _ := m.hasOwn(goja.Undefined(), t, m.rt.ToValue(key)); own == nil || !own.ToBoolean() {
		return goja.PropertyDescriptor{}
	}
	d.Value = t.Get(key)
	return d
}

func (m *machine) lazyDefine(t *goja.Object, key string, d goja.PropertyDescriptor) bool {
	m.fill(t)
	if d.Getter != nil || d.Setter != nil {
		if d.Configurable == goja.FLAG_NOT_SET {
			// goja refuses a trap that made an accessor not configurable (it compares the
			// functions the wrong way round), so this one stays configurable.
			d.Configurable = goja.FLAG_TRUE
		}
		return t.DefineAccessorProperty(key, d.Getter, d.Setter, d.Configurable, d.Enumerable) == nil
	}
	return t.DefineDataProperty(key, d.Value, d.Writable, d.Configurable, d.Enumerable) == nil
}

func (m *machine) lazyDefineSym(t *goja.Object, key *goja.Symbol, d goja.PropertyDescriptor) bool {
	m.fill(t)
	if d.Getter != nil || d.Setter != nil {
		return t.DefineAccessorPropertySymbol(key, d.Getter, d.Setter, d.Configurable, d.Enumerable) == nil
	}
	return t.DefineDataPropertySymbol(key, d.Value, d.Writable, d.Configurable, d.Enumerable) == nil
}

// lazySet assigns to the target, or to the object that inherits from the lazy value.
func (m *machine) lazySet(t *goja.Object, key string, v, receiver goja.Value) bool {
	l := m.cur.lazies[t]
	m.fill(t)
	if obj, ok := receiver.(*goja.Object); ok && l != nil && obj != l.proxy {
		return obj.DefineDataProperty(key, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE) == nil
	}
	return t.Set(key, v) == nil
}
