package jsbridge

import (
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
)

// Tree is the syntax tree of a script, for tools that look at it without running it. Of
// TypeScript it is the tree of what the types were removed from.
type Tree struct {
	Function *ast.FunctionLiteral // the whole, with what it gets
	Script   *ast.FunctionLiteral // the one whose body the author wrote; in Function, or it
	p        *parsed
}

// ParseTree returns the tree of a script that Compile takes; its errors are those of Compile.
func ParseTree(src Source) (*Tree, error) {
	src.unguarded = true
	p, err := parse(src)
	if err != nil {
		return nil, err
	}
	t := &Tree{Function: p.fn, Script: p.fn, p: p}
	for _, s := range p.fn.Body.List {
		if d, ok := s.(*ast.FunctionDeclaration); ok && d.Function.Name != nil && d.Function.Name.Name == entry {
			t.Script = d.Function
		}
	}
	return t, nil
}

// Place is the author's line and column of a place in the tree.
func (t *Tree) Place(idx file.Idx) (line, col int) {
	pos := t.p.tree.File.Position(int(idx) - t.p.tree.File.Base())
	return t.p.at.place(pos.Line, pos.Column)
}

// Text is what is written at a node.
func (t *Tree) Text(n ast.Node) string {
	src, base := t.p.tree.File.Source(), t.p.tree.File.Base()
	from, to := int(n.Idx0())-base, int(n.Idx1())-base
	if from < 0 || to > len(src) || from >= to {
		return ""
	}
	return src[from:to]
}
