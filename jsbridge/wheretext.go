package jsbridge

import (
	"encoding/json"
	"slices"
	"strings"
)

// whereObject is a condition in the form that came before arrays.
type whereObject struct {
	Name       string
	Value      json.RawMessage
	Type       string
	AndOr      string `json:",omitempty"`
	GroupStart bool   `json:",omitempty"`
	GroupEnd   bool   `json:",omitempty"`
}

// parseWhere turns [[['AND'|'OR',] ['(',] field, op, value [, ')']] ...] into objects. What
// is an object already stays. The FormEngine takes either form; this is for scripts that
// look at conditions themselves.
func parseWhere(where json.RawMessage) (any, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(where, &items); err != nil || items == nil {
		return nil, argErrorf("V8.Method.ParseWhere: argument \"where\" must be an array")
	}
	out := make([]any, len(items))
	for i, item := range items {
		if len(item) > 0 && item[0] == '{' {
			out[i] = item
			continue
		}
		o, ok := whereTuple(item)
		if !ok {
			return nil, argErrorf("V8.Method.ParseWhere: entry %d is not [['AND'|'OR',] ['(',] field, op, value [, ')']]", i)
		}
		out[i] = o
	}
	return jsonOf(out)
}

func whereTuple(item json.RawMessage) (o whereObject, ok bool) {
	var parts []json.RawMessage
	if json.Unmarshal(item, &parts) != nil || len(parts) < 3 {
		return o, false
	}
	word := func(at int, allowed ...string) string {
		text := strings.ToUpper(strings.TrimSpace(textOf(parts[at])))
		if slices.Contains(allowed, text) {
			return text
		}
		return ""
	}
	if o.AndOr = word(0, "AND", "OR"); o.AndOr != "" {
		parts = parts[1:]
	}
	if len(parts) > 3 && word(0, "(") != "" {
		o.GroupStart, parts = true, parts[1:]
	}
	if len(parts) > 3 && word(len(parts)-1, ")") != "" {
		o.GroupEnd, parts = true, parts[:len(parts)-1]
	}
	if len(parts) != 3 || json.Unmarshal(parts[0], &o.Name) != nil || json.Unmarshal(parts[1], &o.Type) != nil {
		return o, false
	}
	o.Value = parts[2]
	return o, true
}
