package sqltext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParamError reports a placeholder without a value, or a value without a placeholder.
type ParamError struct {
	Name   string
	Unused bool
}

func (e *ParamError) Error() string {
	if e.Unused {
		return fmt.Sprintf("the parameter @%s was given but the statement does not use it", e.Name)
	}
	return fmt.Sprintf("the statement uses @%s, which was not given by AddInParameter", e.Name)
}

// rewrite replaces each @name by the number of its value, and returns the values in that
// order. A name that occurs twice is one value. Names are compared as written, without @.
func rewrite(d Dialect, sql string, tokens []token, params map[string]any) (string, []any, error) {
	values, err := normalise(params)
	if err != nil {
		return "", nil, err
	}
	if len(values) == 0 && !slices.ContainsFunc(tokens, func(t token) bool { return t.kind == param }) {
		return sql, nil, nil
	}
	sign := byte('?')
	if d == Postgres {
		sign = '$'
	}
	var b strings.Builder
	var args []any
	numbers := make(map[string]int, len(values))
	last := 0
	for i, t := range tokens {
		if t.kind != param || !isPlaceholder(d, tokens, i, values) {
			continue
		}
		v, ok := values[t.text]
		if !ok {
			return "", nil, &ParamError{Name: t.text}
		}
		n := numbers[t.text]
		if n == 0 {
			args = append(args, v)
			n = len(args)
			numbers[t.text] = n
		}
		b.WriteString(sql[last:t.start])
		// The blank keeps an operator before it (=@p0) from taking in the sign.
		b.WriteByte(' ')
		b.WriteByte(sign)
		b.WriteString(strconv.Itoa(n))
		last = t.end
	}
	b.WriteString(sql[last:])
	for name := range values {
		if numbers[name] == 0 {
			return "", nil, &ParamError{Name: name, Unused: true}
		}
	}
	return b.String(), args, nil
}

// isPlaceholder tells a placeholder from PostgreSQL's operators that end in @: after < or
// @ it is one only when its name was given as a parameter, so that both `price<@p0` and
// `span <@other` mean what their authors meant.
func isPlaceholder(d Dialect, tokens []token, i int, values map[string]any) bool {
	if d != Postgres || i == 0 {
		return true
	}
	before := tokens[i-1]
	if before.kind != operator || before.end != tokens[i].start {
		return true
	}
	switch before.text[len(before.text)-1] {
	case '<':
		_, given := values[tokens[i].text]
		return given
	case '@':
		return false
	}
	return true
}

func normalise(params map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(params))
	for name, v := range params {
		plain := strings.TrimPrefix(name, "@")
		if _, twice := out[plain]; twice {
			return nil, fmt.Errorf("the parameter @%s was given twice, with and without @", plain)
		}
		out[plain] = v
	}
	return out, nil
}
