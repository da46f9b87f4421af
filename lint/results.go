package lint

import (
	"strings"

	"github.com/dop251/goja/ast"
)

// result finds an answer that looks like success and rolls everything back: { code: 1 } and
// { Code: '1' }. Only Code, and only the number 1, commits.
func (f *file) result(answer ast.Expression) {
	o, ok := bare(answer).(*ast.ObjectLiteral)
	if !ok {
		return
	}
	var near *ast.PropertyKeyed
	for _, p := range o.Value {
		k, ok := p.(*ast.PropertyKeyed)
		if !ok {
			return // { ...rest } and { Code } may be anything
		}
		name, ok := k.Key.(*ast.StringLiteral)
		switch {
		case !ok || k.Computed:
			return
		case name.Value.String() == "Code":
			if text, ok := k.Value.(*ast.StringLiteral); ok {
				f.warn(k.Value, "Code is the text %q, not a number, so what the run wrote is rolled back; write Code: 1", text.Value)
			}
			return
		case strings.EqualFold(name.Value.String(), "Code"):
			near = k
		}
	}
	if near != nil {
		f.warn(near.Key, "the result has no Code but %s, so what the run wrote is rolled back; write Code: 1", f.short(near.Key))
	}
}
