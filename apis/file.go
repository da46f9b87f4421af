package apis

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

const (
	bom         = "\uFEFF"
	settingsEnd = "---*/"
	maxSettings = 256 << 10 // bytes; more than FormatFile can write
)

// IsFile reports whether a file of this name holds a definition: it ends in .js or .ts,
// is no declaration file (.d.ts) and is not hidden.
func IsFile(name string) bool {
	ext := path.Ext(name)
	return (ext == ".js" || ext == ".ts") && !strings.HasSuffix(name, ".d.ts") && !strings.HasPrefix(path.Base(name), ".")
}

// FilesBelow returns definition files that stand in the folders of a folder, the first of
// each: nobody reads them there. Hidden folders and those of packages are left out.
func FilesBelow(fsys fs.FS) (out []string) {
	dirs, _ := fs.ReadDir(fsys, ".") // whoever reads the folder itself tells what is wrong with it
	for _, d := range dirs {
		if !d.IsDir() || strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" {
			continue
		}
		files, _ := fs.ReadDir(fsys, d.Name())
		if i := slices.IndexFunc(files, func(e fs.DirEntry) bool { return IsFile(e.Name()) }); i >= 0 {
			out = append(out, d.Name()+"/"+files[i].Name())
		}
	}
	return out
}

// ParseFile reads a definition file and validates it. The settings are the YAML in its
// first block comment when that begins with /*--- and ends with ---*/; without one all
// fields have their defaults. The rest is the script. The key's default is the name of
// the file; its ending says the language.
//
// Every problem found comes as a *FieldError with file, line and column, several of them
// as FieldErrors; the definition returned with an error is what could be read.
func ParseFile(name string, src []byte) (Definition, error) {
	p := &problems{}
	d := parseFile(name, src, p)
	for _, e := range p.list {
		e.File = name
	}
	slices.SortStableFunc(p.list, func(a, b *FieldError) int { return a.Line - b.Line })
	return d, p.err()
}

func parseFile(name string, src []byte, p *problems) Definition {
	base := path.Base(name)
	ext := path.Ext(base)
	var d Definition
	if !IsFile(base) {
		p.add("", "a definition's file ends in .js or .ts")
		return d
	}
	if !utf8.Valid(src) {
		p.encoding(src)
		return d
	}
	f, ok := split(newlines(strings.TrimPrefix(string(src), bom)), p)
	if !ok {
		return d
	}
	set := readSettings(&d, f.settings, p)
	for _, e := range p.list {
		if e.Line > 0 {
			e.Line += f.settingsLine - 1
		}
	}
	d.ApiV8Code, d.FirstLine = f.code, f.codeLine
	if d.ApiEngineKey == "" {
		d.ApiEngineKey = strings.TrimSuffix(base, ext)
	}
	if said := d.Language; said != "" && !strings.EqualFold("."+said, ext) && p.of("Language") == nil {
		p.at(nil, "Language", "is "+clip(said)+", but the file ends in "+ext)
	}
	d.Language = ext[1:]
	return finish(d, f, set, p)
}

// finish validates what was read and gives the problems their place in the file: that of
// the field where it is set, else that of the settings or of the script.
func finish(d Definition, f parts, set map[string]*token.Token, p *problems) Definition {
	valid, err := d.Validate()
	for _, e := range flat(err) {
		if p.of(e.Field) == nil { // else what is wrong with it has been said
			p.list = append(p.list, e)
		}
	}
	for _, e := range p.list {
		switch tk := set[e.Field]; {
		case e.Line > 0:
		case tk != nil:
			e.Line, e.Column = tk.Position.Line+f.settingsLine-1, tk.Position.Column
		case e.Field == "ApiV8Code":
			e.Line, e.Column = f.codeLine, 1
		default:
			e.Line, e.Column = f.headerLine, 1
		}
	}
	return valid
}

func flat(err error) FieldErrors {
	switch e := err.(type) {
	case *FieldError:
		return FieldErrors{e}
	case FieldErrors:
		return e
	}
	return nil
}

// of returns the first problem of a field.
func (p *problems) of(field string) *FieldError {
	i := slices.IndexFunc(p.list, func(e *FieldError) bool { return e.Field == field })
	if i < 0 {
		return nil
	}
	return p.list[i]
}

