package lint

import (
	"strings"

	"github.com/dop251/goja/ast"
)

// lostPromise finds a statement that calls an async function of the file, or an ...Async twin
// of V8, and lets its promise go: when that fails, the run commits all the same.
func (f *file) lostPromise(s *ast.ExpressionStatement) {
	call, ok := s.Expression.(*ast.CallExpression)
	if !ok {
		return
	}
	switch callee := call.Callee.(type) {
	case *ast.Identifier:
		name := callee.Name.String()
		v := f.vars[name]
		declared := f.asyncs[name] && v.declared == 1 && len(v.values) == 0
		if !declared && !isAsync(v.only()) {
			return
		}
	default:
		_, name, _, ok := method(call)
		if !ok || !strings.HasSuffix(name, "Async") || !strings.HasPrefix(f.space(call.Callee), "V8.") {
			return
		}
	}
	f.warn(s, "nobody awaits %s: should it fail, the run commits all the same; write await", f.short(call))
}

func isAsync(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.FunctionLiteral:
		return e.Async && !e.Generator
	case *ast.ArrowFunctionLiteral:
		return e.Async
	}
	return false
}
