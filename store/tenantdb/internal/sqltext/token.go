// Package sqltext reads the text of SQL statements, without a database: it cuts them into
// tokens, refuses what a script must not say, and turns @name placeholders into the
// numbered ones of the database. It knows the two dialects' comments, strings and quotes,
// since what one of them takes for a comment the other may run.
package sqltext

import (
	"errors"
	"fmt"
	"strings"
)

// Dialect is the SQL of one database.
type Dialect string

// The dialects.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

type kind int

const (
	word   kind = iota // a keyword or an unquoted name
	quoted             // a quoted name; text is what it says
	text               // a string, in any of its forms
	number
	operator // a run of operator characters
	mark     // one of ( ) [ ] , ; . :
	param    // @name; text is the name without @
	foreign  // a placeholder of the database's own: $1, ?, :name
)

type token struct {
	kind       kind
	text       string
	start, end int // byte offsets into the statement
}

// is reports whether t is the keyword k (lower case).
func (t token) is(k string) bool { return t.kind == word && strings.EqualFold(t.text, k) }

// name returns the name that t gives, folded, and whether it is one.
func (t token) name() (string, bool) {
	return strings.ToLower(t.text), t.kind == word || t.kind == quoted
}

var errNUL = errors.New("the statement holds a NUL character")

const operatorChars = "+-*/<>=~!@#%^&|`?"

type lexer struct {
	d      Dialect
	s      string
	i      int
	tokens []token
}

// scan cuts s into tokens, without blanks and comments. An error names the position of
// what was opened and never closed.
func scan(d Dialect, s string) ([]token, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return nil, errNUL
	}
	l := &lexer{d: d, s: s, tokens: make([]token, 0, len(s)/4+4)}
	for {
		if err := l.skip(); err != nil {
			return nil, err
		}
		if l.i >= len(l.s) {
			return l.tokens, nil
		}
		if err := l.next(); err != nil {
			return nil, err
		}
	}
}

func (l *lexer) at(off int) byte {
	if l.i+off < len(l.s) {
		return l.s[l.i+off]
	}
	return 0
}

func (l *lexer) emit(k kind, start int, txt string) {
	l.tokens = append(l.tokens, token{k, txt, start, l.i})
}

func (l *lexer) unclosed(start int, what string) error {
	return fmt.Errorf("%s that begins at character %d is never closed", what, start+1)
}

