package jsbridge

import (
	"slices"
	"strings"

	"github.com/dop251/goja"
)

// library is a script that V8.Use has loaded in this run, or is loading.
type library struct {
	program *Program
	value   goja.Value
	loading bool
}

// loaded is what a library returned: it stays in the run as it is, functions too.
type loaded struct{ goja.Value }

func useFuncs() []Func {
	return []Func{
		Fn("Use", "what the library of that name returns (a definition with Library: true); it runs once in each run, 'lib/' before the name is accepted",
			func(c *Call, in struct{ Name string }) (any, error) { return c.run.use(c, in.Name) }),
	}
}

// use loads a library, at the first time by running it with this run's V8 object.
func (r *run) use(c *Call, name string) (any, error) {
	name = strings.TrimPrefix(name, "lib/")
	if r.env.Library == nil {
		return nil, errNoService("Use")
	}
	key := strings.ToLower(name) // so that a save meanwhile changes nothing in this run
	switch l := r.libs[key]; {
	case l == nil:
	case l.loading:
		return nil, argErrorf("V8.Use: libraries use one another in a circle: %s", strings.Join(append(slices.Clone(r.loading), l.program.name), " -> "))
	default:
		return loaded{l.value}, nil
	}
	p, err := r.env.Library(c, name)
	if err != nil {
		return nil, err
	}
	return r.load(key, p)
}

func (r *run) load(key string, p *Program) (any, error) {
	if r.libs == nil {
		r.libs = map[string]*library{}
	}
	p, err := r.suited(p)
	if err != nil {
		return nil, err
	}
	l := &library{program: p, loading: true}
	r.libs[key], r.loading = l, append(r.loading, p.name)
	defer func() {
		l.loading, r.loading = false, r.loading[:len(r.loading)-1]
		if l.value == nil { // it threw: the next Use tries again
			delete(r.libs, key)
			r.failed = append(r.failed, p)
		}
	}()
	v := mustCall(r.m.function(p), goja.Undefined(), r.v8)
	if obj, ok := v.(*goja.Object); ok && obj.ExportType() == typePromise {
		return nil, argErrorf("V8.Use: the library %s awaits at its top; only the functions it returns may be async", p.name)
	}
	l.value = v
	return loaded{v}, nil
}

// suited is the library as this run can use it: compiled so that no BigInt grows too
// large, where the run may have BigInts.
func (r *run) suited(p *Program) (*Program, error) {
	switch {
	case r.p.bigints:
		return p.withBigInts()
	case p.bigints:
		return nil, argErrorf("V8.Use: the library %s works with BigInts; name V8.Use in the script as it is", p.name)
	}
	return p, nil
}

// program is the script that a source name belongs to: the run's own or a library's.
func (r *run) program(src string) *Program {
	if src == r.p.name {
		return r.p
	}
	for _, l := range r.libs {
		if l.program.name == src {
			return l.program
		}
	}
	for _, p := range r.failed {
		if p.name == src {
			return p
		}
	}
	return nil
}
