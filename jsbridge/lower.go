package jsbridge

import (
	"fmt"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/go-sourcemap/sourcemap"
)

// parseLowered parses TypeScript, and JavaScript that goja cannot parse itself,
// through esbuild. The script becomes the function entry, which is called at the end.
func parseLowered(src Source, at *positions) (*parsed, error) {
	l := lowering{src: src, at: at}
	code, err := l.transform(strings.Contains(src.Code, "await"))
	if err != nil && l.async {
		code, err = l.transform(false) // await may be a plain word
	}
	if err != nil {
		return nil, err
	}
	return parseJS(src, code+"\nreturn "+entry+"();", &positions{
		text: at.text, firstLine: at.firstLine, lines: at.lines, back: l.back,
	})
}

const entry = "__apiengine_script"

// beyondGoja tells whether esbuild can help with code that goja refused.
func beyondGoja(code string) bool {
	return strings.Contains(code, "await") || strings.Contains(code, "async")
}

type lowering struct {
	src    Source
	at     *positions
	async  bool
	prefix string
	back   *sourcemap.Consumer
}

func (l *lowering) transform(async bool) (string, error) {
	l.async = async
	l.prefix = "function " + entry + "(){"
	if async {
		l.prefix = "async " + l.prefix
	}
	loader := api.LoaderTS
	if l.src.Language == "js" {
		loader = api.LoaderJS
	}
	// The prefix goes right before the code, so only the columns of its line move.
	lead, code := l.at.text[:l.at.firstLine-1], l.at.text[l.at.firstLine-1:]
	out := api.Transform(lead+l.prefix+code+"\n}", api.TransformOptions{
		Loader: loader, Target: api.ES2017, Sourcemap: api.SourceMapExternal,
		Sourcefile: "script", LogLevel: api.LogLevelSilent, Charset: api.CharsetUTF8,
		// goja has these itself; lowering them would only cost.
		Supported: map[string]bool{"optional-chain": true, "nullish-coalescing": true,
			"object-rest-spread": true, "class-field": true, "class-static-field": true,
			"class-private-field": true, "class-private-method": true, "logical-assignment": true,
			"bigint": true, "optional-catch-binding": true, "regexp-lookbehind-assertions": true,
			"regexp-named-capture-groups": true, "regexp-dot-all-flag": true, "exponent-operator": true},
		TsconfigRaw: `{"compilerOptions":{"useDefineForClassFields":true}}`,
	})
	if len(out.Errors) > 0 {
		return "", l.syntaxError(out.Errors[0])
	}
	back, err := authorMap(l.src.Name, string(out.Code), out.Map, func(line, col int) (int, int) {
		return line, l.unprefix(line+1, col)
	})
	if err != nil {
		return "", fmt.Errorf("jsbridge: esbuild's source map: %w", err)
	}
	l.back = back
	return string(out.Code), nil
}

func (l *lowering) syntaxError(m api.Message) error {
	e := &SyntaxError{File: l.src.Name, Msg: m.Text}
	if m.Location != nil {
		e.Line, e.Column = l.at.author(m.Location.Line, l.unprefix(m.Location.Line, m.Location.Column)+1)
	}
	return e
}

// unprefix takes the prefix's width from a column (from 0) of the script's first line.
func (l *lowering) unprefix(line, col int) int {
	if line == l.at.firstLine {
		return max(0, col-len(l.prefix))
	}
	return col
}
