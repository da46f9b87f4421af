package apis

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// changed returns the table with the changes, and a *LoadError for each entry whose
// address another API has: what stays as it was wins over what changes, and of two
// changes the earlier one. Such an entry leaves what was live under its key. t is left
// as it is and may be nil.
func (t *table[P]) changed(put []*Entry[P], remove []string) (*table[P], []error) {
	old := map[string]*Entry[P]{}
	if t != nil {
		old = t.entries
	}
	if next, ok := t.sameRoutes(put, remove); ok {
		return next, nil
	}
	var errs []error
	for {
		entries, order := merged(old, put, remove)
		routes, i := routesOf(order)
		if i < 0 {
			return &table[P]{entries, routes}, errs
		}
		bad := order[i]
		errs = append(errs, &LoadError{bad.Definition.ApiEngineKey, conflict(bad, order, routes)})
		put = slices.DeleteFunc(slices.Clone(put), func(e *Entry[P]) bool { return lowerKey(e) == lowerKey(bad) })
	}
}

// sameRoutes is the quick way for the usual change, in which no address changes.
func (t *table[P]) sameRoutes(put []*Entry[P], remove []string) (*table[P], bool) {
	if t == nil || len(remove) > 0 {
		return nil, false
	}
	entries := maps.Clone(t.entries)
	for _, e := range put {
		before := ""
		if was := entries[lowerKey(e)]; was != nil {
			before = was.Definition.ApiAddress
		}
		if e.Definition.ApiAddress != before {
			return nil, false
		}
		entries[lowerKey(e)] = e
	}
	return &table[P]{entries, t.routes}, true
}

// merged returns the entries by key and in the order in which they get their addresses.
func merged[P any](old map[string]*Entry[P], put []*Entry[P], remove []string) (map[string]*Entry[P], []*Entry[P]) {
	entries := maps.Clone(old)
	for _, key := range remove {
		delete(entries, strings.ToLower(key))
	}
	for _, e := range put {
		entries[lowerKey(e)] = e
	}
	var order []*Entry[P]
	for key, e := range entries {
		if old[key] == e {
			order = append(order, e)
		}
	}
	slices.SortFunc(order, func(a, b *Entry[P]) int { return cmp.Compare(lowerKey(a), lowerKey(b)) })
	for _, e := range put {
		if entries[lowerKey(e)] == e {
			order = append(order, e)
		}
	}
	return entries, order
}

// routesOf builds the tree of the addresses, or returns the place in order of the first
// entry whose address is taken; else -1.
func routesOf[P any](order []*Entry[P]) (*node, int) {
	root := &node{}
	routed := false
	for i, e := range order {
		d := &e.Definition
		if d.ApiAddress == "" || d.ownAddress() {
			continue
		}
		a, err := parseAddress(d.ApiAddress)
		if err == nil {
			err = root.add(a, lowerKey(e))
		}
		if err != nil {
			return root, i
		}
		routed = true
	}
	if !routed {
		return nil, -1
	}
	return root, -1
}

// conflict names both addresses.
func conflict[P any](bad *Entry[P], order []*Entry[P], routes *node) error {
	p := &problems{}
	a, err := parseAddress(bad.Definition.ApiAddress)
	if err == nil {
		err = routes.add(a, lowerKey(bad))
	}
	shape, ok := err.(*shapeError)
	if !ok {
		p.add("ApiAddress", "%v", err)
		return p.err()
	}
	i := slices.IndexFunc(order, func(e *Entry[P]) bool { return lowerKey(e) == shape.key })
	other := &order[i].Definition
	p.add("ApiAddress", "%q has the same shape as %q of the API %s", bad.Definition.ApiAddress, other.ApiAddress, other.ApiEngineKey)
	return p.err()
}

func lowerKey[P any](e *Entry[P]) string { return strings.ToLower(e.Definition.ApiEngineKey) }
