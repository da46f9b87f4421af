package lint

import (
	"strings"

	"github.com/dop251/goja/ast"
)

// cacheCall is a call of V8.Cache with a key.
type cacheCall struct {
	name   string // Remove for all its other names
	key    string
	at     *ast.CallExpression
	tested bool // of a Get: only whether there is a value counts
}

var cacheNames = map[string]string{"Get": "Get", "Exists": "Get", "KeyExist": "Get", "Set": "Set", "SetIfNotExists": "SetIfNotExists",
	"Remove": "Remove", "Del": "Remove", "Delete": "Remove", "GetAndRemove": "Remove"}

func (f *file) cacheCall(call *ast.CallExpression, path []ast.Node) {
	op, ok := strings.CutPrefix(f.called(call), "V8.Cache.")
	if !ok || cacheNames[op] == "" || len(call.ArgumentList) == 0 {
		return
	}
	f.cache = append(f.cache, cacheCall{name: cacheNames[op], key: f.keyText(call.ArgumentList[0]), at: call, tested: f.onlyTested(call, path)})
}

// keyText is the same for two keys that are written alike, through variables too.
func (f *file) keyText(e ast.Expression) string {
	for range 10 {
		id, ok := e.(*ast.Identifier)
		if !ok {
			break
		}
		value := f.vars[id.Name.String()].only()
		if value == nil {
			break
		}
		e = value
	}
	return strings.Join(strings.Fields(f.tree.Text(e)), "")
}

// onlyTested reports a call whose result is not used but to see whether there is one, at
// once or through a variable.
func (f *file) onlyTested(call *ast.CallExpression, path []ast.Node) bool {
	if tested(call, path) {
		return true
	}
	for i := len(path) - 1; i >= 0; i-- {
		switch p := path[i].(type) {
		case *ast.AwaitExpression:
			continue
		case *ast.Binding:
			if id, ok := p.Target.(*ast.Identifier); ok {
				v := f.vars[id.Name.String()]
				return v != nil && v.uses > 0 && v.uses == v.tests
			}
		}
		return false
	}
	return false
}

// homemadeLocks finds locks that scripts make of the cache. They end when a ttl does, whoever
// is still at work, and then the Remove frees the lock of another.
func (f *file) homemadeLocks() {
	const instead = "it opens under its holder when the time is up, and its Remove then frees another's; write Lock: true and a LockKey into the settings"
	byKey := map[string][]cacheCall{}
	var keys []string
	for _, c := range f.cache {
		if byKey[c.key] == nil {
			keys = append(keys, c.key)
		}
		byKey[c.key] = append(byKey[c.key], c)
	}
	for _, key := range keys {
		calls := byKey[key]
		switch first := find(calls, 0, "SetIfNotExists", false); {
		case first >= 0 && find(calls, first, "Remove", false) >= 0:
			f.warn(calls[first].at, "a lock made of SetIfNotExists and Remove on %s: %s", f.short(calls[first].at.ArgumentList[0]), instead)
		default:
			get := find(calls, 0, "Get", true)
			if get < 0 {
				continue
			}
			if set := find(calls, get, "Set", false); set >= 0 && find(calls, set, "Remove", false) >= 0 {
				f.warn(calls[get].at, "a lock made of Get, Set and Remove on %s, which two callers can pass at once: %s", f.short(calls[get].at.ArgumentList[0]), instead)
			}
		}
	}
}

// find is the index of the first call of that name from the index from on, -1 for none.
func find(calls []cacheCall, from int, name string, tested bool) int {
	for i := from; i < len(calls); i++ {
		if calls[i].name == name && (!tested || calls[i].tested) {
			return i
		}
	}
	return -1
}
