package lint

import (
	"slices"

	"github.com/dop251/goja/ast"
)

// constant reports whether every value that an expression can have was written by the author:
// no part of a request can be in it.
func (f *file) constant(e ast.Expression) bool { return f.isConstant(e, map[string]bool{}) }

func (f *file) isConstant(e ast.Expression, seen map[string]bool) bool {
	switch x := bare(e).(type) {
	case *ast.StringLiteral, *ast.NumberLiteral, *ast.BooleanLiteral, *ast.NullLiteral:
		return true
	case *ast.TemplateLiteral:
		return x.Tag == nil && f.allConstant(templatePieces(x), seen)
	case *ast.BinaryExpression:
		if x.Operator.String() == "+" {
			return f.allConstant(pieces(x, nil), seen)
		}
		return f.allConstant([]ast.Expression{x.Left, x.Right}, seen)
	case *ast.ConditionalExpression:
		return f.allConstant([]ast.Expression{x.Consequent, x.Alternate}, seen)
	case *ast.ArrayLiteral:
		return f.allConstant(x.Value, seen)
	case *ast.ObjectLiteral:
		return f.constantMembers(x, seen)
	case *ast.SpreadElement:
		return f.isConstant(x.Expression, seen)
	case *ast.Identifier:
		return f.constantVariable(x.Name.String(), seen)
	case *ast.BracketExpression: // one of a list that the author wrote: COLUMNS[V8.Param.Sort]
		return f.isConstant(x.Left, seen)
	case *ast.DotExpression:
		return f.isConstant(x.Left, seen)
	case *ast.CallExpression:
		return f.constantCall(x, seen)
	}
	return false
}

func (f *file) allConstant(list []ast.Expression, seen map[string]bool) bool {
	for i, e := range list {
		if e != nil && !(i > 0 && namesParameter(list[i-1])) && !f.isConstant(e, seen) {
			return false
		}
	}
	return true
}

func (f *file) constantMembers(o *ast.ObjectLiteral, seen map[string]bool) bool {
	return !slices.ContainsFunc(o.Value, func(p ast.Property) bool {
		keyed, ok := p.(*ast.PropertyKeyed)
		return !ok || !f.isConstant(keyed.Value, seen)
	})
}

func (f *file) constantVariable(name string, seen map[string]bool) bool {
	v := f.vars[name]
	if v == nil || v.opaque || v.declared > 1 || len(v.values) == 0 || len(v.set) > 0 {
		return false
	}
	if seen[name] { // text = text + '...'
		return true
	}
	seen[name] = true
	defer delete(seen, name)
	return f.allConstant(v.values, seen) && f.allConstant(v.added, seen)
}

// keepsConstant are methods whose result has nothing in it but their object and arguments.
var keepsConstant = map[string]bool{
	"join": true, "concat": true, "repeat": true, "trim": true, "toUpperCase": true, "toLowerCase": true, "slice": true,
	"substring": true, "replace": true, "filter": true, "reverse": true, "fill": true, "toString": true,
}

func (f *file) constantCall(call *ast.CallExpression, seen map[string]bool) bool {
	object, name, args, ok := method(call)
	switch {
	case !ok:
		return false
	case name == "map": // ids.map((id, i) => '@p' + i): what the function returns counts
		if len(args) == 0 {
			return false
		}
		list, isFunction := returned(args[0])
		return isFunction && f.allConstant(list, seen)
	case name == "fill": // new Array(n).fill('?')
		return f.allConstant(args, seen)
	case name == "filter":
		return f.isConstant(object, seen)
	}
	return keepsConstant[name] && f.isConstant(object, seen) && f.allConstant(args, seen)
}
