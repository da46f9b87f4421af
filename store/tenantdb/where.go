package tenantdb

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// condition is one entry of a _Where, with the parentheses around it.
type condition struct {
	or          bool // joined to what is before it by OR; the first one's is of no account
	open, close int  // parentheses before and after
	field, op   string
	value       gjson.Result
}

// Limits of one _Where.
const (
	maxConditions = 1000
	maxNesting    = 32
)

// whereOps maps the names of operators, folded, to what they do.
var whereOps = map[string]struct {
	sql     string // of a comparison
	not     bool
	list    bool   // In
	pattern string // of LIKE, with v for the value
}{
	"=": {sql: "="}, "==": {sql: "="}, "equal": {sql: "="},
	"<>": {sql: "<>", not: true}, "!=": {sql: "<>", not: true}, "notequal": {sql: "<>", not: true},
	">": {sql: ">"}, ">=": {sql: ">="}, "<": {sql: "<"}, "<=": {sql: "<="},
	"in": {list: true}, "notin": {list: true, not: true},
	"like": {pattern: "%v%"}, "notlike": {pattern: "%v%", not: true},
	"startlike": {pattern: "v%"}, "notstartlike": {pattern: "v%", not: true},
	"endlike": {pattern: "%v"}, "notendlike": {pattern: "%v", not: true},
}

var whereOpNames = []string{"=", "==", "Equal", "<>", "!=", "NotEqual", ">", ">=", "<", "<=", "In", "NotIn",
	"Like", "NotLike", "StartLike", "NotStartLike", "EndLike", "NotEndLike"}

// parseWhere reads a _Where: an array whose entries are
//
//	[['AND'|'OR',] ['(',] field, op, value [, ')']]
//	{Name, Value, Type, AndOr, GroupStart, GroupEnd}
//	[entry, entry ...] and ['AND'|'OR', [entry, entry ...]], which are groups
//
// in any mixture, or one such entry alone, or the JSON text of one of these. AND binds
// tighter than OR, as in SQL.
func parseWhere(v gjson.Result) ([]condition, error) {
	if v.Type == gjson.String && strings.HasPrefix(strings.TrimSpace(v.Str), "[") && gjson.Valid(v.Str) {
		v = gjson.Parse(v.Str)
	}
	p := whereParser{}
	switch {
	case v.Type == gjson.Null:
		return nil, nil
	case v.IsObject(), v.IsArray() && isTuple(v.Array()):
		if err := p.entry(v, "_Where", 0); err != nil {
			return nil, err
		}
	case v.IsArray():
		if err := p.list(v.Array(), "_Where", 0); err != nil {
			return nil, err
		}
	default:
		return nil, badCall("_Where is not an array")
	}
	return p.out, balanced(p.out)
}

type whereParser struct{ out []condition }

// isTuple reports whether the array is a condition, not a list of them.
func isTuple(items []gjson.Result) bool { return len(items) > 0 && items[0].Type == gjson.String }

func (p *whereParser) list(items []gjson.Result, path string, depth int) error {
	if depth > maxNesting {
		return badCall("%s is nested deeper than %d", path, maxNesting)
	}
	for i, item := range items {
		if err := p.entry(item, fmt.Sprintf("%s[%d]", path, i), depth); err != nil {
			return err
		}
	}
	return nil
}

func (p *whereParser) entry(v gjson.Result, path string, depth int) error {
	if len(p.out) >= maxConditions {
		return badCall("_Where has more than %d conditions", maxConditions)
	}
	switch {
	case v.IsObject():
		return p.object(v, path)
	case !v.IsArray():
		return badCall("%s is neither an array nor an object", path)
	}
	items := v.Array()
	if !isTuple(items) {
		return p.group(items, false, path, depth)
	}
	or, joined := connector(items[0])
	if joined && len(items) == 2 && items[1].IsArray() {
		return p.group(items[1].Array(), or, path, depth)
	}
	return p.tuple(items, path)
}

func (p *whereParser) group(items []gjson.Result, or bool, path string, depth int) error {
	first := len(p.out)
	if err := p.list(items, path, depth+1); err != nil || len(p.out) == first {
		return err
	}
	p.out[first].or = or
	p.out[first].open++
	p.out[len(p.out)-1].close++
	return nil
}

func (p *whereParser) tuple(items []gjson.Result, path string) error {
	c := condition{}
	if or, ok := connector(items[0]); ok {
		c.or, items = or, items[1:]
	}
	for len(items) > 0 && isParen(items[0], '(') {
		c.open += len(strings.TrimSpace(items[0].Str))
		items = items[1:]
	}
	for len(items) > 3 && isParen(items[len(items)-1], ')') {
		c.close += len(strings.TrimSpace(items[len(items)-1].Str))
		items = items[:len(items)-1]
	}
	if len(items) != 3 || items[0].Type != gjson.String || items[1].Type != gjson.String {
		return badCall("%s is not [['AND'|'OR',] ['(',] field, op, value [, ')']]", path)
	}
	c.field, c.op, c.value = items[0].Str, items[1].Str, items[2]
	return p.add(c, path)
}

func (p *whereParser) object(v gjson.Result, path string) error {
	c := condition{op: "="}
	var err error
	v.ForEach(func(k, x gjson.Result) bool {
		switch k.Str {
		case "Name":
			c.field = x.String()
		case "Value":
			c.value = x
		case "Type":
			c.op = x.String()
		case "AndOr":
			or, ok := connector(x)
			if !ok && x.String() != "" {
				err = badCall("%s.AndOr is %s, not AND or OR", path, x.Raw)
			}
			c.or = or
		case "GroupStart":
			c.open = parens(x, '(')
		case "GroupEnd":
			c.close = parens(x, ')')
		default:
			err = badCall("%s has no %s%s", path, k.Str, meant(k.Str, []string{"Name", "Value", "Type", "AndOr", "GroupStart", "GroupEnd"}))
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if !c.value.Exists() {
		return badCall("%s has no Value; null means IS NULL", path)
	}
	return p.add(c, path)
}

func (p *whereParser) add(c condition, path string) error {
	if c.field == "" {
		return badCall("%s names no field", path)
	}
	if _, ok := whereOps[strings.ToLower(c.op)]; !ok {
		return badCall("%s: there is no operator %q%s", path, c.op, meant(c.op, whereOpNames))
	}
	p.out = append(p.out, c)
	return nil
}

func connector(v gjson.Result) (or, ok bool) {
	if v.Type != gjson.String {
		return false, false
	}
	switch strings.ToUpper(strings.TrimSpace(v.Str)) {
	case "AND":
		return false, true
	case "OR":
		return true, true
	}
	return false, false
}

// isParen reports whether v is a text of nothing but parens ("(", "((" ...).
func isParen(v gjson.Result, paren byte) bool {
	s := strings.TrimSpace(v.Str)
	return v.Type == gjson.String && s != "" && strings.Trim(s, string(paren)) == ""
}

// parens is the number of parentheses that a GroupStart or GroupEnd means: true or "(" one.
func parens(v gjson.Result, paren byte) int {
	if isParen(v, paren) {
		return len(strings.TrimSpace(v.Str))
	}
	if v.Bool() {
		return 1
	}
	return 0
}

func balanced(conditions []condition) error {
	depth := 0
	for _, c := range conditions {
		depth += c.open
		if depth -= c.close; depth < 0 {
			return badCall("_Where closes a parenthesis that was not opened, after %s", c.field)
		}
	}
	if depth > 0 {
		return badCall("_Where leaves %d parentheses open", depth)
	}
	return nil
}
