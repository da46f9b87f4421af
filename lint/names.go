package lint

import (
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// variable is what a script does with one name. Scopes are not looked at: a name that is
// declared twice counts as unknown.
type variable struct {
	declared int
	opaque   bool             // a parameter, a loop's variable or the like
	assigned bool             // through a pattern, or by a loop
	values   []ast.Expression // what it is set to
	added    []ast.Expression // by += or, of an array, by push
	space    string           // "V8.Cache" of var { Cache } = V8
	uses     int              // places where it is read
	tests    int              // those where only its truth counts
	set      map[string]bool  // names of members that are assigned
}

// there tells whether anything in the file makes this variable.
func (v *variable) there() bool {
	return v != nil && (v.declared > 0 || v.assigned || len(v.values) > 0 || v.space != "")
}

// only is the one value that a variable ever has, nil where there is none or there are more.
func (v *variable) only() ast.Expression {
	if v == nil || v.opaque || v.assigned || v.declared > 1 || len(v.values) != 1 || len(v.added) > 0 {
		return nil
	}
	return v.values[0]
}

// collect fills f.vars.
func (f *file) collect() {
	walk(f.tree.Function.Body, func(n ast.Node, path []ast.Node) {
		switch n := n.(type) {
		case *ast.Binding:
			f.bind(n, path)
		case *ast.FunctionLiteral:
			if n.Name != nil {
				name := n.Name.Name.String()
				f.declare(name).opaque = true
				f.asyncs[name] = isAsync(n)
			}
			f.opaque(n.ParameterList)
		case *ast.ArrowFunctionLiteral:
			f.opaque(n.ParameterList)
		case *ast.ClassLiteral:
			if n.Name != nil {
				f.declare(n.Name.Name.String()).opaque = true
			}
		case *ast.ForIntoExpression:
			f.assignedTo(n.Expression)
		case *ast.UnaryExpression:
			if id, ok := n.Operand.(*ast.Identifier); ok && n.Operator == token.TYPEOF {
				f.typeofs[id.Name.String()] = true
			}
		case *ast.ForDeclaration:
			f.opaque(n.Target)
		case *ast.CatchStatement:
			f.opaque(n.Parameter)
		case *ast.AssignExpression:
			f.assign(n)
		case *ast.CallExpression:
			f.pushes(n)
		case *ast.Identifier:
			f.use(n, path)
		}
	})
}

func (f *file) variable(name string) *variable {
	v := f.vars[name]
	if v == nil {
		v = &variable{}
		f.vars[name] = v
	}
	return v
}

func (f *file) declare(name string) *variable {
	v := f.variable(name)
	v.declared++
	return v
}

// bind notes var a = x and var { Cache } = V8.
func (f *file) bind(b *ast.Binding, path []ast.Node) {
	for _, p := range path {
		if _, isLoop := p.(*ast.ForIntoVar); isLoop {
			f.opaque(b.Target)
			return
		}
	}
	switch target := b.Target.(type) {
	case *ast.Identifier:
		v := f.declare(target.Name.String())
		if b.Initializer != nil {
			v.values = append(v.values, b.Initializer)
		}
	case *ast.ObjectPattern:
		f.opaque(target)
		of := f.space(b.Initializer)
		for _, p := range target.Properties {
			if short, ok := p.(*ast.PropertyShort); ok && of != "" {
				f.variable(short.Name.Name.String()).space = of + "." + short.Name.Name.String()
			}
		}
	default:
		f.opaque(b.Target)
	}
}

// opaque declares every name in a pattern or a list of parameters as unknown.
func (f *file) opaque(n any) {
	eachName(n, func(name string) { f.declare(name).opaque = true })
}

// assignedTo notes what a pattern, or a loop without var, gives values to.
func (f *file) assignedTo(target any) {
	eachName(target, func(name string) { f.variable(name).assigned = true })
}

// eachName calls note with every name in a pattern or a list of parameters.
func eachName(pattern any, note func(name string)) {
	walk(pattern, func(n ast.Node, _ []ast.Node) {
		switch n := n.(type) {
		case *ast.Identifier:
			note(n.Name.String())
		case *ast.PropertyShort:
			note(n.Name.Name.String())
		}
	})
}

func (f *file) assign(a *ast.AssignExpression) {
	switch a.Left.(type) {
	case *ast.ArrayPattern, *ast.ObjectPattern:
		f.assignedTo(a.Left)
		return
	}
	if id, ok := a.Left.(*ast.Identifier); ok {
		v := f.variable(id.Name.String())
		if a.Operator.String() == "=" {
			v.values = append(v.values, a.Right)
		} else {
			v.added = append(v.added, a.Right)
		}
		return
	}
	if object, name, ok := member(a.Left); ok {
		if id, is := object.(*ast.Identifier); is {
			v := f.variable(id.Name.String())
			if v.set == nil {
				v.set = map[string]bool{}
			}
			v.set[name] = true
		}
	}
}

func (f *file) pushes(call *ast.CallExpression) {
	object, name, args, ok := method(call)
	if !ok || name != "push" && name != "unshift" {
		return
	}
	if id, is := object.(*ast.Identifier); is {
		v := f.variable(id.Name.String())
		v.added = append(v.added, args...)
	}
}

func (f *file) use(id *ast.Identifier, path []ast.Node) {
	if len(path) > 0 {
		switch p := path[len(path)-1].(type) {
		case *ast.Binding:
			if p.Target == ast.BindingTarget(id) {
				return
			}
		case *ast.AssignExpression:
			if p.Left == ast.Expression(id) {
				return
			}
		}
	}
	v := f.variable(id.Name.String())
	v.uses++
	if tested(id, path) {
		v.tests++
	}
}

// tested reports whether only the truth of an expression counts, or whether it equals
// something: whatever it holds goes nowhere.
func tested(e ast.Node, path []ast.Node) bool {
	for i := len(path) - 1; i >= 0; i-- {
		switch p := path[i].(type) {
		case *ast.UnaryExpression:
			if p.Operator.String() != "!" {
				return false
			}
		case *ast.BinaryExpression:
			switch p.Operator.String() {
			case "==", "!=", "===", "!==":
				return true
			case "&&", "||":
			default:
				return false
			}
		case *ast.IfStatement:
			return ast.Node(p.Test) == e
		case *ast.WhileStatement:
			return ast.Node(p.Test) == e
		case *ast.DoWhileStatement:
			return ast.Node(p.Test) == e
		case *ast.ConditionalExpression:
			return ast.Node(p.Test) == e
		case *ast.OptionalChain, *ast.Optional, *ast.AwaitExpression:
		default:
			return false
		}
		e = path[i]
	}
	return false
}

// space is the name of what an expression is when that is V8 or a part of it, whatever
// variables it went through: "V8.Cache.Get". "" for anything else.
func (f *file) space(e ast.Expression) string { return f.spaceOf(e, 0) }

func (f *file) spaceOf(e ast.Expression, depth int) string {
	if e == nil || depth > 10 {
		return ""
	}
	switch x := bare(e).(type) {
	case *ast.Identifier:
		name := x.Name.String()
		v := f.vars[name]
		switch {
		case name == "V8" && v.only() == nil:
			return "V8"
		case v == nil:
			return ""
		case v.space != "" && v.declared == 1:
			return v.space
		}
		if value := v.only(); value != nil {
			return f.spaceOf(value, depth+1)
		}
	case *ast.DotExpression, *ast.BracketExpression:
		object, name, ok := member(x)
		if of := f.spaceOf(object, depth+1); ok && of != "" {
			return of + "." + name
		}
	}
	return ""
}

// called is the V8 function that a call calls, without Async.
func (f *file) called(call *ast.CallExpression) string {
	return strings.TrimSuffix(f.space(call.Callee), "Async")
}
