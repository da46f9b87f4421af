package lint

import (
	"regexp"
	"strings"

	"github.com/dop251/goja/ast"
)

// sqlText judges the text that FromSql gets.
func (f *file) sqlText(call *ast.CallExpression) {
	_, name, args, ok := method(call)
	if !ok || strings.TrimSuffix(name, "Async") != "FromSql" || len(args) == 0 {
		return
	}
	if value := f.valueIn(args[0], map[string]bool{}); value != nil {
		text := f.short(value)
		f.warn(value, "the SQL text has a value in it: %s; write @p0 in its place and add .AddInParameter('@p0', %s)", text, text)
	}
}

// valueIn is the first piece of composed text that is not known to be the author's own; nil
// when there is none, or when the text is not composed here.
func (f *file) valueIn(e ast.Expression, seen map[string]bool) ast.Expression {
	switch x := bare(e).(type) {
	case *ast.BinaryExpression:
		if x.Operator.String() == "+" {
			return f.foreign(pieces(x, nil))
		}
	case *ast.TemplateLiteral:
		return f.foreign(templatePieces(x))
	case *ast.ConditionalExpression:
		if v := f.valueIn(x.Consequent, seen); v != nil {
			return v
		}
		return f.valueIn(x.Alternate, seen)
	case *ast.Identifier:
		return f.valueInVariable(x.Name.String(), seen)
	case *ast.CallExpression:
		_, name, args, ok := method(x)
		switch {
		case !ok || name != "concat" && name != "join" && name != "replace" && name != "replaceAll" || f.constant(x):
		case name == "join":
			return x
		default:
			return f.foreign(args)
		}
	}
	return nil
}

func (f *file) valueInVariable(name string, seen map[string]bool) ast.Expression {
	v := f.vars[name]
	if v == nil || seen[name] {
		return nil
	}
	seen[name] = true
	for _, value := range v.values {
		if found := f.valueIn(value, seen); found != nil {
			return found
		}
	}
	if len(v.values) == 0 && v.opaque {
		return nil // built elsewhere
	}
	for _, added := range v.added {
		if found := f.valueIn(added, seen); found != nil {
			return found
		}
		if !f.constant(added) {
			return added
		}
	}
	return nil
}

// foreign is the first of the pieces of a text that is neither constant nor the end of a
// parameter's name ('@p' + i).
func (f *file) foreign(list []ast.Expression) ast.Expression {
	for i, e := range list {
		if i > 0 && namesParameter(list[i-1]) || f.constant(e) {
			continue
		}
		if inner := f.valueIn(e, map[string]bool{}); inner != nil {
			return inner
		}
		return e
	}
	return nil
}

var parameterEnd = regexp.MustCompile(`@\w*$`)

func namesParameter(e ast.Expression) bool {
	s, ok := e.(*ast.StringLiteral)
	return ok && parameterEnd.MatchString(s.Value.String())
}

// pieces are the operands of a chain of +.
func pieces(e ast.Expression, out []ast.Expression) []ast.Expression {
	if b, ok := bare(e).(*ast.BinaryExpression); ok && b.Operator.String() == "+" {
		return pieces(b.Right, pieces(b.Left, out))
	}
	return append(out, e)
}

// templatePieces are texts and expressions of a template, in their order.
func templatePieces(t *ast.TemplateLiteral) []ast.Expression {
	var out []ast.Expression
	for i, el := range t.Elements {
		out = append(out, &ast.StringLiteral{Idx: el.Idx, Value: el.Parsed})
		if i < len(t.Expressions) {
			out = append(out, t.Expressions[i])
		}
	}
	return out
}

// sqlOf is as much of a text as can be known without running it; what cannot be is a blank.
func (f *file) sqlOf(e ast.Expression, depth int) string {
	if depth > 10 {
		return " "
	}
	switch x := bare(e).(type) {
	case *ast.StringLiteral:
		return x.Value.String()
	case *ast.BinaryExpression, *ast.TemplateLiteral:
		list := pieces(x, nil)
		if t, ok := x.(*ast.TemplateLiteral); ok {
			list = templatePieces(t)
		}
		if len(list) == 1 && list[0] == x {
			return " "
		}
		var b strings.Builder
		for _, p := range list {
			b.WriteString(f.sqlOf(p, depth+1))
		}
		return b.String()
	case *ast.ConditionalExpression:
		return f.sqlOf(x.Consequent, depth+1) + " " + f.sqlOf(x.Alternate, depth+1)
	case *ast.Identifier:
		v := f.vars[x.Name.String()]
		if v == nil || v.opaque {
			return " "
		}
		var b strings.Builder
		for _, value := range append(v.values[:len(v.values):len(v.values)], v.added...) {
			b.WriteString(f.sqlOf(value, depth+1) + " ")
		}
		return b.String()
	}
	return " "
}
