package jsbridge

import (
	"math/big"
	"reflect"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"
)

// Some single steps of the language can take all memory or time, and no built-in stands in
// their way: 2n ** 99999999n, {...bytes}, f(...items), s += s. Before a script is compiled their
// operands are put into calls of guards. The guards are parameters of a function round the
// script's own, with names that no source can write.
var guardNames = []string{"%args", "%own", "%rest", "%big", "%power", "%shift", "%equal", "%less", "%step", "%text", "%shown"}

// maxTemplate is how many values one template puts together at once.
const maxTemplate = 4

// instrument puts the guards that p needs into its tree. With bigints every operation that
// can make a large BigInt is guarded; without, a run can make no BigInt at all.
func (p *Program) instrument(tree *ast.Program, code string) (*ast.Program, error) {
	p.bigints = p.src.bigints || mentionsBigInt(tree, code)
	if !p.bigints && !strings.Contains(code, "+") && !strings.Contains(code, "...") && !strings.Contains(code, "${") {
		return tree, nil
	}
	ins := &instrumenter{bigints: p.bigints, compares: mayCompareBigInts(code), counters: counters(tree)}
	ins.walk(reflect.ValueOf(tree.Body))
	if ins.refused != nil || ins.guards == 0 {
		return tree, ins.refused
	}
	p.guarded = true
	return wrapGuarded(tree), nil
}

// wrapGuarded makes the function expression of tree what a function of the guards returns.
func wrapGuarded(tree *ast.Program) *ast.Program {
	names := make([]string, len(guardNames))
	for i := range names {
		names[i] = "g" + string(rune('a'+i))
	}
	outer, err := parser.ParseFile(nil, "", "(function("+strings.Join(names, ",")+"){return 0})", 0, parser.WithDisableSourceMaps)
	if err != nil {
		panic(err) // it is always the same text
	}
	fn := outer.Body[0].(*ast.ExpressionStatement).Expression.(*ast.FunctionLiteral)
	for i, b := range fn.ParameterList.List {
		b.Target.(*ast.Identifier).Name = unistring.String(guardNames[i])
	}
	fn.Body.List[0].(*ast.ReturnStatement).Argument = tree.Body[0].(*ast.ExpressionStatement).Expression
	outer.File = tree.File
	return outer
}

// mentionsBigInt tells whether a script can come to a BigInt: by a literal, by a name, or
// by a library. What hides the name gets none: the built-ins look at the program.
func mentionsBigInt(tree *ast.Program, code string) bool {
	return strings.Contains(code, "BigInt") || strings.Contains(code, "getBig") || strings.Contains(code, "Use") ||
		bigLiteral(code) && hasBigLiteral(reflect.ValueOf(tree.Body))
}

// mayCompareBigInts leaves the comparisons of scripts alone that only use libraries.
func mayCompareBigInts(code string) bool {
	return strings.Contains(code, "BigInt") || strings.Contains(code, "getBig") || bigLiteral(code)
}

// bigLiteral tells whether the text may hold a literal such as 12n or 0xffn.
func bigLiteral(code string) bool {
	for i := 0; i < len(code); i++ {
		if code[i] < '0' || code[i] > '9' || i > 0 && isWordByte(code[i-1]) {
			continue
		}
		for i++; i < len(code) && isWordByte(code[i]); i++ {
		}
		if code[i-1] == 'n' {
			return true
		}
	}
	return false
}

func hasBigLiteral(v reflect.Value) bool {
	found := false
	eachNode(v, func(n any) {
		lit, ok := n.(*ast.NumberLiteral)
		found = found || ok && isBigLiteral(lit)
	})
	return found
}

func isBigLiteral(e ast.Expression) bool {
	lit, ok := e.(*ast.NumberLiteral)
	if !ok {
		return false
	}
	_, isBig := lit.Value.(*big.Int)
	return isBig
}

