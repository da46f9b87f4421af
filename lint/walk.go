package lint

import (
	"reflect"

	"github.com/dop251/goja/ast"
)

// walk calls visit for every node below n, n included, with the nodes that lead to it, the
// outermost first.
func walk(n any, visit func(n ast.Node, path []ast.Node)) {
	w := &walker{visit: visit}
	w.value(reflect.ValueOf(n))
}

type walker struct {
	visit func(ast.Node, []ast.Node)
	path  []ast.Node
}

func (w *walker) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		w.value(v.Elem())
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		n, isNode := v.Interface().(ast.Node)
		if !isNode {
			w.value(v.Elem())
			return
		}
		w.visit(n, w.path)
		w.path = append(w.path, n)
		w.value(v.Elem())
		w.path = w.path[:len(w.path)-1]
	case reflect.Slice:
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			// DeclarationList repeats what the body has.
			if f := v.Type().Field(i); f.IsExported() && f.Name != "DeclarationList" {
				w.value(v.Field(i))
			}
		}
	}
}

// bare takes what changes nothing off an expression.
func bare(e ast.Expression) ast.Expression {
	for {
		switch x := e.(type) {
		case *ast.OptionalChain:
			e = x.Expression
		case *ast.Optional:
			e = x.Expression
		case *ast.AwaitExpression:
			e = x.Argument
		default:
			return e
		}
	}
}

// member is the object and the name of a.name and a['name'].
func member(e ast.Expression) (object ast.Expression, name string, ok bool) {
	switch x := bare(e).(type) {
	case *ast.DotExpression:
		return x.Left, x.Identifier.Name.String(), true
	case *ast.BracketExpression:
		if s, is := x.Member.(*ast.StringLiteral); is {
			return x.Left, s.Value.String(), true
		}
	}
	return nil, "", false
}

// method is the object, the name and the arguments of a.name(...).
func method(e ast.Expression) (object ast.Expression, name string, args []ast.Expression, ok bool) {
	call, is := bare(e).(*ast.CallExpression)
	if !is {
		return nil, "", nil, false
	}
	object, name, ok = member(call.Callee)
	return object, name, call.ArgumentList, ok
}

// body is what a function literal does and gives back: its nodes, and the expressions that it
// returns itself.
func body(e ast.Expression) (root any, params *ast.ParameterList, ok bool) {
	switch f := e.(type) {
	case *ast.FunctionLiteral:
		return f.Body, f.ParameterList, true
	case *ast.ArrowFunctionLiteral:
		return f.Body, f.ParameterList, true
	}
	return nil, nil, false
}

// returned are the expressions that a function literal returns.
func returned(e ast.Expression) (out []ast.Expression, ok bool) {
	root, _, ok := body(e)
	if !ok {
		return nil, false
	}
	if x, concise := root.(*ast.ExpressionBody); concise {
		return []ast.Expression{x.Expression}, true
	}
	walk(root, func(n ast.Node, path []ast.Node) {
		r, is := n.(*ast.ReturnStatement)
		if !is || r.Argument == nil {
			return
		}
		for _, p := range path {
			if e, isExpr := p.(ast.Expression); isExpr {
				if _, _, inner := body(e); inner {
					return // another function's
				}
			}
		}
		out = append(out, r.Argument)
	})
	return out, true
}
