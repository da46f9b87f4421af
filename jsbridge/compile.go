package jsbridge

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/go-sourcemap/sourcemap"
)

// Source is the text of one script. Name is shown in positions ("order_pay.js").
type Source struct {
	Name      string
	Code      string
	Language  string // "js" or "ts"; default "js"
	FirstLine int    // the script's first line in the author's file; default 1

	bigints   bool // guard operations on BigInts whatever the code says
	unguarded bool // leave the tree as the author wrote it: it is to be looked at, not run
}

// Program is a compiled script. It holds no state of any run and may be run by many
// goroutines at once.
type Program struct {
	name    string
	prog    *goja.Program
	author  *positions
	src     Source
	guarded bool // the program is a function of the guards
	bigints bool // its operations on BigInts are guarded, so it may have some
	variant sync.Once
	big     *Program // the same with bigints, made when a library needs it
	bigErr  error
}

// Name is the Source's.
func (p *Program) Name() string { return p.name }

// withBigInts is the program with its operations on BigInts guarded.
func (p *Program) withBigInts() (*Program, error) {
	if p.bigints {
		return p, nil
	}
	p.variant.Do(func() {
		src := p.src
		src.bigints = true
		p.big, p.bigErr = Compile(src)
	})
	return p.big, p.bigErr
}

// Compile turns a script, the body of a function, into a Program. It executes nothing.
//
// The error is a *SyntaxError with the position in the author's file: the source does
// not parse, or it is larger than 1 MiB, has brackets nested more than 256 deep or more
// than 2000 operators in one expression.
func Compile(src Source) (*Program, error) {
	p, err := parse(src)
	if err != nil {
		return nil, err
	}
	return p.prog, nil
}

func parse(src Source) (*parsed, error) {
	limitRegex()
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
	p, err := parseScanned(src, at)
	if err != nil {
		return nil, at.hintModule(blameBracket(src, at, err))
	}
	return p, nil
}

var moduleLine = regexp.MustCompile(`^\s*(declare\s+)?(export|import|namespace|module)\s+[\w{*'"]`)

// hintModule says of an error in a line such as import x from 'y' what there is instead.
func (p *positions) hintModule(err error) error {
	var e *SyntaxError
	if errors.As(err, &e) && e.Line > 0 && e.Line <= len(p.lines) && moduleLine.MatchString(p.lines[e.Line-1]) {
		e.Msg += "; a script is the body of a function, without import, export and namespace: shared code is a library, which V8.Use loads"
	}
	return err
}

// parseScanned is parse for source that is safe to parse.
func parseScanned(src Source, at *positions) (*parsed, error) {
	if src.Language == "ts" {
		return parseLowered(src, at)
	}
	p, err := parseJS(src, at.text, at)
	if err != nil && beyondGoja(src.Code) {
		if lowered, err2 := parseLowered(src, at); err2 == nil {
			return lowered, nil
		}
	}
	return p, err
}

// parsed is a script on its way to a Program.
type parsed struct {
	prog *Program
	tree *ast.Program
	fn   *ast.FunctionLiteral // the one round the script
	at   *positions
}

// parseJS parses and compiles the function body code. Places in it are given to at.
func parseJS(src Source, code string, at *positions) (*parsed, error) {
	body := bodyParser{name: src.Name, code: code, at: at}
	body.async = strings.Contains(code, "await")
	tree, fn, err := body.parse("")
	if body.async && (err != nil || !examine(fn).awaits) {
		// await as a plain word, or only in inner functions: a plain function will do.
		body.async = false
		if t2, f2, err2 := body.parse(""); err2 == nil {
			tree, fn, err = t2, f2, nil
		} else {
			body.async = true
		}
	}
	if err == nil {
		tree, fn, err = body.parse(wrapperParams(examine(fn)))
	}
	if err != nil {
		return nil, err
	}
	p := &parsed{prog: &Program{name: src.Name, author: at, src: src}, tree: tree, fn: fn, at: at}
	if !src.unguarded {
		if at.back == nil {
			at.settle(tree, code, at.lead(), at.shift)
		}
		tree, err = p.prog.instrument(tree, code)
	}
	if err == nil {
		p.prog.prog, err = goja.CompileAST(tree, false)
	}
	if err != nil {
		return nil, at.syntaxError(src.Name, err)
	}
	return p, nil
}

