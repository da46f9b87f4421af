package jsbridge

import (
	"reflect"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// counters finds the names of a script that never hold anything but numbers and booleans,
// such as those of loops: what they add to a text is small, so a + b with one of them needs
// no guard. Scopes are not looked at: a name counts when everything of that name does.
func counters(tree *ast.Program) map[string]bool {
	c, with := countedNames{}, false
	eachNode(reflect.ValueOf(tree.Body), func(n any) {
		c.see(n)
		if _, is := n.(*ast.WithStatement); is { // every name may be a property
			with = true
		}
	})
	if with {
		return nil
	}
	for name, only := range c {
		if !only {
			delete(c, name)
		}
	}
	return c
}

// countedNames tells of each name that is given values whether all of them are numbers.
type countedNames map[string]bool

func (c countedNames) see(n any) {
	switch n := n.(type) {
	case *ast.Binding:
		if id, ok := n.Target.(*ast.Identifier); ok {
			c.given(id, n.Initializer == nil || isNumber(n.Initializer))
		} else {
			c.unknown(n.Target)
		}
	case *ast.AssignExpression:
		id, ok := n.Left.(*ast.Identifier)
		switch {
		case ok && (n.Operator == token.ASSIGN || n.Operator == token.PLUS || !makesNumber(n.Operator)):
			c.given(id, isNumber(n.Right))
		case !ok:
			c.unknown(n.Left)
		}
	case *ast.ParameterList, *ast.ForIntoVar, *ast.ForDeclaration, *ast.ForIntoExpression:
		c.unknown(n)
	case *ast.CatchStatement:
		c.unknown(n.Parameter)
	case *ast.FunctionLiteral:
		c.unknown(n.Name)
	case *ast.ClassLiteral:
		c.unknown(n.Name)
	}
}

func (c countedNames) given(id *ast.Identifier, number bool) {
	name := id.Name.String()
	was, known := c[name]
	c[name] = number && (was || !known)
}

// unknown are all names in a pattern or a list, whatever they get.
func (c countedNames) unknown(pattern any) {
	eachNode(reflect.ValueOf(pattern), func(n any) {
		switch n := n.(type) {
		case *ast.Identifier:
			c.given(n, false)
		case *ast.PropertyShort:
			c.given(&n.Name, false)
		}
	})
}

// isNumber tells that e is a number, a BigInt or a boolean whatever its parts are.
func isNumber(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.NumberLiteral, *ast.BooleanLiteral:
		return true
	case *ast.UnaryExpression:
		switch e.Operator {
		case token.PLUS, token.MINUS, token.NOT, token.BITWISE_NOT, token.INCREMENT, token.DECREMENT:
			return true
		}
	case *ast.ConditionalExpression:
		return isNumber(e.Consequent) && isNumber(e.Alternate)
	case *ast.BinaryExpression:
		return makesNumber(e.Operator) || e.Operator == token.PLUS && isNumber(e.Left) && isNumber(e.Right)
	}
	return false
}

// makesNumber tells the operators whose result is a number or a boolean for any operands.
func makesNumber(op token.Token) bool {
	switch op {
	case token.MINUS, token.MULTIPLY, token.SLASH, token.REMAINDER, token.EXPONENT, token.AND, token.OR, token.EXCLUSIVE_OR,
		token.SHIFT_LEFT, token.SHIFT_RIGHT, token.UNSIGNED_SHIFT_RIGHT,
		token.EQUAL, token.NOT_EQUAL, token.STRICT_EQUAL, token.STRICT_NOT_EQUAL, token.LESS, token.GREATER, token.LESS_OR_EQUAL,
		token.GREATER_OR_EQUAL, token.IN, token.INSTANCEOF:
		return true
	}
	return false
}
