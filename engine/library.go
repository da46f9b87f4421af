package engine

import (
	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/nearest"
)

// library is the live program of one of the tenant's libraries: a script that uses it sees
// what was saved last.
func (f *frame) library(name string) (*jsbridge.Program, error) {
	catalog, tenant := f.tree.e.cfg.Catalog, f.call.Tenant
	api, ok := catalog.ByKey(tenant, name)
	switch {
	case !ok:
		var known []string
		for _, e := range catalog.List(tenant) {
			if e.Definition.Library {
				known = append(known, e.Definition.ApiEngineKey)
			}
		}
		hint := nearest.Name(name, known)
		if hint != "" {
			hint = "; did you mean " + hint + "?"
		}
		return nil, fault.New(fault.NotFound, "there is no library %q%s", name, hint)
	case !api.Definition.Library:
		return nil, fault.New(fault.ScriptError, "%q is no library; its definition says no Library: true", api.Definition.ApiEngineKey)
	case !api.Definition.Enabled():
		return nil, fault.New(fault.Disabled, "the library %q is switched off", api.Definition.ApiEngineKey)
	}
	return api.Program, nil
}