// wrapperParams are the parameters of the function round the script: V8, then the names
// the script assigns without declaring them.
func wrapperParams(f findings) string {
	var params []string
	if f.lexical["V8"] {
		params = append(params, "V8$") // let V8 = ... would clash with a parameter
	} else {
		params = append(params, "V8")
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

// bodyParser parses code as the body of one function expression.
type bodyParser struct {
	name, code string
	async      bool
	at         *positions
}

// parse puts the function's head before the code without moving it: on the line above
// where there is one, else at.shift takes it off the columns of line 1.
func (b bodyParser) parse(params string) (*ast.Program, *ast.FunctionLiteral, error) {
	head := "(function(" + params + "){"
	if b.async {
		head = "(async function(" + params + "){"
	}
	b.at.shift = len(head)
	lead := b.at.lead()
	tree, err := parser.ParseFile(nil, b.name, b.code[:lead]+head+b.code[lead:]+"\n})", 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, nil, b.at.syntaxError(b.name, err)
	}
	if len(tree.Body) == 1 {
		if st, ok := tree.Body[0].(*ast.ExpressionStatement); ok {
			if fn, ok := st.Expression.(*ast.FunctionLiteral); ok && int(fn.Body.RightBrace) == len(head)+len(b.code)+2 {
				if b.at.back != nil {
					tree.File.SetSourceMap(b.at.back) // every position of the engine is the author's now
				}
				return tree, fn, nil
			}
		}
	}
	return nil, nil, &SyntaxError{File: b.name, Msg: "unexpected } or ) outside of any bracket"}
}

// positions turns places in what goja compiled into places in the author's file.
type positions struct {
	text      string // the author's code behind firstLine-1 empty lines
	firstLine int
	lines     []string
	shift     int                 // bytes of the wrapper's head on line 1
	back      *sourcemap.Consumer // of lowered code; nil where the author's own text is compiled
	settled   bool                // the engine tells the author's places
}

// lead is where the wrapper's head stands: on the line above the code where there is one.
func (p *positions) lead() int {
	if p.back != nil {
		return 0
	}
	return max(0, p.firstLine-2)
}

func newPositions(src Source) *positions {
	text := strings.Repeat("\n", src.FirstLine-1) + src.Code
	return &positions{text: text, firstLine: src.FirstLine, lines: strings.Split(text, "\n")}
}

// offset is the place of a byte offset of the author's code.
func (p *positions) offset(n int) (line, col int) {
	before := p.text[:min(len(p.text), n+p.firstLine-1)]
	return p.author(strings.Count(before, "\n")+1, len(before)-strings.LastIndexByte(before, '\n'))
}

// place turns a line and column that the engine tells of a compiled script into the
// author's, both from 1; the column counts UTF-16 units as editors do.
func (p *positions) place(line, col int) (int, int) {
	switch {
	case line <= 0:
		return 0, 0
	case p.back != nil: // its source map has been asked by the engine
		return min(max(line, p.firstLine), len(p.lines)), col
	case p.settled && line < p.firstLine:
		return p.firstLine, 1
	case p.settled && line <= len(p.lines):
		return line, col
	case p.settled:
		return p.author(line, col)
	}
	return p.inText(line, col)
}

// inText is place for what the parser tells of the text that it was given.
func (p *positions) inText(line, col int) (int, int) {
	if line == 1 {
		col = max(1, col-p.shift)
	}
	if p.back == nil {
		return p.author(line, col)
	}
	if _, _, row, c, ok := p.back.Source(line, col); ok {
		return p.place(row, c)
	}
	return p.firstLine, 1
}

// author keeps a place inside the script and counts its column in UTF-16 units.
func (p *positions) author(line, col int) (int, int) {
	switch last := len(p.lines); {
	case line < p.firstLine:
		return min(p.firstLine, last), 1
	case line > last:
		line, col = last, len(p.lines[last-1])+1
	}
	text := p.lines[line-1]
	before := text[:min(len(text), max(0, col-1))]
	return line, len(utf16.Encode([]rune(before))) + 1
}

// syntaxError makes the parser's or the compiler's error one for the author.
func (p *positions) syntaxError(name string, err error) error {
	out := &SyntaxError{File: name, Msg: err.Error()}
	var list parser.ErrorList
	var pe *parser.Error
	var ce *goja.CompilerSyntaxError
	var re *goja.CompilerReferenceError
	switch {
	case errors.As(err, &list) && len(list) > 0:
		out.Msg = list[0].Message
		out.Line, out.Column = p.inText(list[0].Position.Line, list[0].Position.Column)
	case errors.As(err, &pe):
		out.Msg = pe.Message
		out.Line, out.Column = p.inText(pe.Position.Line, pe.Position.Column)
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
