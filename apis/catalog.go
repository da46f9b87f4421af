package apis

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"apiengine/budget"
)

// Entry is one live API. It never changes; a save makes another one.
type Entry[P any] struct {
	Definition Definition // validated
	Version    int
	Program    P
	Plan       budget.Plan // of an ordinary caller; zero: the API runs as a task only
}

// Versioned is a definition with the number of its version.
type Versioned struct {
	Version    int
	Definition Definition
}

// Catalog holds the live APIs of all tenants. Readers take no lock: each tenant has one
// immutable table, so that no request sees a new route with an old program. It is safe
// for concurrent use.
type Catalog[P any] struct {
	compile func(Definition) (P, error)
	mu      sync.Mutex // writers
	tables  atomic.Pointer[map[string]*table[P]]
}

// table is what one tenant has live.
type table[P any] struct {
	entries map[string]*Entry[P] // by key in lower case
	routes  *node                // nil: no API has an address
}

// NewCatalog returns an empty catalog. compile makes the program of a validated
// definition; its errors are returned to the savers as they are.
func NewCatalog[P any](compile func(Definition) (P, error)) *Catalog[P] {
	c := &Catalog[P]{compile: compile}
	c.tables.Store(&map[string]*table[P]{})
	return c
}

// Build validates and compiles a definition without a look at what is live.
func (c *Catalog[P]) Build(version int, d Definition) (*Entry[P], error) {
	d, err := d.Validate()
	if err != nil {
		return nil, err
	}
	plan, err := d.Plan(false)
	if err != nil {
		if !d.forTasks() {
			return nil, err
		}
		plan = budget.Plan{}
	}
	program, err := c.compile(d)
	if err != nil {
		return nil, err
	}
	return &Entry[P]{Definition: d, Version: version, Program: program, Plan: plan}, nil
}

// Check finds everything that would keep d from going live in the tenant, and returns it
// validated with its program. It changes nothing.
func (c *Catalog[P]) Check(tenant string, d Definition) (Definition, P, error) {
	e, err := c.Build(0, d)
	if err != nil {
		var none P
		return d, none, err
	}
	_, errs := c.table(tenant).changed([]*Entry[P]{e}, nil)
	return e.Definition, e.Program, errors.Join(bare(errs)...)
}

// Put makes a version of a definition live. An error leaves the old one live.
func (c *Catalog[P]) Put(tenant string, version int, d Definition) error {
	return errors.Join(bare(c.Update(tenant, []Versioned{{version, d}}, nil))...)
}

// Delete takes an API out; it need not be there.
func (c *Catalog[P]) Delete(tenant, key string) { c.Update(tenant, nil, []string{key}) }

// Update makes several changes of a tenant live in one step, so that an address may pass
// from one API to another whatever the order of the list. A definition that cannot go
// live is a *LoadError and leaves what was live under its key; the others go live.
func (c *Catalog[P]) Update(tenant string, put []Versioned, remove []string) []error {
	entries, errs := c.build(put)
	c.mu.Lock()
	defer c.mu.Unlock()
	next, conflicts := c.table(tenant).changed(entries, remove)
	c.swap(tenant, next)
	return append(errs, conflicts...)
}

// Replace makes list all that the tenant has. A definition that cannot go live is a
// *LoadError and is left out; the others go live.
func (c *Catalog[P]) Replace(tenant string, list []Versioned) []error {
	entries, errs := c.build(list)
	c.mu.Lock()
	defer c.mu.Unlock()
	next, conflicts := (*table[P])(nil).changed(entries, nil)
	c.swap(tenant, next)
	return append(errs, conflicts...)
}

func (c *Catalog[P]) build(list []Versioned) (entries []*Entry[P], errs []error) {
	for _, v := range list {
		e, err := c.Build(v.Version, v.Definition)
		if err != nil {
			errs = append(errs, &LoadError{v.Definition.ApiEngineKey, err})
			continue
		}
		entries = append(entries, e)
	}
	return entries, errs
}

// swap publishes a tenant's table; c.mu is held.
func (c *Catalog[P]) swap(tenant string, t *table[P]) {
	all := maps.Clone(*c.tables.Load())
	all[tenant] = t
	if len(t.entries) == 0 {
		delete(all, tenant)
	}
	c.tables.Store(&all)
}

// Has tells whether the tenant has any API.
func (c *Catalog[P]) Has(tenant string) bool { return c.table(tenant) != nil }

func (c *Catalog[P]) table(tenant string) *table[P] { return (*c.tables.Load())[tenant] }

// ByKey returns the live API of a key, in any case.
func (c *Catalog[P]) ByKey(tenant, key string) (*Entry[P], bool) {
	t := c.table(tenant)
	if t == nil {
		return nil, false
	}
	e, ok := t.entries[strings.ToLower(key)] // which allocates nothing when it is in lower case already
	return e, ok
}

// ByPath returns the live API whose ApiAddress means path, which is escaped as it came in
// the request, and the decoded values of the address's {name} segments, nil without any.
// Only whole segments are compared, literals in any case. A literal segment goes before a
// {name}. Nothing is cleaned: a path with an empty or a dot segment means no API.
func (c *Catalog[P]) ByPath(tenant, path string) (e *Entry[P], values map[string]string, ok bool) {
	t := c.table(tenant)
	if t == nil || t.routes == nil {
		return nil, nil, false
	}
	segments, ok := splitPath(path)
	if !ok {
		return nil, nil, false
	}
	end, list := t.routes.find(segments, nil)
	if end == nil {
		return nil, nil, false
	}
	if len(list) > 0 {
		values = make(map[string]string, len(list))
		for i, name := range end.names {
			values[name] = list[i]
		}
	}
	return t.entries[end.key], values, true
}

// Each calls f with every live API, in no order.
func (c *Catalog[P]) Each(f func(tenant string, e *Entry[P])) {
	for tenant, t := range *c.tables.Load() {
		for _, e := range t.entries {
			f(tenant, e)
		}
	}
}

// List returns the live APIs of a tenant in the order of their keys.
func (c *Catalog[P]) List(tenant string) []*Entry[P] {
	t := c.table(tenant)
	if t == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(t.entries), func(a, b *Entry[P]) int {
		return cmp.Compare(strings.ToLower(a.Definition.ApiEngineKey), strings.ToLower(b.Definition.ApiEngineKey))
	})
}

// bare takes the errors out of their LoadErrors, for callers who named one key themselves.
func bare(errs []error) []error {
	out := make([]error, len(errs))
	for i, err := range errs {
		var l *LoadError
		if out[i] = err; errors.As(err, &l) {
			out[i] = l.Err
		}
	}
	return out
}