// skip passes over blanks and comments.
func (l *lexer) skip() error {
	for l.i < len(l.s) {
		switch c := l.s[l.i]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			l.i++
		case c == '-' && l.at(1) == '-':
			l.lineComment()
		case c == '/' && l.at(1) == '*':
			if err := l.blockComment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) lineComment() {
	stop := "\n"
	if l.d == Postgres {
		stop = "\r\n" // there a carriage return ends it as well
	}
	if n := strings.IndexAny(l.s[l.i:], stop); n >= 0 {
		l.i += n
		return
	}
	l.i = len(l.s)
}

func (l *lexer) blockComment() error {
	start, depth := l.i, 0
	for l.i < len(l.s) {
		switch {
		case l.at(0) == '/' && l.at(1) == '*' && (depth == 0 || l.d == Postgres):
			depth++
			l.i += 2
		case l.at(0) == '*' && l.at(1) == '/':
			depth--
			l.i += 2
			if depth == 0 {
				return nil
			}
		default:
			l.i++
		}
	}
	return l.unclosed(start, "the comment")
}

func (l *lexer) next() error {
	start, c := l.i, l.s[l.i]
	switch {
	case c == '\'':
		return l.quotedRun(start, '\'', text, false)
	case c == '"':
		return l.quotedRun(start, '"', quoted, false)
	case l.d == SQLite && c == '`':
		return l.quotedRun(start, '`', quoted, false)
	case l.d == SQLite && c == '[':
		return l.bracketName(start)
	case isNameStart(c):
		return l.wordOrPrefixed(start)
	case isDigit(c) || c == '.' && isDigit(l.at(1)):
		l.number(start)
		return nil
	case c == '$':
		return l.dollar(start)
	case strings.IndexByte("()[],;.", c) >= 0:
		l.i++
		l.emit(mark, start, l.s[start:l.i])
		return nil
	case c == ':':
		l.colon(start)
		return nil
	case strings.IndexByte(operatorChars, c) >= 0:
		l.operators(start)
		return nil
	}
	return fmt.Errorf("the character %q at position %d is not SQL", c, start+1)
}

// quotedRun reads from a quote to its end; a doubled quote stands for one, and with
// escapes a backslash takes the next character with it.
func (l *lexer) quotedRun(start int, q byte, k kind, escapes bool) error {
	var b strings.Builder
	for l.i++; l.i < len(l.s); l.i++ {
		switch c := l.s[l.i]; {
		case escapes && c == '\\':
			l.i++
		case c == q && l.at(1) == q:
			l.i++
			b.WriteByte(q)
		case c == q:
			l.i++
			l.emit(k, start, b.String())
			return nil
		default:
			b.WriteByte(c)
		}
	}
	l.i = len(l.s)
	return l.unclosed(start, "the text in quotes")
}

func (l *lexer) bracketName(start int) error {
	n := strings.IndexByte(l.s[l.i:], ']')
	if n < 0 {
		return l.unclosed(start, "the name in brackets")
	}
	l.i += n + 1
	l.emit(quoted, start, l.s[start+1:l.i-1])
	return nil
}

// wordOrPrefixed reads a word, or one of the strings that begin with a letter.
func (l *lexer) wordOrPrefixed(start int) error {
	for l.i < len(l.s) && isNamePart(l.s[l.i]) {
		l.i++
	}
	w := l.s[start:l.i]
	if l.at(0) == '\'' && len(w) == 1 {
		switch w[0] | 0x20 {
		case 'e':
			if l.d == Postgres {
				return l.quotedRun(start, '\'', text, true)
			}
		case 'x', 'b', 'n':
			return l.quotedRun(start, '\'', text, false)
		}
	}
	if l.d == Postgres && strings.EqualFold(w, "u") && l.at(0) == '&' && (l.at(1) == '"' || l.at(1) == '\'') {
		return fmt.Errorf("text and names in the form U&... (position %d) are not available", start+1)
	}
	l.emit(word, start, w)
	return nil
}

// number reads generously: where a dialect ends a number earlier, the rest would be a
// word after a number, which neither accepts.
func (l *lexer) number(start int) {
	for l.i < len(l.s) && (isDigit(l.s[l.i]) || l.s[l.i] == '.' || l.s[l.i] == '_') {
		l.i++
	}
	if c := l.at(0) | 0x20; c == 'e' {
		sign := 0
		if l.at(1) == '+' || l.at(1) == '-' {
			sign = 1
		}
		if isDigit(l.at(1 + sign)) {
			for l.i += 1 + sign; l.i < len(l.s) && isDigit(l.s[l.i]); l.i++ {
			}
		}
	}
	l.emit(number, start, l.s[start:l.i])
}

// dollar reads PostgreSQL's $tag$ text $tag$, or a placeholder.
func (l *lexer) dollar(start int) error {
	l.i++
	for l.i < len(l.s) && (isNameStart(l.s[l.i]) || isDigit(l.s[l.i])) {
		l.i++
	}
	if l.d == SQLite || l.at(0) != '$' || isDigit(l.s[start+1]) {
		l.emit(foreign, start, l.s[start:l.i])
		return nil
	}
	l.i++
	tag := l.s[start:l.i]
	n := strings.Index(l.s[l.i:], tag)
	if n < 0 {
		return l.unclosed(start, "the text in "+tag)
	}
	body := l.s[l.i : l.i+n]
	l.i += n + len(tag)
	l.emit(text, start, body)
	return nil
}

func (l *lexer) colon(start int) {
	l.i++
	if l.d == SQLite && (isNameStart(l.at(0)) || isDigit(l.at(0))) {
		for l.i < len(l.s) && isNamePart(l.s[l.i]) {
			l.i++
		}
		l.emit(foreign, start, l.s[start:l.i])
		return
	}
	if l.at(0) == ':' || l.at(0) == '=' {
		l.i++
	}
	l.emit(mark, start, l.s[start:l.i])
}

// operators reads a run of operator characters up to a comment. An @ at its end that a
// name follows begins a placeholder; whether it really is one, where the run is longer
// (price<@p0), is decided with the parameters at hand, see splitPlaceholder.
func (l *lexer) operators(start int) {
	for l.i < len(l.s) && strings.IndexByte(operatorChars, l.s[l.i]) >= 0 {
		if l.i > start && (l.at(0) == '-' && l.at(1) == '-' || l.at(0) == '/' && l.at(1) == '*') {
			break
		}
		if l.d == SQLite && l.at(0) == '`' {
			break
		}
		l.i++
	}
	run := l.s[start:l.i]
	if run == "" { // a backtick right at the start is a quote, and was read as one
		l.i++
		return
	}
	if run[len(run)-1] == '@' && (isNameStart(l.at(0)) || isDigit(l.at(0))) {
		if len(run) > 1 {
			l.i--
			l.emit(operator, start, run[:len(run)-1])
			l.i++
		}
		at := l.i - 1
		for l.i < len(l.s) && isNamePart(l.s[l.i]) {
			l.i++
		}
		l.emit(param, at, l.s[at+1:l.i])
		return
	}
	if l.d == SQLite && strings.Contains(run, "?") {
		for l.i < len(l.s) && isDigit(l.s[l.i]) {
			l.i++
		}
		l.emit(foreign, start, l.s[start:l.i])
		return
	}
	l.emit(operator, start, run)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

func isNamePart(c byte) bool { return isNameStart(c) || isDigit(c) || c == '$' }
