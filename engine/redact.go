package engine

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// secretName matches the names of members whose values are kept out of logs.
var secretName = regexp.MustCompile(`(?i)passw|pwd|secret|token|authorization|api_?key|private_?key|credential|cookie|^pin$|card_?no|cvv`)

const redacted = "[redacted]"

// Redact returns the JSON text with the values of members that look secret replaced.
// Text that is not JSON is replaced as a whole.
func Redact(text json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	out, err := json.Marshal(redact(v))
	if err != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	return out
}

func redact(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if secretName.MatchString(name) {
				v[name] = redacted
			} else {
				v[name] = redact(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = redact(v[i])
		}
	}
	return v
}
