package apis

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// FormatFile writes a valid definition as a file. ParseFile of the result is the same
// definition but for FirstLine, and a file that was written by FormatFile is written the
// same again. Settings that have their default are left out.
func FormatFile(d Definition) (name string, src []byte) {
	if valid, err := d.Validate(); err == nil {
		d = valid
	}
	var b bytes.Buffer
	b.WriteString("/*---\n")
	for _, f := range fields {
		if text := f.show(&d); text != "" {
			b.WriteString(f.name + ": " + text + "\n")
		}
	}
	b.WriteString(settingsEnd + "\n" + d.ApiV8Code)
	return d.FileName(), b.Bytes()
}

// yamlText writes s as a plain word where that is read back as s, as a block where s has
// several lines, else in double quotes.
func yamlText(s string) string {
	if isPlain(s) && readsAs(s, s) {
		return s
	}
	if block := yamlBlock(s); block != "" && readsAs(block, s) {
		return block
	}
	return yamlQuote(s)
}

// isPlain is a first, strict look at what may go without quotes; readsAs is the second.
func isPlain(s string) bool {
	for i, r := range s {
		ok := r == '_' || r == '/' || unicode.IsLetter(r) || unicode.IsDigit(r)
		if !ok && (i == 0 || !strings.ContainsRune(" .,-+'()=<>@$!?;:*&%{}[]|~^\"", r)) {
			return false
		}
	}
	return s != "" && s == strings.TrimSpace(s) && !strings.Contains(s, "*/")
}

// readsAs reports whether the YAML parser reads text, as a value, as the text want.
func readsAs(text, want string) bool {
	n := valueOf("X: " + text + "\nY: Z\n")
	if n == nil {
		return false
	}
	s, err := textOf(n)
	return err == nil && s == want
}

// valueOf is the value of X in a mapping of X and Y; nil when the text is another thing.
func valueOf(text string) ast.Node {
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil || len(file.Docs) != 1 {
		return nil
	}
	m, ok := file.Docs[0].Body.(*ast.MappingNode)
	if !ok || len(m.Values) != 2 || m.Values[1].Key.GetToken().Value != "Y" {
		return nil
	}
	return m.Values[0].Value
}

// yamlBlock writes a text of several visible lines as a block; empty: it cannot be one.
func yamlBlock(s string) string {
	body, ends := strings.CutSuffix(s, "\n")
	lines := strings.Split(body, "\n")
	if len(lines) < 2 {
		return ""
	}
	for _, l := range lines {
		if l != strings.TrimSpace(l) || strings.Contains(l, "*/") || strings.ContainsFunc(l, func(r rune) bool { return r != ' ' && !isVisible(r) }) {
			return ""
		}
	}
	head := "|-\n"
	if ends {
		head = "|\n"
	}
	return head + regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(body, "  $1")
}

// yamlQuote writes s in double quotes, in escapes that YAML and JSON share.
func yamlQuote(s string) string { return hideCommentEnd(quoteJSON(s)) }

// hideCommentEnd keeps a text in quotes from ending the comment that it stands in.
func hideCommentEnd(s string) string { return strings.ReplaceAll(s, "*/", `*\/`) }

func quoteJSON(s string) string {
	b, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil { // only for invalid UTF-8
		return `""`
	}
	return escapeInvisible(string(b))
}

// escapeInvisible writes characters that a YAML parser may refuse or fold as escapes.
func escapeInvisible(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return needsEscape(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if needsEscape(r) {
			const hex = "0123456789abcdef"
			b.WriteString(`\u` + string([]byte{hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]}))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func needsEscape(r rune) bool {
	return r != ' ' && r != unicode.ReplacementChar && r < 0x10000 && !isVisible(r)
}

// isVisible reports whether r is a character that one can see and does not break a line.
func isVisible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }

func yamlList(items []string) string {
	out := make([]string, len(items))
	for i, s := range items {
		if out[i] = s; !isPlain(s) || strings.ContainsAny(s, "[]{},") || !readsAsItem(s) {
			out[i] = yamlQuote(s)
		}
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func readsAsItem(s string) bool {
	seq, ok := valueOf("X: [" + s + "]\nY: Z\n").(*ast.SequenceNode)
	if !ok || len(seq.Values) != 1 {
		return false
	}
	text, err := textOf(seq.Values[0])
	return err == nil && text == s
}

// yamlJSON writes an object in the form that is JSON and YAML at once.
func yamlJSON(text json.RawMessage) string {
	v := jsontext.Value(bytes.Clone(text))
	if err := v.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true)); err != nil {
		return "{}" // not a valid definition
	}
	return hideCommentEnd(escapeInvisible(string(v)))
}