// eachNode calls f with every node below v, the inner ones first.
func eachNode(v reflect.Value, f func(any)) {
	switch v.Kind() {
	case reflect.Interface:
		eachNode(v.Elem(), f)
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct && v.Type() != reflect.TypeFor[*file.File]() && v.Type() != reflect.TypeFor[*big.Int]() {
			eachNode(v.Elem(), f)
			f(v.Interface())
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachNode(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if fv := v.Field(i); fv.CanInterface() && v.Type().Field(i).Name != "DeclarationList" {
				eachNode(fv, f)
			}
		}
	}
}

type instrumenter struct {
	bigints  bool
	compares bool
	counters map[string]bool // names that hold numbers
	guards   int
	refused  error
}

// walk rewrites every expression below v, the inner ones first.
func (ins *instrumenter) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		ins.walk(v.Elem())
		if old, ok := v.Interface().(ast.Expression); ok && v.CanSet() {
			if e := ins.rewrite(old); e != old {
				v.Set(reflect.ValueOf(e))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct && v.Type() != reflect.TypeFor[*big.Int]() {
			ins.walk(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			ins.walk(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() && v.Type().Field(i).Name != "DeclarationList" {
				ins.walk(f)
			}
		}
	}
}

func (ins *instrumenter) rewrite(e ast.Expression) ast.Expression {
	switch e := e.(type) {
	case *ast.CallExpression:
		ins.spread(e.ArgumentList)
	case *ast.NewExpression:
		ins.spread(e.ArgumentList)
	case *ast.ObjectLiteral:
		for _, p := range e.Value {
			if s, ok := p.(*ast.SpreadElement); ok {
				s.Expression = ins.call("%own", s.Expression)
			}
		}
	case *ast.ObjectPattern:
		ins.rest(e)
	case *ast.TemplateLiteral:
		ins.texts(e)
		return ins.template(e)
	case *ast.BinaryExpression:
		if e.Operator == token.PLUS {
			e.Right = ins.text(e.Left, e.Right)
		} else if ins.bigints {
			return ins.binary(e)
		}
	case *ast.AssignExpression:
		if e.Operator == token.PLUS {
			e.Right = ins.text(e.Left, e.Right)
		} else if ins.bigints {
			ins.assign(e)
		}
	}
	return e
}

// text bounds what a step such as a + b or a += b adds to a text: the right side is looked
// at, unless one of the two is small, and so a text grows by little a step whatever the left
// one is.
func (ins *instrumenter) text(left, right ast.Expression) ast.Expression {
	if ins.isSmall(left) || ins.isSmall(right) {
		return right
	}
	return ins.call("%text", right)
}

// texts bounds what a template puts together: all of its values but the first.
func (ins *instrumenter) texts(t *ast.TemplateLiteral) {
	if t.Tag != nil {
		return
	}
	for i, e := range t.Expressions {
		if i > 0 && !ins.isSmall(e) {
			t.Expressions[i] = ins.call("%shown", e)
		}
	}
}

// isSmall tells that what e adds to a text is no longer than the script that holds it, or
// than a number.
func (ins *instrumenter) isSmall(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.NumberLiteral, *ast.StringLiteral, *ast.NullLiteral, *ast.BooleanLiteral, *ast.UnaryExpression:
		return true
	case *ast.Identifier:
		return ins.counters[e.Name.String()]
	case *ast.TemplateLiteral:
		return e.Tag == nil && len(e.Expressions) == 0
	case *ast.ConditionalExpression:
		return ins.isSmall(e.Consequent) && ins.isSmall(e.Alternate)
	case *ast.BinaryExpression:
		switch e.Operator {
		case token.PLUS, token.LOGICAL_AND, token.LOGICAL_OR, token.COALESCE:
			return ins.isSmall(e.Left) && ins.isSmall(e.Right)
		}
		return makesNumber(e.Operator)
	}
	return false
}

func (ins *instrumenter) call(guard string, args ...ast.Expression) ast.Expression {
	ins.guards++
	at := args[0].Idx0()
	return &ast.CallExpression{Callee: &ast.Identifier{Name: unistring.String(guard), Idx: at}, LeftParenthesis: at,
		ArgumentList: args, RightParenthesis: args[len(args)-1].Idx1()}
}

func (ins *instrumenter) spread(args []ast.Expression) {
	for _, a := range args {
		if s, ok := a.(*ast.SpreadElement); ok {
			s.Expression = ins.call("%args", s.Expression)
		}
	}
}

// rest looks at what {a, ...rest} takes apart, wherever the pattern stands: it reads the
// property %rest, which every object inherits and whose getter is the guard.
func (ins *instrumenter) rest(p *ast.ObjectPattern) {
	if p.Rest == nil {
		return
	}
	ins.guards++
	p.Properties = append([]ast.Property{&ast.PropertyKeyed{
		Key: &ast.Identifier{Name: "%rest", Idx: p.LeftBrace}, Kind: ast.PropertyKindValue, Computed: true,
		Value: &ast.AssignExpression{Operator: token.ASSIGN, Left: &ast.ObjectPattern{LeftBrace: p.LeftBrace, RightBrace: p.LeftBrace},
			Right: &ast.ObjectLiteral{LeftBrace: p.LeftBrace, RightBrace: p.LeftBrace}}, // what has no prototype has no %rest
	}}, p.Properties...)
}

// template puts a long template together in several steps.
func (ins *instrumenter) template(t *ast.TemplateLiteral) ast.Expression {
	if t.Tag != nil || len(t.Expressions) <= maxTemplate {
		return t
	}
	var sum ast.Expression
	for i := 0; i < len(t.Expressions); i += maxTemplate {
		end := min(i+maxTemplate, len(t.Expressions))
		part := &ast.TemplateLiteral{OpenQuote: t.OpenQuote, CloseQuote: t.CloseQuote, Expressions: t.Expressions[i:end]}
		part.Elements = append(part.Elements, t.Elements[i:end]...)
		last := &ast.TemplateElement{Idx: t.Elements[end].Idx, Valid: true}
		if end == len(t.Expressions) {
			last = t.Elements[end]
		}
		part.Elements = append(part.Elements, last)
		if sum == nil {
			sum = part
		} else {
			sum = &ast.BinaryExpression{Operator: token.PLUS, Left: sum, Right: part}
		}
	}
	return sum
}

// isPlain tells that e is no BigInt and no object.
func isPlain(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.NumberLiteral:
		return !isBigLiteral(e)
	case *ast.NullLiteral, *ast.BooleanLiteral:
		return true
	case *ast.StringLiteral:
		return len(e.Literal) < 100
	case *ast.UnaryExpression:
		return e.Operator == token.TYPEOF || e.Operator == token.NOT
	}
	return false
}

func (ins *instrumenter) binary(e *ast.BinaryExpression) ast.Expression {
	if isPlain(e.Left) || isPlain(e.Right) {
		return e
	}
	switch e.Operator {
	case token.MULTIPLY:
		e.Left, e.Right = ins.call("%big", e.Left), ins.call("%big", e.Right)
	case token.SHIFT_LEFT, token.SHIFT_RIGHT:
		e.Left, e.Right = ins.call("%big", e.Left), ins.call("%shift", e.Right)
	case token.EXPONENT:
		return ins.call("%power", e.Left, e.Right)
	case token.EQUAL, token.NOT_EQUAL:
		if ins.compares {
			return ins.compare("%equal", e, e.Operator == token.NOT_EQUAL)
		}
	case token.LESS, token.GREATER, token.LESS_OR_EQUAL, token.GREATER_OR_EQUAL:
		if ins.compares {
			op := &ast.StringLiteral{Idx: e.Left.Idx0(), Literal: `"` + e.Operator.String() + `"`, Value: unistring.String(e.Operator.String())}
			return ins.call("%less", e.Left, e.Right, op)
		}
	}
	return e
}

func (ins *instrumenter) compare(guard string, e *ast.BinaryExpression, not bool) ast.Expression {
	c := ins.call(guard, e.Left, e.Right)
	if not {
		return &ast.UnaryExpression{Operator: token.NOT, Idx: e.Left.Idx0(), Operand: c}
	}
	return c
}

// assign guards a *= b and its kin, as a = a * b where that is the same. Of other targets
// only the right side can be looked at, and may make the left one grow by little a step.
func (ins *instrumenter) assign(e *ast.AssignExpression) {
	if isPlain(e.Right) {
		return
	}
	switch e.Operator {
	case token.MULTIPLY, token.SHIFT_LEFT, token.SHIFT_RIGHT:
		if isSteady(e.Left) {
			e.Operator, e.Right = token.ASSIGN, ins.binary(&ast.BinaryExpression{Operator: e.Operator, Left: e.Left, Right: e.Right})
			return
		}
		shift := &ast.BooleanLiteral{Idx: e.Right.Idx0(), Literal: "true", Value: e.Operator != token.MULTIPLY}
		e.Right = ins.call("%step", e.Right, shift)
	case token.EXPONENT:
		if !isSteady(e.Left) {
			ins.refused = &goja.CompilerSyntaxError{CompilerError: goja.CompilerError{Message: "**= on this target is not supported here; write a = a ** b"}}
			return
		}
		e.Operator, e.Right = token.ASSIGN, ins.call("%power", e.Left, e.Right)
	}
}

// isSteady tells that evaluating a target twice is like evaluating it once.
func isSteady(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.Identifier, *ast.ThisExpression, *ast.SuperExpression, *ast.StringLiteral, *ast.NumberLiteral:
		return true
	case *ast.DotExpression:
		return isSteady(e.Left)
	case *ast.PrivateDotExpression:
		return isSteady(e.Left)
	case *ast.BracketExpression:
		return isSteady(e.Left) && isSteady(e.Member)
	}
	return false
}
