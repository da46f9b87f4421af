package sqltext

import (
	"fmt"
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

// place is where a placeholder stands, and the number of its value.
type place struct{ start, end, number int }

// rewrite replaces each @name by the number of its value, and gives the values in that
// order. A name that occurs twice is one value. Names are compared as written, without @.
func (st *Statement) rewrite(d Dialect, sql string, tokens []token, params map[string]any) error {
	values, err := normalise(params)
	if err != nil {
		return err
	}
	numbers := make(map[string]int, len(values))
	var places []place
	for i, t := range tokens {
		if t.kind != param || !isPlaceholder(d, tokens, i, values) {
			continue
		}
		v, ok := values[t.text]
		if !ok {
			return &ParamError{Name: t.text}
		}
		if numbers[t.text] == 0 {
			st.Args = append(st.Args, v)
			numbers[t.text] = len(st.Args)
		}
		places = append(places, place{t.start, t.end, numbers[t.text]})
	}
	for name := range values {
		if numbers[name] == 0 {
			return &ParamError{Name: name, Unused: true}
		}
	}
	st.SQL = numbered(d, sql, places)
	if d == Postgres && len(places) > len(st.Args) {
		for i := range places {
			st.Repeats = append(st.Repeats, places[i].number-1)
			places[i].number = i + 1
		}
		st.Apart = numbered(d, sql, places)
	}
	return nil
}

// numbered is sql with numbers at its places.
func numbered(d Dialect, sql string, places []place) string {
	if len(places) == 0 {
		return sql
	}
	sign := byte('?')
	if d == Postgres {
		sign = '$'
	}
	var b strings.Builder
	last := 0
	for _, p := range places {
		b.WriteString(sql[last:p.start])
		// The blank keeps an operator before it (=@p0) from taking in the sign.
		b.WriteByte(' ')
		b.WriteByte(sign)
		b.WriteString(strconv.Itoa(p.number))
		last = p.end
	}
	b.WriteString(sql[last:])
	return b.String()
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
