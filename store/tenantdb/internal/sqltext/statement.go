package sqltext

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Effect is what a statement does.
type Effect int

// The effects.
const (
	Reads   Effect = iota
	Writes         // rows
	Defines        // tables, columns, indexes
)

// Reserved is how the names of the platform's own tables begin. Nothing outside the
// platform may name one, whatever its case or quotes.
const Reserved = "_apiengine_"

// MaxSQL and MaxParams bound one statement: bytes of text, values.
const (
	MaxSQL    = 1 << 20
	MaxParams = 30000
)

// Rules say who wrote the statement.
type Rules struct {
	Dialect Dialect
	Admin   bool // an administrator: functions, triggers and extensions may be defined
}

// Statement is one statement that may be sent.
type Statement struct {
	SQL    string // with numbered placeholders, without a semicolon at its end
	Args   []any  // their values
	Effect Effect
	// Apart is SQL with a number of its own for each placeholder, and Repeats the places of
	// their values in Args. For PostgreSQL, where a name occurs twice: it wants one type for
	// `$1 IS NULL OR name = $1` and cannot find it.
	Apart   string
	Repeats []int
	Changes bool // it inserts, updates or deletes rows: the number of rows changed means something
}

// RefusedError reports a statement that is not sent to the database.
type RefusedError struct {
	What string // the word, function or table
	Why  string // may be empty
}

func (e *RefusedError) Error() string {
	if e.Why == "" {
		return e.What + " is not available to scripts"
	}
	return e.What + " is not available to scripts: " + e.Why
}

func refuse(what, why string) error { return &RefusedError{What: what, Why: why} }

// Parse checks one statement by the rules and puts its parameters in their places. Names
// in params may begin with @ or not. The error is a *RefusedError, a *ParamError, or says
// what in the text cannot be read.
func Parse(r Rules, sql string, params map[string]any) (Statement, error) {
	if len(sql) > MaxSQL {
		return Statement{}, fmt.Errorf("the statement has %d bytes, at most %d are allowed", len(sql), MaxSQL)
	}
	if len(params) > MaxParams {
		return Statement{}, fmt.Errorf("the statement has %d parameters, at most %d are allowed", len(params), MaxParams)
	}
	tokens, err := scan(r.Dialect, sql)
	if err != nil {
		return Statement{}, err
	}
	for len(tokens) > 0 && tokens[len(tokens)-1].text == ";" && tokens[len(tokens)-1].kind == mark {
		tokens = tokens[:len(tokens)-1]
	}
	if len(tokens) == 0 {
		return Statement{}, errors.New("the statement is empty")
	}
	st, err := r.classify(tokens)
	if err != nil {
		return Statement{}, err
	}
	return st, st.rewrite(r.Dialect, sql[:tokens[len(tokens)-1].end], tokens, params)
}

func (r Rules) classify(tokens []token) (Statement, error) {
	verb, at := mainVerb(tokens)
	effect, known := verbs[r.Dialect][verb]
	if !known {
		return Statement{}, refuse(strings.ToUpper(cmp.Or(verb, tokens[0].text)), reasons[verb])
	}
	if verb == "explain" {
		inner, rest := Statement{}, afterExplain(tokens[at+1:])
		var err error
		if len(rest) == 0 {
			return Statement{}, errors.New("EXPLAIN of nothing")
		}
		if inner, err = r.classify(rest); err != nil {
			return Statement{}, err
		}
		effect = inner.Effect // EXPLAIN ANALYZE runs it
	}
	if effect == Defines && verb != "explain" {
		if err := r.checkObject(verb, tokens[at+1:]); err != nil {
			return Statement{}, err
		}
	}
	st := Statement{Effect: effect, Changes: effect == Writes && verb != "explain"}
	if r.Dialect == Postgres && effect == Reads && changesInside(tokens) {
		st.Effect = Writes // WITH x AS (DELETE ... RETURNING) SELECT, or SELECT INTO
	}
	return st, r.checkTokens(tokens, st.Effect)
}

