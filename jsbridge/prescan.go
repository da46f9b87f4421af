package jsbridge

import (
	"fmt"
	"strings"
)

// What is compiled at all. Past these the parsers of goja and esbuild end the whole
// process (nesting) or take minutes (operator chains), so a scan comes before them.
const (
	maxSource  = 1 << 20
	maxNesting = 256
	maxChain   = 2000
	maxNumber  = 20_000 // digits; reading them takes time with their square
)

// prescan refuses source that is dangerous to parse. It follows the language's tokens
// just far enough to know what is code; where that is unsure it refuses.
func prescan(src string) *scanError {
	if len(src) > maxSource {
		return &scanError{msg: fmt.Sprintf("the source has %d bytes, more than %d", len(src), maxSource)}
	}
	return scan(src).err
}

func scan(src string) *scanner {
	s := &scanner{src: src, chains: []int{0}}
	for s.err == nil && s.pos < len(src) {
		s.token()
	}
	return s
}

type scanError struct {
	offset int
	msg    string
}

// scanner keeps the open brackets and what the last token was: after a value a slash
// divides, elsewhere it begins a regular expression.
type scanner struct {
	src    string
	pos    int
	open   []bracket
	chains []int // operators seen since the last separator, one count for each open bracket
	prev   tokenKind
	word   string // text of the last token when it was a word
	err    *scanError

	eol   int // the end of the line that pos is in, when it is past pos
	quote int // the last quote of that line
}

type bracket struct {
	char    byte // ( [ { or $ for ${ in a template
	at      int  // its offset
	control bool // ( after if, while, for, with: its ) is no value
}

type tokenKind int

const (
	tokPunct tokenKind = iota
	tokValue
	tokWord
	tokDot
	tokBrace // }: the end of a block or of a value
)

func (s *scanner) fail(at int, format string, args ...any) {
	if s.err == nil {
		s.err = &scanError{offset: at, msg: fmt.Sprintf(format, args...)}
	}
}

func (s *scanner) token() {
	c := s.src[s.pos]
	switch {
	case c == ' ' || c == '\t' || c == '\r':
		s.pos++
	case c == '\n':
		s.pos++
		if (s.prev == tokValue || s.prev == tokBrace) && !s.continues() {
			s.chains[len(s.chains)-1] = 0 // a semicolon is put in here
		}
	case c == '"' || c == '\'':
		s.quoted(c)
	case c == '`':
		s.operator(s.pos) // a tag before it makes it a call
		s.pos++
		s.template()
	case c == '/':
		s.slash()
	case c == '(' || c == '[' || c == '{':
		s.push(c)
	case c == ')' || c == ']' || c == '}':
		s.closeBracket(c)
	case isWordByte(c) || c == '#' || c == '\\':
		s.takeWord()
	case c == '.':
		s.pos++
		s.prev = tokDot
		s.operator(s.pos - 1)
	default:
		s.punct(c)
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

func (s *scanner) takeWord() {
	start := s.pos
	for s.pos++; s.pos < len(s.src) && isWordByte(s.src[s.pos]); s.pos++ {
	}
	word := s.src[start:s.pos]
	if word[0] >= '0' && word[0] <= '9' && len(word) > maxNumber {
		s.fail(start, "a number of more than %d digits", maxNumber)
		return
	}
	if s.prev == tokDot { // a.return is a name
		s.prev = tokValue
		return
	}
	s.word, s.prev = word, tokValue
	if prefixWords[word] {
		s.prev = tokWord
		s.operator(start)
	}
}

// prefixWords stand before an expression, so a slash after one begins a regular
// expression. Those that nest to the right (typeof typeof x, else if) count as operators.
var prefixWords = map[string]bool{
	"return": true, "typeof": true, "instanceof": true, "in": true, "of": true, "new": true,
	"delete": true, "void": true, "throw": true, "case": true, "do": true, "else": true,
	"await": true, "yield": true, "extends": true, "default": true, "if": true, "while": true,
	"for": true, "with": true,
}

func (s *scanner) punct(c byte) {
	at := s.pos
	s.pos++
	switch c {
	case ';', ',':
		s.prev = tokPunct
		if !s.continues() { // ; before else ends no statement
			s.chains[len(s.chains)-1] = 0
		}
		return
	case '<':
		if strings.HasPrefix(s.src[at:], "<!--") {
			s.fail(at, "<!-- is not allowed")
		}
	case '+', '-':
		if s.pos < len(s.src) && s.src[s.pos] == c { // ++ after a value leaves a value
			s.pos++
			s.operator(at)
			return
		}
	}
	for s.pos < len(s.src) && strings.IndexByte("=<>&|*", s.src[s.pos]) >= 0 && s.src[s.pos] == s.src[s.pos-1] {
		s.pos++ // **, &&, ===: one operator; !! is two
	}
	s.prev = tokPunct
	s.operator(at)
}

// operator counts what a parser answers by recursion or by a left-deep tree.
func (s *scanner) operator(at int) {
	n := len(s.chains) - 1
	if s.chains[n]++; s.chains[n] > maxChain {
		s.fail(at, "more than %d operators in one expression; build it in steps", maxChain)
	}
}

func (s *scanner) push(c byte) {
	control := c == '(' && s.prev == tokWord && (s.word == "if" || s.word == "while" || s.word == "for" || s.word == "with")
	s.enter(bracket{char: c, control: control})
	s.pos++
	s.prev = tokPunct
}

func (s *scanner) enter(b bracket) {
	if len(s.open) >= maxNesting {
		s.fail(s.pos, "brackets nested more than %d deep", maxNesting)
		return
	}
	s.operator(s.pos) // f()()() is a chain too
	b.at = s.pos
	s.open = append(s.open, b)
	s.chains = append(s.chains, 0)
}

func (s *scanner) closeBracket(c byte) {
	s.pos++
	s.prev = tokValue
	if c == '}' {
		s.prev = tokBrace
	}
	if len(s.open) == 0 {
		s.fail(s.pos-1, "unexpected %c", c)
		return
	}
	top := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	s.chains = s.chains[:len(s.chains)-1]
	switch {
	case top.char == '$' && c == '}':
		s.template()
	case strings.IndexByte("([{", top.char) != strings.IndexByte(")]}", c):
		s.fail(s.pos-1, "unexpected %c", c)
	case top.control:
		s.prev = tokPunct
	case c == '}' && !s.continues():
		s.chains[len(s.chains)-1] = 0 // the end of a statement
	}
}

// continues tells whether what comes next carries on the statement before it.
func (s *scanner) continues() bool {
	rest := strings.TrimLeft(s.src[s.pos:min(len(s.src), s.pos+64)], " \t\r\n")
	if rest == "" {
		return len(s.src) > s.pos+64
	}
	if s.prev == tokPunct { // after ; or ,
		return strings.HasPrefix(rest, "else")
	}
	return strings.IndexByte(".([`?:+-*/%<>=!&|^,", rest[0]) >= 0 || strings.HasPrefix(rest, "else") ||
		strings.HasPrefix(rest, "in ") || strings.HasPrefix(rest, "instanceof")
}

func (s *scanner) quoted(q byte) {
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			s.pos++
		case '\n', '\r':
			s.prev = tokValue
			return // the parser says what is wrong
		case q:
			s.pos++
			s.prev = tokValue
			return
		}
	}
}

