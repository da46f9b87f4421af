package jsbridge

import "strconv"

// topCode returns the number under the last "Code" key of an object's text, nil when it
// has none or when that is no number. The text must be valid.
func topCode(text string) *float64 {
	p := &jsonScan{s: text}
	if p.space(); p.pos >= len(text) || text[p.pos] != '{' {
		return nil
	}
	p.pos++
	var code *float64
	for more := !p.empty('}'); more; {
		p.space()
		key, _, err := p.str()
		if err != nil {
			return nil
		}
		p.space()
		p.pos++ // the colon
		p.space()
		start := p.pos
		if _, err := p.value(); err != nil {
			return nil
		}
		if key == "Code" {
			code = nil
			if f, err := strconv.ParseFloat(text[start:p.pos], 64); err == nil {
				code = &f
			}
		}
		if more, err = p.next('}'); err != nil {
			return nil
		}
	}
	return code
}