// mainVerb is the word that says what the statement does: the first one, or after WITH the
// first verb outside parentheses.
func mainVerb(tokens []token) (verb string, at int) {
	for at < len(tokens) && tokens[at].kind == mark && tokens[at].text == "(" {
		at++ // (SELECT ...) UNION (SELECT ...)
	}
	if at == len(tokens) || tokens[at].kind != word {
		return "", 0
	}
	if !tokens[at].is("with") {
		return strings.ToLower(tokens[at].text), at
	}
	depth := 0
	for i, t := range tokens[at:] {
		switch {
		case t.kind == mark && t.text == "(":
			depth++
		case t.kind == mark && t.text == ")":
			depth--
		case depth <= 0 && t.kind == word && slices.Contains(withVerbs, strings.ToLower(t.text)):
			return strings.ToLower(t.text), at + i
		}
	}
	return "with", at
}

var withVerbs = []string{"select", "insert", "update", "delete", "replace", "merge", "values", "table"}

// afterExplain passes over QUERY PLAN, ANALYZE, VERBOSE and (options).
func afterExplain(tokens []token) []token {
	if len(tokens) > 0 && tokens[0].text == "(" && tokens[0].kind == mark {
		for i, t := range tokens {
			if t.text == ")" && t.kind == mark {
				return tokens[i+1:]
			}
		}
		return nil
	}
	for len(tokens) > 0 && (tokens[0].is("query") || tokens[0].is("plan") || tokens[0].is("analyze") || tokens[0].is("verbose")) {
		tokens = tokens[1:]
	}
	return tokens
}

func (r Rules) checkObject(verb string, tokens []token) error {
	if verb == "comment" {
		return nil
	}
	for _, t := range tokens {
		w := strings.ToLower(t.text)
		switch {
		case t.kind == word && (objects[r.Dialect][w] || r.Admin && adminObjects[r.Dialect][w]):
			return nil
		case t.kind == word && between[w]:
			continue
		}
		return refuse(strings.ToUpper(verb+" "+t.text), reasons[w])
	}
	return nil // too short: the database will say so
}

// changesInside reports whether a word that changes rows or makes a table occurs.
func changesInside(tokens []token) bool {
	for i, t := range tokens {
		if t.kind != word || i > 0 && tokens[i-1].text == "." {
			continue
		}
		switch strings.ToLower(t.text) {
		case "insert", "delete", "merge", "into":
			return true
		case "update": // but not FOR UPDATE, FOR NO KEY UPDATE
			if i == 0 || !tokens[i-1].is("for") && !tokens[i-1].is("key") {
				return true
			}
		}
	}
	return false
}

func (r Rules) checkTokens(tokens []token, effect Effect) error {
	for i, t := range tokens {
		next := token{}
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		if err := r.checkToken(t, next, effect); err != nil {
			return err
		}
		if r.Dialect == Postgres && t.is("into") && (next.is("temp") || next.is("temporary") || next.is("local") || next.is("global")) {
			return refuse("INTO "+strings.ToUpper(next.text), temporaryReason)
		}
	}
	return nil
}

func (r Rules) checkToken(t, next token, effect Effect) error {
	if t.kind == mark && t.text == ";" {
		return errors.New("only one statement a call: there is more after the semicolon")
	}
	if t.kind == foreign || r.Dialect == SQLite && t.kind == operator && strings.Contains(t.text, "?") {
		return fmt.Errorf("the placeholder %s is not available: write @name and give it by AddInParameter('@name', value)", t.text)
	}
	name, ok := t.name()
	if !ok {
		return nil
	}
	called := next.kind == mark && next.text == "("
	switch {
	case strings.HasPrefix(name, Reserved):
		return refuse(t.text, "it belongs to the platform")
	case called && isForbidden(r.Dialect, name):
		return refuse("the function "+name, "")
	case r.Dialect == Postgres && strings.HasPrefix(name, "pg_"):
		return checkPg(name, called, effect)
	case r.Dialect == Postgres && name == "information_schema" && effect != Reads:
		return refuse("information_schema", "it can only be read")
	}
	return nil
}

func checkPg(name string, called bool, effect Effect) error {
	switch {
	case called && pgFunctions[name]:
		return nil
	case called && !pgRelations[name]:
		return refuse("the function "+name, "")
	case !pgRelations[name]:
		return refuse("the name "+name, "names that begin with pg_ belong to PostgreSQL")
	case effect != Reads:
		return refuse(name, "it can only be read")
	}
	return nil
}
