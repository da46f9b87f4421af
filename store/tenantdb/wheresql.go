package tenantdb

import (
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"apiengine/store/tenantdb/internal/sqltext"
)

// builder writes one statement of FormEngine. Names come from the schema only, quoted;
// values become parameters only. It is so small that a library would be more to read:
// the conditions' text has to be ours in any case, for parentheses, nulls and patterns.
type builder struct {
	g    grammar
	sql  strings.Builder
	args []any
}

func (b *builder) add(parts ...string) *builder {
	for _, p := range parts {
		b.sql.WriteString(p)
	}
	return b
}

func (b *builder) arg(v any) *builder {
	b.args = append(b.args, v)
	return b.add(b.g.sign, strconv.Itoa(len(b.args)))
}

func (b *builder) statement(e sqltext.Effect) statement {
	// Not a script's text, but the authorizer may look at what it touches.
	return statement{Statement: sqltext.Statement{SQL: b.sql.String(), Args: b.args, Effect: e}}
}

// where writes the conditions, without WHERE.
func (b *builder) where(t *table, conditions []condition) error {
	for i, c := range conditions {
		if i > 0 {
			b.add(map[bool]string{true: " OR ", false: " AND "}[c.or])
		}
		b.add(strings.Repeat("(", c.open))
		col, ok := t.column(c.field)
		if !ok {
			return t.unknownColumn(c.field)
		}
		if err := b.condition(col, c); err != nil {
			return err
		}
		b.add(strings.Repeat(")", c.close))
		if len(b.args) > sqltext.MaxParams {
			return badCall("_Where has more than %d values", sqltext.MaxParams)
		}
	}
	return nil
}

func (b *builder) condition(col column, c condition) error {
	op := whereOps[strings.ToLower(c.op)]
	name := quote(col.name)
	switch {
	case op.list:
		return b.in(name, op.not, c)
	case c.value.IsObject() || c.value.IsArray():
		return badCall("_Where: the value for %s %s must not be an object or array", c.field, c.op)
	case c.value.Type == gjson.Null:
		if op.sql != "" && op.sql != "=" && op.sql != "<>" {
			return badCall("_Where: %s %s null means nothing", c.field, c.op)
		}
		b.null(name, op.not)
		return nil
	case op.pattern != "":
		b.like(col, op.not, strings.Replace(op.pattern, "v", likeEscape.Replace(c.value.String()), 1))
		return nil
	}
	b.add(name, " ", op.sql, " ").arg(jsonValue(c.value))
	return nil
}

func (b *builder) null(name string, not bool) {
	b.add(name, map[bool]string{true: " IS NOT NULL", false: " IS NULL"}[not])
}

// likeEscape takes their meaning from the characters that LIKE gives one.
var likeEscape = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

func (b *builder) like(col column, not bool, pattern string) {
	name := quote(col.name)
	if b.g.dialect == sqltext.Postgres && !isText(col.typ) {
		name = "CAST(" + name + " AS text)"
	}
	b.add(name, map[bool]string{true: " NOT ", false: " "}[not], b.g.like, " ").arg(pattern).add(` ESCAPE '\'`)
}

// in writes In and NotIn. A null among the values means IS [NOT] NULL; In of nothing is
// false, NotIn of nothing true.
func (b *builder) in(name string, not bool, c condition) error {
	values, err := listOf(c.value)
	if err != nil {
		return badCall("_Where: %s %s: %v", c.field, c.op, err)
	}
	b.inValues(name, not, values)
	return nil
}

func (b *builder) inValues(name string, not bool, values []any) {
	rest := values[:0:0]
	for _, v := range values {
		if v != nil {
			rest = append(rest, v)
		}
	}
	if len(values) == 0 {
		b.add(map[bool]string{true: "1 = 1", false: "1 = 0"}[not])
		return
	}
	b.add("(")
	if len(rest) > 0 {
		b.add(name, map[bool]string{true: " NOT", false: ""}[not], " IN (")
		for i, v := range rest {
			if i > 0 {
				b.add(", ")
			}
			b.arg(v)
		}
		b.add(")")
	}
	if len(rest) > 0 && len(rest) < len(values) {
		b.add(map[bool]string{true: " AND ", false: " OR "}[not])
	}
	if len(rest) < len(values) {
		b.null(name, not)
	}
	b.add(")")
}

// listOf reads the value of In: an array, the JSON text of one, `(1,'a')` as old scripts
// write it, or one value alone.
func listOf(v gjson.Result) ([]any, error) {
	if v.Type == gjson.String {
		s := strings.TrimSpace(v.Str)
		switch {
		case strings.HasPrefix(s, "[") && gjson.Valid(s):
			v = gjson.Parse(s)
		case strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")"):
			return oldList(s[1 : len(s)-1]), nil
		}
	}
	if !v.IsArray() {
		if v.IsObject() {
			return nil, badCall("an object is no list")
		}
		return []any{jsonValue(v)}, nil
	}
	items := v.Array()
	out := make([]any, len(items))
	for i, item := range items {
		if item.IsArray() || item.IsObject() {
			return nil, badCall("the list holds an object or array")
		}
		out[i] = jsonValue(item)
	}
	return out, nil
}

func oldList(s string) []any {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	var out []any
	for part := range strings.SplitSeq(s, ",") {
		out = append(out, strings.Trim(strings.TrimSpace(part), `'"`))
	}
	return out
}

// oldIDs reads the text of Ids: '1,2' is a list, as on the original platform.
func oldIDs(v gjson.Result) ([]any, error) {
	if s := strings.TrimSpace(v.Str); v.Type == gjson.String && !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "(") {
		return oldList(s), nil
	}
	return listOf(v)
}

// jsonValue is a JSON value as a parameter; objects and arrays are their JSON text.
func jsonValue(v gjson.Result) any {
	switch v.Type {
	case gjson.Null:
		return nil
	case gjson.True, gjson.False:
		return v.Bool()
	case gjson.String:
		return v.Str
	case gjson.Number:
		if n, err := strconv.ParseInt(v.Raw, 10, 64); err == nil {
			return n
		}
		if v.Num == math.Trunc(v.Num) && v.Num >= -1<<63 && v.Num < 1<<63 {
			return int64(v.Num) // with all its digits, in a text column too
		}
		return v.Num
	}
	return v.Raw
}

func isText(typ string) bool {
	switch typ {
	case "text", "varchar", "bpchar", "citext", "name":
		return true
	}
	return false
}
