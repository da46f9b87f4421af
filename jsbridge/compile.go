package jsbridge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
)

// Source is the text of one script. Name is shown in positions ("order_pay.js").
type Source struct {
	Name      string
	Code      string
	Language  string // "js" or "ts"; default "js"
	FirstLine int    // the script's first line in the author's file; default 1
}

// Program is a compiled script. It holds no state of any run and may be run by many
// goroutines at once.
type Program struct {
	name   string
	prog   *goja.Program
	author *positions
}

// Name is the Source's.
func (p *Program) Name() string { return p.name }

// Compile turns a script, the body of a function, into a Program. It executes nothing.
//
// The error is a *SyntaxError with the position in the author's file: the source does
// not parse, or it is larger than 1 MiB, has brackets nested more than 256 deep or more
// than 2000 operators in one expression.
func Compile(src Source) (*Program, error) {
	src.FirstLine = max(src.FirstLine, 1)
	src.Language = cmp.Or(src.Language, "js")
	if src.Language != "js" && src.Language != "ts" {
		return nil, &SyntaxError{File: src.Name, Msg: fmt.Sprintf("Language %q is neither js nor ts", src.Language)}
	}
	at := newPositions(src)
	if e := prescan(src.Code); e != nil {
		line, col := at.offset(e.offset)
		return nil, &SyntaxError{File: src.Name, Line: line, Column: col, Msg: e.msg}
	}
	if src.Language == "ts" {
		return compileLowered(src, at)
	}
	p, err := compileJS(src.Name, at.text, at)
	if err != nil && beyondGoja(src.Code) {
		if lowered, err2 := compileLowered(src, at); err2 == nil {
			return lowered, nil
		}
	}
	return p, err
}

// compileJS compiles the function body code. Positions in it are given to at.
func compileJS(name, code string, at *positions) (*Program, error) {
	async := strings.Contains(code, "await")
	tree, fn, err := parseBody(name, code, "", async)
	if async && (err != nil || !examine(fn).awaits) {
		// await as a plain word, or only in inner functions: a plain function will do.
		if t2, f2, err2 := parseBody(name, code, "", false); err2 == nil {
			tree, fn, err, async = t2, f2, nil, false
		}
	}
	if err == nil {
		if params := wrapperParams(examine(fn)); params != "" {
			tree, _, err = parseBody(name, code, params, async)
		}
	}
	if err != nil {
		return nil, at.syntaxError(name, err)
	}
	prog, err := goja.CompileAST(tree, false)
	if err != nil {
		return nil, at.syntaxError(name, err)
	}
	return &Program{name: name, prog: prog, author: at}, nil
}

// wrapperParams are the parameters of the function round the script: V8, then the names
// the script assigns without declaring them.
func wrapperParams(f findings) string {
	var params []string
	if !slices.Contains(f.declares, "V8") {
		params = append(params, "V8")
	} else {
		params = append(params, "V8$") // let V8 = ... would clash with a parameter
	}
	if !f.strict {
		for _, name := range f.implicit {
			if name != "V8" && !isIntrinsic(name) {
				params = append(params, name)
			}
		}
	}
	return strings.Join(params, ",")
}

// parseBody parses code as the body of one function expression. The tree's file starts
// where code starts, so that every position is one in code.
func parseBody(name, code, params string, async bool) (*ast.Program, *ast.FunctionLiteral, error) {
	prefix := "(function(" + params + "){"
	if async {
		prefix = "(async function(" + params + "){"
	}
	tree, err := parser.ParseFile(nil, name, prefix+code+"\n})", 0, parser.WithDisableSourceMaps)
	if err != nil {
		var list parser.ErrorList
		if errors.As(err, &list) && len(list) > 0 {
			return nil, nil, shifted(list[0], len(prefix))
		}
		return nil, nil, err
	}
	if len(tree.Body) == 1 {
		if st, ok := tree.Body[0].(*ast.ExpressionStatement); ok {
			if fn, ok := st.Expression.(*ast.FunctionLiteral); ok && int(fn.Body.RightBrace) == len(prefix)+len(code)+2 {
				tree.File = file.NewFile(name, code+"\n})", 1+len(prefix))
				return tree, fn, nil
			}
		}
	}
	return nil, nil, &parser.Error{Message: "unexpected } or ) outside of any bracket"}
}

func shifted(e *parser.Error, prefix int) *parser.Error {
	out := *e
	if out.Position.Line == 1 {
		out.Position.Column = max(1, out.Position.Column-prefix)
	}
	return &out
}

// positions turns places in what goja compiled into places in the author's file.
type positions struct {
	text      string // the author's code behind firstLine-1 empty lines
	firstLine int
	lines     []string
	lowered   func(line, col int) (int, int) // through esbuild's source map; nil without
}

func newPositions(src Source) *positions {
	text := strings.Repeat("\n", src.FirstLine-1) + src.Code
	return &positions{text: text, firstLine: src.FirstLine, lines: strings.Split(text, "\n")}
}

// offset is the place of a byte offset of the author's code.
func (p *positions) offset(n int) (line, col int) {
	before := p.text[:min(len(p.text), n+p.firstLine-1)]
	line = strings.Count(before, "\n") + 1
	return p.place(line, len(before)-strings.LastIndexByte(before, '\n'))
}

// place turns a line and byte column of the compiled text into the author's line and
// column, both from 1; the column counts UTF-16 units as editors do.
func (p *positions) place(line, col int) (int, int) {
	if line <= 0 {
		return 0, 0
	}
	if p.lowered != nil {
		line, col = p.lowered(line, col)
	}
	if line < p.firstLine || line > len(p.lines) {
		return min(max(line, p.firstLine), len(p.lines)), 1
	}
	text := p.lines[line-1]
	before := text[:min(len(text), max(0, col-1))]
	return line, len(utf16.Encode([]rune(before))) + 1
}

// syntaxError makes the parser's or the compiler's error one for the author.
func (p *positions) syntaxError(name string, err error) error {
	out := &SyntaxError{File: name, Msg: err.Error()}
	var pe *parser.Error
	var ce *goja.CompilerSyntaxError
	var re *goja.CompilerReferenceError
	switch {
	case errors.As(err, &pe):
		out.Msg = pe.Message
		out.Line, out.Column = p.place(pe.Position.Line, pe.Position.Column)
	case errors.As(err, &ce):
		out.Msg = ce.Message
		if ce.File != nil {
			pos := ce.File.Position(ce.Offset)
			out.Line, out.Column = p.place(pos.Line, pos.Column)
		}
	case errors.As(err, &re):
		out.Msg = re.Message
	}
	return out
}
