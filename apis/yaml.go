package apis

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxBrackets bounds how deep a settings text may open brackets, before the YAML parser,
// whose time grows with the square of it, sees the text.
const maxBrackets = 10 * maxNesting

// readSettings fills d from the YAML of the settings and returns the token of each field
// that is set, for the positions of what Validate finds.
func readSettings(d *Definition, source string, p *problems) map[string]*token.Token {
	if deepest(source) > maxBrackets {
		p.add("", "the settings are nested too deep")
		return nil
	}
	file, err := parseYAML(source)
	if err != nil {
		p.yaml(err)
		return nil
	}
	set := map[string]*token.Token{}
	for i, doc := range file.Docs {
		switch body := doc.Body.(type) {
		case nil:
		case *ast.MappingNode:
			if i > 0 {
				p.at(firstToken(body), "", "the settings must be one YAML document, without a line ---")
				continue
			}
			for _, pair := range body.Values {
				readPair(d, pair, set, p)
			}
		default:
			p.at(body.GetToken(), "", "the settings must be lines of the form Name: value")
		}
	}
	return set
}

// parseYAML keeps a panic of the parser, which has had some, from ending a server that
// watches a folder.
func parseYAML(source string) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser failed: %v", r)
		}
	}()
	return parser.ParseBytes([]byte(source), 0, parser.AllowDuplicateMapKey())
}

func firstToken(m *ast.MappingNode) *token.Token {
	if len(m.Values) > 0 {
		return m.Values[0].Key.GetToken()
	}
	return m.GetToken()
}

func readPair(d *Definition, pair *ast.MappingValueNode, set map[string]*token.Token, p *problems) {
	key := pair.Key.GetToken()
	name := key.Value
	f, known := fieldByName(name)
	_, isText := pair.Key.(*ast.StringNode)
	switch {
	case name == "ApiV8Code":
		p.at(key, name, "is what follows the settings; it cannot be set in them")
	case name == "Version" || name == "ChangeHistory":
		p.at(key, name, "is read-only: every save makes a version; leave it out")
	case !known || !isText:
		p.at(key, clip(name), unknownField(name))
	case set[name] != nil:
		p.at(key, name, fmt.Sprintf("is there twice, first in line %d", set[name].Position.Line))
	default:
		set[name] = key
		if pair.Value == nil || pair.Value.Type() == ast.NullType {
			return // no value is the default
		}
		p.node(name, f, pair.Value, f.set(d, pair.Value))
	}
}

var errType = errors.New("of another type")

// nodeError is what is wrong inside a value. Its text reads on after the field's name.
type nodeError struct {
	at  *token.Token
	msg string
}

func (e *nodeError) Error() string { return e.msg }

// node adds what a field's set returned.
func (p *problems) node(name string, f field, value ast.Node, err error) {
	var inner *nodeError
	switch {
	case errors.As(err, &inner):
		p.at(inner.at, name, inner.msg)
	case err != nil:
		p.at(value.GetToken(), name, "must be "+f.want)
	}
}

// at adds a problem at a token's place in the settings.
func (p *problems) at(tk *token.Token, field, msg string) {
	e := &FieldError{Field: field, Msg: msg}
	if tk != nil && tk.Position != nil {
		e.Line, e.Column = tk.Position.Line, tk.Position.Column
	}
	p.list = append(p.list, e)
}

func (p *problems) yaml(err error) {
	var y yaml.Error
	if errors.As(err, &y) {
		p.at(y.GetToken(), "", "the settings are not valid YAML: "+y.GetMessage())
		return
	}
	p.add("", "the settings are not valid YAML: %v", err)
}

// textOf is the value of a text node. A number or true is none: which text it stands for
// would be a guess.
func textOf(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	}
	return "", errType
}

func intOf(n ast.Node) (int, error) {
	if _, ok := n.(*ast.IntegerNode); !ok {
		return 0, errType
	}
	return strconv.Atoi(n.GetToken().Value)
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// appendJSON writes a YAML value as JSON. Numbers keep their digits. What has no JSON
// form, or another one than it seems, is refused.
func appendJSON(b []byte, n ast.Node, depth int) ([]byte, error) {
	if depth > maxNesting {
		return nil, &nodeError{n.GetToken(), fmt.Sprintf("must be nested at most %d deep", maxNesting)}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return appendObject(b, n, depth)
	case *ast.SequenceNode:
		b = append(b, '[')
		for i, item := range n.Values {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendJSON(b, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case *ast.NullNode:
		return append(b, "null"...), nil
	case *ast.BoolNode:
		return strconv.AppendBool(b, n.Value), nil
	}
	return appendScalar(b, n)
}

func appendScalar(b []byte, n ast.Node) ([]byte, error) {
	tk := n.GetToken()
	_, quoted := n.(*ast.LiteralNode)
	quoted = quoted || tk.Type == token.DoubleQuoteType || tk.Type == token.SingleQuoteType
	if !quoted && jsonNumber.MatchString(tk.Value) {
		return append(b, tk.Value...), nil
	}
	if s, err := textOf(n); err == nil {
		return append(b, quoteJSON(s)...), nil
	}
	return nil, &nodeError{tk, fmt.Sprintf("has %q, which is no JSON value", clip(tk.Value))}
}

func appendObject(b []byte, n *ast.MappingNode, depth int) ([]byte, error) {
	b = append(b, '{')
	for i, pair := range n.Values {
		if i > 0 {
			b = append(b, ',')
		}
		name, ok := pair.Key.(*ast.StringNode)
		if !ok {
			return nil, &nodeError{pair.Key.GetToken(), "has a name that is not text; put it in quotes"}
		}
		b = append(append(b, quoteJSON(name.Value)...), ':')
		var err error
		if b, err = appendJSON(b, pair.Value, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

var dashes = regexp.MustCompile(`(?m)^\s*(- +)+`)

// deepest is how many brackets are open at most, whatever quotes they stand in, or how
// many lists one line opens by dashes.
func deepest(s string) int {
	open, most := 0, 0
	for _, r := range s {
		switch r {
		case '[', '{':
			open++
			most = max(most, open)
		case ']', '}':
			open = max(0, open-1)
		}
	}
	for _, chain := range dashes.FindAllString(s, -1) {
		most = max(most, strings.Count(chain, "-"))
	}
	return most
}