func (p *problems) encoding(src []byte) {
	at := 0
	for at < len(src) {
		r, size := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	line, column := lineAt(src, at)
	p.list = append(p.list, &FieldError{Line: line, Column: column, Msg: "the file must be UTF-8 text"})
}

// parts is a file taken apart. Lines are counted from 1.
type parts struct {
	settings     string // YAML, shifted right so that its first line keeps its columns
	settingsLine int    // of settings' first line
	headerLine   int    // where the settings' comment begins; 1 without one
	code         string
	codeLine     int // of the file, for line 1 of code
}

var (
	settingsStart = regexp.MustCompile(`^/\*---\s`)
	lineComment   = regexp.MustCompile(`^//[^\n]*`)
	blockComment  = regexp.MustCompile(`^(?s)/\*.*?\*/`)
)

// split finds the settings: only blanks and comments may stand before them.
func split(src string, p *problems) (f parts, ok bool) {
	at, blocks := 0, 0
	for {
		at += len(src[at:]) - len(strings.TrimLeftFunc(src[at:], unicode.IsSpace))
		rest := src[at:]
		switch {
		case settingsStart.MatchString(rest) && blocks > 0:
			line, column := lineAt([]byte(src), at)
			p.list = append(p.list, &FieldError{Line: line, Column: column, Msg: "the settings must be the first block comment of the file"})
			return f, false
		case settingsStart.MatchString(rest):
			return splitAt(src, at, p)
		case lineComment.MatchString(rest):
			at += len(lineComment.FindString(rest))
		case blockComment.MatchString(rest):
			at += len(blockComment.FindString(rest))
			blocks++
		default:
			if at := straySettings(src); at >= 0 {
				line, column := lineAt([]byte(src), at)
				p.list = append(p.list, &FieldError{Line: line, Column: column, Msg: "these settings would be ignored: they must begin with /*--- and be the first block comment of the file"})
				return f, false
			}
			return parts{settingsLine: 1, headerLine: 1, code: src, codeLine: 1}, true
		}
	}
}

// stray matches a block comment that was meant to be settings: dashes, then a field.
var stray = regexp.MustCompile(`/\*[*\s]*-{3,}[ \t\r]*\n[*\s]*([A-Za-z]\w*)[ \t]*:`)

// straySettings is where settings in a wrong form or place begin, -1 when there are none.
// Without it a file would lose its Lock in silence.
func straySettings(src string) int {
	for _, m := range stray.FindAllStringSubmatchIndex(src, -1) {
		if _, known := fieldByName(src[m[2]:m[3]]); known {
			return m[0]
		}
	}
	return -1
}

// splitAt takes the settings that begin at start out of src. Line comments before them
// stay, in front of the script; as nothing in a comment can fail, the lines after the
// settings keep one distance to the author's.
func splitAt(src string, start int, p *problems) (f parts, ok bool) {
	const open = len("/*---")
	line, column := lineAt([]byte(src), start)
	f.headerLine, f.settingsLine = line, line
	length := strings.Index(src[start+open:], settingsEnd)
	if length < 0 || length > maxSettings {
		msg := "the settings that begin here do not end: ---*/ is missing"
		if length > 0 {
			msg = "the settings are too long"
		}
		p.list = append(p.list, &FieldError{Line: line, Column: column, Msg: msg})
		return f, false
	}
	body := src[start+open : start+open+length]
	if first, _, _ := strings.Cut(body, "\n"); strings.TrimSpace(first) != "" {
		body = strings.Repeat(" ", column-1+open) + body
	}
	f.settings = body
	end := start + open + length + len(settingsEnd)
	before := src[:strings.LastIndexByte(src[:start], '\n')+1] // whole lines
	if strings.TrimSpace(before) == "" {
		before = ""
	}
	f.code = before + scriptAfter(src, end)
	endLine := strings.Count(src[:end], "\n") + 1
	f.codeLine = endLine + 1 - strings.Count(before, "\n")
	if text, _, more := strings.Cut(src[end:], "\n"); !more || strings.TrimSpace(text) != "" {
		f.codeLine-- // the script begins on the line on which the settings end
	}
	return f, true
}

// scriptAfter is the script behind the settings. The line on which they end is no part of
// it, unless the script begins there: then blanks keep its columns.
func scriptAfter(src string, end int) string {
	rest := src[end:]
	first, after, more := strings.Cut(rest, "\n")
	if strings.TrimSpace(first) != "" {
		_, column := lineAt([]byte(src), end)
		return strings.Repeat(" ", column-1) + rest
	}
	if !more {
		return ""
	}
	return after
}
