package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"apiengine/apis"
	"apiengine/fault"
)

// adminRole may call every API of its tenant.
const adminRole = "admin"

// match returns the live API of a key or an address.
func (e *Engine) match(tenant, key, path string) (*API, map[string]string, bool) {
	if key != "" {
		api, ok := e.cfg.Catalog.ByKey(tenant, key)
		return api, nil, ok
	}
	return e.cfg.Catalog.ByPath(tenant, path)
}

// find returns the API that c means: the live one, or the version a test run asks for.
func (e *Engine) find(ctx context.Context, c Call) (*API, map[string]string, error) {
	if c.Version > 0 && c.Origin == OriginTest {
		if e.cfg.Versions == nil {
			return nil, nil, fault.New(fault.BadRequest, "this server keeps no older versions")
		}
		api, err := e.cfg.Versions.Load(ctx, c.Tenant, c.Key, c.Version)
		return api, nil, err
	}
	api, values, ok := e.match(c.Tenant, c.Key, c.Path)
	if !ok {
		if !e.cfg.Catalog.Has(c.Tenant) {
			if _, err := e.cfg.Databases.Open(ctx, c.Tenant, ""); fault.Of(err) == fault.NotFound {
				return nil, nil, err // it is the tenant that is not there
			}
		}
		if c.Key != "" {
			return nil, nil, fault.New(fault.NotFound, "there is no API %q", c.Key)
		}
		return nil, nil, fault.New(fault.NotFound, "there is no API at %q", c.Path)
	}
	if api.Definition.Library {
		return nil, nil, fault.New(fault.HTTPStopped, "%q is a library: scripts load it by V8.Use, nobody calls it", api.Definition.ApiEngineKey)
	}
	return api, values, nil
}

// admit decides whether the caller may run the API now. Test runs and nested calls have
// been admitted by their own doors.
func (e *Engine) admit(c Call, d *apis.Definition) error {
	switch {
	case c.Origin == OriginTest || c.Origin == OriginScript:
		return nil
	case !d.Enabled():
		return fault.New(fault.Disabled, "the API %q is switched off", d.ApiEngineKey)
	case c.trust != nil && !c.trust.Author:
		return mayCall(c.Caller, d)
	case c.Origin != OriginHTTP:
		return nil
	case d.StopHttp:
		return fault.New(fault.HTTPStopped, "the API %q cannot be called over HTTP", d.ApiEngineKey)
	case !allows(d, c.Method):
		err := fault.New(fault.MethodNotAllowed, "the API %q does not take %s", d.ApiEngineKey, c.Method)
		err.Fields = map[string]any{"Allow": strings.Join(d.Methods, ", ")}
		return err
	}
	if err := mayCall(c.Caller, d); err != nil {
		return err
	}
	return e.rates.take(c, d)
}

// MayCall is nil when the caller may call the API, else unauthenticated or forbidden.
func (e *Engine) MayCall(c Caller, d *apis.Definition) error { return mayCall(c, d) }

// mayCall decides by who calls.
func mayCall(c Caller, d *apis.Definition) error {
	switch {
	case c.Anonymous() && !d.AllowAnonymous:
		return fault.New(fault.Unauthenticated, "the API %q needs a token", d.ApiEngineKey)
	case !hasRole(c, d):
		return fault.New(fault.Forbidden, "the API %q needs one of its roles", d.ApiEngineKey)
	}
	return nil
}

func allows(d *apis.Definition, method string) bool {
	if method == "HEAD" { // a GET without its body
		method = "GET"
	}
	return slices.Contains(d.Methods, method)
}

func hasRole(c Caller, d *apis.Definition) bool {
	if len(d.ApiRole) == 0 || slices.Contains(c.Roles, adminRole) {
		return true
	}
	return slices.ContainsFunc(c.Roles, func(r string) bool { return slices.Contains(d.ApiRole, r) })
}

// gate bounds the calls in flight, in all and by tenant, without a lock.
type gate struct {
	max, maxTenant int64
	all            atomic.Int64
	tenants        sync.Map // tenant -> *atomic.Int64; as many as there are tenants with an API
}

// place is one call's among those in flight. It is taken until the call has its answer and
// every script of it has ended: one that does not stop keeps it, else a few of them would
// let in call after call onto cores that are taken.
type place struct {
	gate *gate
	mine *atomic.Int64 // of the tenant
	uses atomic.Int64  // the call itself, and its scripts that were left behind
}

func (g *gate) enter(tenant string) (*place, error) {
	n, ok := g.tenants.Load(tenant)
	if !ok {
		n, _ = g.tenants.LoadOrStore(tenant, new(atomic.Int64))
	}
	p := &place{gate: g, mine: n.(*atomic.Int64)}
	p.uses.Store(1)
	all, own := g.all.Add(1), p.mine.Add(1)
	switch {
	case all > g.max:
		p.leave()
		return nil, busy(fault.Overloaded, "the server has as many calls as it takes")
	case own > g.maxTenant:
		p.leave()
		return nil, busy(fault.TenantBusy, "the tenant has as many calls as it may")
	}
	return p, nil
}

// keep makes the place last until the returned function is called, too.
func (p *place) keep() (leave func()) {
	p.uses.Add(1)
	return p.leave
}

func (p *place) leave() {
	if p.uses.Add(-1) == 0 {
		p.mine.Add(-1)
		p.gate.all.Add(-1)
	}
}

// busy is a refusal that a later try may not meet.
func busy(k fault.Kind, msg string) error {
	err := fault.New(k, "%s", msg)
	err.Fields = map[string]any{"RetryAfterMs": 1000}
	return err
}
