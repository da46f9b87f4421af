package jsbridge

import (
	"reflect"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// findings is what one walk over a script's function learns.
type findings struct {
	awaits   bool            // an await outside of any inner function
	lexical  map[string]bool // let, const, class and function names of the function's own scope
	implicit []string        // names that are assigned and nowhere declared, in order
	strict   bool
}

// examine walks the function that the wrapper made of a script.
//
// Names assigned without a declaration are variables of the global object in JavaScript.
// A kept runtime's global object takes no new ones, so the wrapper declares them.
func examine(fn *ast.FunctionLiteral) findings {
	w := &scopeWalk{seen: map[string]bool{}}
	w.function(fn.ParameterList, fn.Body, fn.DeclarationList)
	w.found.strict = isStrict(fn.Body.List)
	w.found.lexical = scope{}
	lexicalNames(fn.Body.List, w.found.lexical)
	return w.found
}

func isStrict(body []ast.Statement) bool {
	for _, st := range body {
		ex, ok := st.(*ast.ExpressionStatement)
		if !ok {
			return false
		}
		lit, ok := ex.Expression.(*ast.StringLiteral)
		if !ok {
			return false
		}
		if lit.Literal == `'use strict'` || lit.Literal == `"use strict"` {
			return true
		}
	}
	return false
}

type scope map[string]bool

type scopeWalk struct {
	scopes []scope
	depth  int // of functions
	seen   map[string]bool
	found  findings
}

func (w *scopeWalk) push(s scope) { w.scopes = append(w.scopes, s) }
func (w *scopeWalk) pop()         { w.scopes = w.scopes[:len(w.scopes)-1] }

func (w *scopeWalk) function(params *ast.ParameterList, body ast.Node, vars []*ast.VariableDeclaration) {
	s := scope{"arguments": true}
	if params != nil {
		for _, b := range params.List {
			bindNames(b.Target, s)
		}
		bindNames(params.Rest, s)
	}
	for _, d := range vars {
		for _, b := range d.List {
			bindNames(b.Target, s)
		}
	}
	if block, ok := body.(*ast.BlockStatement); ok {
		lexicalNames(block.List, s)
	}
	w.push(s)
	w.depth++
	w.walk(reflect.ValueOf(params))
	if block, ok := body.(*ast.BlockStatement); ok {
		w.walk(reflect.ValueOf(block.List))
	} else {
		w.walk(reflect.ValueOf(body))
	}
	w.depth--
	w.pop()
}

// bindNames adds the names that a binding target declares.
func bindNames(target ast.Node, s scope) {
	forTargets(target, func(e ast.Expression) {
		if id, ok := e.(*ast.Identifier); ok {
			s[id.Name.String()] = true
		}
	})
}

// forTargets calls f for every leaf of a destructuring pattern.
func forTargets(target ast.Node, f func(ast.Expression)) {
	switch t := target.(type) {
	case nil:
	case *ast.Binding:
		forTargets(t.Target, f)
	case *ast.AssignExpression: // a default value
		forTargets(t.Left, f)
	case *ast.ArrayPattern:
		for _, e := range t.Elements {
			forTargets(e, f)
		}
		forTargets(t.Rest, f)
	case *ast.ObjectPattern:
		for _, p := range t.Properties {
			switch p := p.(type) {
			case *ast.PropertyShort:
				f(&p.Name)
			case *ast.PropertyKeyed:
				forTargets(p.Value, f)
			}
		}
		forTargets(t.Rest, f)
	case ast.Expression:
		f(t)
	}
}

// lexicalNames adds let, const, class and function declarations of a block.
func lexicalNames(list []ast.Statement, s scope) {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.LexicalDeclaration:
			for _, b := range st.List {
				bindNames(b.Target, s)
			}
		case *ast.ClassDeclaration:
			s[st.Class.Name.Name.String()] = true
		case *ast.FunctionDeclaration:
			s[st.Function.Name.Name.String()] = true
		}
	}
}

func (w *scopeWalk) assigned(e ast.Expression) {
	id, ok := e.(*ast.Identifier)
	if !ok {
		return
	}
	name := id.Name.String()
	for _, s := range w.scopes {
		if s[name] {
			return
		}
	}
	if !w.seen[name] {
		w.seen[name] = true
		w.found.implicit = append(w.found.implicit, name)
	}
}

// walk goes through every node below v; the cases are those that open a scope, assign
// or await.
func (w *scopeWalk) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		w.walk(v.Elem())
	case reflect.Pointer:
		if !v.IsNil() && !w.node(v.Interface()) {
			w.walk(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.walk(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() && v.Type().Field(i).Name != "DeclarationList" {
				w.walk(f)
			}
		}
	}
}

// node handles one node and tells whether it has walked its children too.
func (w *scopeWalk) node(n any) bool {
	switch n := n.(type) {
	case *ast.FunctionLiteral:
		s := scope{}
		if n.Name != nil {
			s[n.Name.Name.String()] = true
		}
		w.within(s, func() { w.function(n.ParameterList, n.Body, n.DeclarationList) })
		return true
	case *ast.ArrowFunctionLiteral:
		w.function(n.ParameterList, n.Body, n.DeclarationList)
		return true
	case *ast.ClassStaticBlock:
		w.function(nil, n.Block, n.DeclarationList)
		return true
	case *ast.ClassLiteral:
		s := scope{}
		if n.Name != nil {
			s[n.Name.Name.String()] = true
		}
		w.within(s, func() { w.walk(reflect.ValueOf(n).Elem()) })
		return true
	case *ast.AwaitExpression:
		w.found.awaits = w.found.awaits || w.depth == 1
	case *ast.AssignExpression:
		forTargets(n.Left, w.assigned)
	case *ast.UnaryExpression:
		if n.Operator == token.INCREMENT || n.Operator == token.DECREMENT {
			w.assigned(n.Operand)
		}
	case *ast.ForIntoExpression:
		forTargets(n.Expression, w.assigned)
	default:
		return w.block(n)
	}
	return false
}

// block handles the statements that open a scope for let and const.
func (w *scopeWalk) block(n any) bool {
	s := scope{}
	switch n := n.(type) {
	case *ast.BlockStatement:
		lexicalNames(n.List, s)
	case *ast.SwitchStatement:
		for _, c := range n.Body {
			lexicalNames(c.Consequent, s)
		}
	case *ast.CatchStatement:
		bindNames(n.Parameter, s)
	case *ast.ForStatement:
		if d, ok := n.Initializer.(*ast.ForLoopInitializerLexicalDecl); ok {
			for _, b := range d.LexicalDeclaration.List {
				bindNames(b.Target, s)
			}
		}
	case *ast.ForInStatement:
		forScope(n.Into, s)
	case *ast.ForOfStatement:
		forScope(n.Into, s)
	default:
		return false
	}
	w.within(s, func() { w.walk(reflect.ValueOf(n).Elem()) })
	return true
}

func forScope(into ast.ForInto, s scope) {
	if d, ok := into.(*ast.ForDeclaration); ok {
		bindNames(d.Target, s)
	}
}

func (w *scopeWalk) within(s scope, f func()) {
	w.push(s)
	f()
	w.pop()
}
