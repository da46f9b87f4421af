package lint

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dop251/goja/ast"

	"apiengine/jsbridge"
)

// file is one script that is looked at.
type file struct {
	tree     *jsbridge.Tree
	known    *jsbridge.Names
	vars     map[string]*variable
	typeofs  map[string]bool // names whose typeof is asked for
	asyncs   map[string]bool // names of async functions
	cache    []cacheCall
	uses     []use
	warnings []Warning
}

func newFile(tree *jsbridge.Tree, known *jsbridge.Names) *file {
	return &file{tree: tree, known: known, vars: map[string]*variable{}, typeofs: map[string]bool{}, asyncs: map[string]bool{}}
}

// look finds everything.
func (f *file) look() {
	f.collect()
	walk(f.tree.Function.Body, func(n ast.Node, path []ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpression:
			f.sqlText(n)
			f.cacheCall(n, path)
			f.library(n)
			f.unbounded(n, path)
		case *ast.DotExpression, *ast.BracketExpression:
			f.unknownName(n.(ast.Expression))
		case *ast.AssignExpression:
			if f.space(n.Left) == "V8.Result" {
				f.result(n.Right)
			}
		case *ast.ExpressionStatement:
			f.lostPromise(n)
		case *ast.Identifier:
			f.global(n, path)
		case *ast.PropertyShort: // in a pattern it is a name that the pattern makes
			f.global(&n.Name, path)
		}
	})
	f.homemadeLocks()
	answers, _ := returned(f.tree.Script)
	for _, a := range answers {
		f.result(a)
	}
}

func (f *file) warn(at ast.Node, format string, args ...any) {
	w := Warning{Msg: fmt.Sprintf(format, args...)}
	w.Line, w.Column = f.tree.Place(at.Idx0())
	f.warnings = append(f.warnings, w)
}

// short is the text of an expression on one line.
func (f *file) short(n ast.Node) string {
	text := strings.Join(strings.Fields(f.tree.Text(n)), " ")
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "..."
	}
	return text
}

// unknownName finds V8.Chache, V8.Cache.Gett and FromSql(...).ToLst().
func (f *file) unknownName(e ast.Expression) {
	object, name, ok := member(e)
	if !ok {
		return
	}
	of := f.space(object)
	if parts := strings.Split(of, "."); len(parts) == 3 && parts[1] == "Dbs" {
		of = "V8.Db" // of any name
	}
	if of == "" && f.statement(object) != nil {
		of = "statement"
	}
	if msg := f.known.Check(of, name); msg != "" {
		f.warn(e, "%s", msg)
	}
}

// statement is the FromSql call that an expression is, with or without parameters added.
func (f *file) statement(e ast.Expression) *ast.CallExpression {
	for range 100 {
		object, name, _, ok := method(e)
		switch {
		case ok && strings.TrimSuffix(name, "Async") == "FromSql":
			return bare(e).(*ast.CallExpression)
		case ok && strings.TrimSuffix(name, "Async") == "AddInParameter":
			e = object
			continue
		}
		id, is := bare(e).(*ast.Identifier)
		if !is {
			return nil
		}
		if e = f.vars[id.Name.String()].only(); e == nil {
			return nil
		}
	}
	return nil
}

// loops are methods that call their argument for each item.
var loops = map[string]bool{"forEach": true, "map": true, "filter": true, "some": true, "every": true, "reduce": true,
	"find": true, "findIndex": true, "flatMap": true, "sort": true}

// inLoop reports whether what is at the end of path may run many times.
func inLoop(path []ast.Node) bool {
	for i, p := range path {
		switch p := p.(type) {
		case *ast.ForStatement, *ast.ForInStatement, *ast.ForOfStatement, *ast.WhileStatement, *ast.DoWhileStatement:
			if i+1 < len(path) && !once(p, path[i+1]) {
				return true
			}
		case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
			if i > 0 && calledForEach(path[i-1], p) {
				return true
			}
		}
	}
	return false
}

// calledForEach reports a function that is given to forEach or the like.
func calledForEach(parent, function ast.Node) bool {
	call, ok := parent.(*ast.CallExpression)
	if !ok {
		return false
	}
	_, name, args, ok := method(call)
	return ok && loops[name] && len(args) > 0 && ast.Node(args[0]) == function
}

// once reports a part of a loop that runs before it begins.
func once(loop, part ast.Node) bool {
	switch l := loop.(type) {
	case *ast.ForStatement:
		return l.Initializer != nil && ast.Node(l.Initializer) == part
	case *ast.ForInStatement:
		return ast.Node(l.Source) == part
	case *ast.ForOfStatement:
		return ast.Node(l.Source) == part
	}
	return false
}

var (
	bounded    = regexp.MustCompile(`(?i)\b(LIMIT|FETCH\s+(FIRST|NEXT))\b`)
	aggregated = regexp.MustCompile(`(?i)^\s*SELECT\s+(COUNT|SUM|MIN|MAX|AVG)\s*\([^()]*\)(\s+AS)?\s*\w*\s+FROM\b`)
	grouped    = regexp.MustCompile(`(?i)\bGROUP\s+BY\b`)
	byID       = regexp.MustCompile(`(?i)\bWHERE\s+"?(\w+\.)?id"?\s*=\s*@\w+\s*(AND\b|;|$)`)
	reads      = regexp.MustCompile(`(?i)^\s*(SELECT|WITH)\b`)
)

// unbounded finds queries in a loop that may return any number of rows each time.
func (f *file) unbounded(call *ast.CallExpression, path []ast.Node) {
	if !inLoop(path) {
		return
	}
	if f.called(call) == "V8.FormEngine.GetTableData" {
		f.unboundedForm(call)
		return
	}
	object, name, _, ok := method(call)
	if !ok || strings.TrimSuffix(name, "Async") != "ToArray" {
		return
	}
	from := f.statement(object)
	if from == nil || len(from.ArgumentList) == 0 {
		return
	}
	sql := f.sqlOf(from.ArgumentList[0], 0)
	if !reads.MatchString(sql) || bounded.MatchString(sql) || byID.MatchString(sql) || aggregated.MatchString(sql) && !grouped.MatchString(sql) {
		return
	}
	f.warn(from, "a query without LIMIT in a loop: ask once before the loop for all that it needs, or add LIMIT")
}

// unboundedForm judges the options of GetTableData where they are written in the script.
func (f *file) unboundedForm(call *ast.CallExpression) {
	if len(call.ArgumentList) == 0 {
		return
	}
	options := call.ArgumentList[len(call.ArgumentList)-1]
	if len(call.ArgumentList) > 1 {
		options = call.ArgumentList[1]
	}
	set := map[string]bool{}
	if id, ok := options.(*ast.Identifier); ok {
		v := f.vars[id.Name.String()]
		if options = v.only(); options == nil {
			return
		}
		set = v.set
	}
	o, ok := options.(*ast.ObjectLiteral)
	if !ok {
		return
	}
	for _, p := range o.Value {
		name := ""
		switch p := p.(type) {
		case *ast.PropertyKeyed:
			if s, is := p.Key.(*ast.StringLiteral); is {
				name = s.Value.String()
			}
		case *ast.PropertyShort:
			name = p.Name.Name.String()
		default:
			return // ...spread: anything may be in it
		}
		if name == "_PageSize" || name == "Ids" || name == "Id" {
			return
		}
	}
	if !set["_PageSize"] && !set["Ids"] && !set["Id"] {
		f.warn(call, "GetTableData without _PageSize in a loop: ask once before the loop, with _Where: [['Id', 'In', ids]], or give _PageSize")
	}
}
