package engine

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"apiengine/apis"
	"apiengine/fault"
)

// cleanParam returns the parameters as the script may see them: an address's values on
// top, and the names that only the platform may set taken out, in any case, for every
// call that is not the platform's own (contract.md section 2).
func cleanParam(param json.RawMessage, values map[string]string, o Origin) (json.RawMessage, error) {
	if param = bytes.TrimLeft(param, " \t\r\n"); len(param) == 0 {
		param = json.RawMessage("{}")
	}
	if param[0] != '{' {
		return nil, fault.New(fault.BadRequest, "the parameters must be a JSON object")
	}
	if len(values) == 0 && !mayHoldReserved(param) {
		return param, nil
	}
	over := map[string]json.RawMessage{}
	for name, v := range values {
		if text, err := json.Marshal(v); err == nil { // a string always can be
			over[name] = text
		}
	}
	return Overlay(over, param, reserved), nil
}

// mayHoldReserved is a cheap look: a reserved name starts with an underscore, which JSON
// can also write as an escape.
func mayHoldReserved(param []byte) bool {
	return bytes.Contains(param, []byte(`"_`)) || bytes.Contains(param, []byte(`"\`))
}

// reserved reports whether a parameter's name belongs to the platform.
func reserved(name string) bool {
	if !strings.HasPrefix(name, "_") {
		return false
	}
	n := strings.ToLower(name)
	return n == "_trustedserverinvocation" || n == "_currentuser" || n == "_invoketype" ||
		strings.HasPrefix(n, "_backgroundtask")
}

// Overlay returns the JSON object with the members of top and those of the object base
// that top does not have and drop does not name. Members of base keep their text.
func Overlay(top map[string]json.RawMessage, base json.RawMessage, drop func(name string) bool) json.RawMessage {
	out := make([]byte, 0, len(base)+64)
	add := func(name, text string) {
		if len(out) == 0 {
			out = append(out, '{')
		} else {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), text...)
	}
	for _, name := range sortedKeys(top) {
		text := top[name]
		quoted, _ := json.Marshal(name) // a string always can be
		add(string(quoted), string(text))
	}
	gjson.ParseBytes(base).ForEach(func(k, v gjson.Result) bool {
		if _, taken := top[k.Str]; !taken && (drop == nil || !drop(k.Str)) {
			add(k.Raw, v.Raw)
		}
		return true
	})
	if len(out) == 0 {
		return json.RawMessage("{}")
	}
	return append(out, '}')
}

// lockValue returns what the API's LockKey names in the parameters. Several names give
// one value in which no two combinations can be taken for each other. A missing, null or
// empty value is lock_key_missing: never a silent wider lock.
func lockValue(d *apis.Definition, param json.RawMessage) (string, error) {
	if d.LockKey == "" {
		return "", nil
	}
	names := strings.Split(d.LockKey, ",")
	parts := make([]string, len(names))
	for i, name := range names {
		name = strings.TrimSpace(name)
		v, found := lookup(gjson.ParseBytes(param), name)
		switch {
		case !found || v.Type == gjson.Null || (v.Type == gjson.String && v.Str == ""):
			return "", &fault.Error{K: fault.LockKeyMissing, Msg: "the parameter " + name + " is missing or empty: it says which lock the call needs",
				Fields: map[string]any{"Field": name}}
		case v.Type == gjson.JSON:
			return "", &fault.Error{K: fault.BadRequest, Msg: "the parameter " + name + " must be a string, a number or a bool: it says which lock the call needs",
				Fields: map[string]any{"Field": name}}
		case v.Type == gjson.String:
			parts[i] = v.Str
		case v.Type == gjson.Number:
			parts[i] = numberText(v.Raw)
		default:
			parts[i] = v.Raw
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	for i, p := range parts {
		parts[i] = strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(p)
	}
	return strings.Join(parts, ","), nil
}

// numberText is a number as a script would print it: 1, 1.0 and 1e0 are one number, so
// they are one lock. Whole numbers stay as they are written, whatever their size.
func numberText(raw string) string {
	if !strings.ContainsAny(raw, ".eE") && raw != "-0" {
		return raw
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return raw // larger than any double
	}
	if f == 0 {
		return "0" // -0 too
	}
	text, _ := json.Marshal(f) // a finite number always can be
	return string(text)
}

// lookup follows a dotted name into objects. Of a name that stands twice the last counts,
// as for the script.
func lookup(v gjson.Result, name string) (found gjson.Result, ok bool) {
	for part := range strings.SplitSeq(name, ".") {
		if !v.IsObject() {
			return gjson.Result{}, false
		}
		ok = false
		v.ForEach(func(k, member gjson.Result) bool {
			if k.Str == part {
				found, ok = member, true
			}
			return true
		})
		if !ok {
			return gjson.Result{}, false
		}
		v = found
	}
	return found, ok
}