// template reads template text up to its end or to the next ${.
func (s *scanner) template() {
	for ; s.pos < len(s.src); s.pos++ {
		switch c := s.src[s.pos]; {
		case c == '\\':
			s.pos++
		case c == '`':
			s.pos++
			s.prev = tokValue
			return
		case c == '$' && strings.HasPrefix(s.src[s.pos:], "${"):
			s.enter(bracket{char: '$'})
			s.pos += 2
			s.prev = tokPunct
			return
		}
	}
}

func (s *scanner) slash() {
	rest := s.src[s.pos:]
	switch {
	case strings.HasPrefix(rest, "//"):
		s.pos += len(s.line())
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[2:], "*/")
		if end < 0 {
			s.fail(s.pos, "a comment without end")
			end = len(rest) - 4
		}
		s.pos += end + 4
	case s.prev == tokBrace && len(s.line()) > 0 && s.quote > s.pos:
		// Division or pattern depends on what the brace closed; a wrong guess here
		// could hide code from this scan.
		s.fail(s.pos, "a slash after } is ambiguous here; put parentheses around the value or the pattern")
	case s.prev == tokValue || s.prev == tokBrace:
		s.pos++
		s.prev = tokPunct
		s.operator(s.pos - 1)
	default:
		s.pattern()
	}
}

// line is the rest of the line. It looks for the end once a line, not once a token.
func (s *scanner) line() string {
	if s.pos >= s.eol {
		rest := s.src[s.pos:]
		if i := strings.IndexAny(rest, "\n\r\u2028\u2029"); i >= 0 {
			rest = rest[:i]
		}
		s.eol = s.pos + len(rest)
		s.quote = s.pos + strings.LastIndexAny(rest, "`'\"")
	}
	return s.src[s.pos:s.eol]
}

func (s *scanner) pattern() {
	rest := s.line()
	class := false
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			if nesting(rest[1:i]) > maxNesting {
				s.fail(s.pos, "a regular expression with groups nested more than %d deep", maxNesting)
			}
			s.pos += i + 1
			s.prev = tokValue
			return
		}
	}
	s.fail(s.pos, "a regular expression without end")
}

// nesting is how deep the groups of a pattern nest; its compilers take time with the square
// of it.
func nesting(pattern string) int {
	depth, most, class := 0, 0, false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
			most = max(most, depth)
		case c == ')':
			depth--
		}
	}
	return most
}
