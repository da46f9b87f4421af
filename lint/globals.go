package lint

import "github.com/dop251/goja/ast"

// global finds names that nothing in the file declares and no script has: fetch, require,
// a variable that is misspelt. A name that is declared or assigned anywhere in the file
// counts as there, and so does one whose typeof is asked for.
func (f *file) global(id *ast.Identifier, path []ast.Node) {
	name := id.Name.String()
	if f.vars[name].there() || isLabel(id, path) || f.typeofs[name] {
		return
	}
	if msg := f.known.Global(name, isCalled(id, path)); msg != "" {
		f.warn(id, "%s", msg)
	}
}

// isLabel tells a label from a variable.
func isLabel(id *ast.Identifier, path []ast.Node) bool {
	if len(path) == 0 {
		return false
	}
	switch p := path[len(path)-1].(type) {
	case *ast.LabelledStatement:
		return p.Label == id
	case *ast.BranchStatement:
		return p.Label == id
	case *ast.MetaProperty:
		return true
	}
	return false
}

// isCalled tells f in f() and new f() from f elsewhere.
func isCalled(id *ast.Identifier, path []ast.Node) bool {
	if len(path) == 0 {
		return false
	}
	switch p := path[len(path)-1].(type) {
	case *ast.CallExpression:
		return p.Callee == ast.Expression(id)
	case *ast.NewExpression:
		return p.Callee == ast.Expression(id)
	}
	return false
}
