package apis

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	tenantMark  = "--osclient--" // the server takes it off an address
	maxAddress  = 255
	maxSegments = 32
)

// reserved are the first segments of addresses that are the platform's own. Below
// apiengine only what is longer than /apiengine/{key} may be used.
var reserved = []string{"admin", "api", "console", "debug", "healthz", "metrics", "openapi.json", "readyz"}

const ownPrefix = "/apiengine/"

// segment is one part of an address: a literal in lower case, or a {name}.
type segment struct {
	text  string
	param bool
}

// address is a parsed ApiAddress.
type address []segment

// names are those of the {name} segments, in order.
func (a address) names() []string {
	var out []string
	for _, s := range a {
		if s.param {
			out = append(out, s.text)
		}
	}
	return out
}

// ownAddress reports whether ApiAddress is the one that every API has anyway: it is
// accepted, as definitions of the original platform name it, and needs no route.
func (d *Definition) ownAddress() bool {
	return strings.EqualFold(d.ApiAddress, ownPrefix+d.ApiEngineKey)
}

// parseAddress reads an ApiAddress. The error's text reads on after the field's name.
func parseAddress(s string) (address, error) {
	switch {
	case len(s) > maxAddress:
		return nil, fmt.Errorf("must be at most %d bytes, not %d", maxAddress, len(s))
	case !utf8.ValidString(s):
		return nil, fmt.Errorf("must be valid UTF-8")
	case !strings.HasPrefix(s, "/"):
		return nil, fmt.Errorf("must begin with '/', not %q", clip(s))
	case strings.Contains(strings.ToLower(s), tenantMark):
		return nil, fmt.Errorf("must not contain --OsClient--, which names the tenant")
	}
	parts := strings.Split(s[1:], "/")
	if len(parts) > maxSegments {
		return nil, fmt.Errorf("must have at most %d segments, not %d", maxSegments, len(parts))
	}
	var a address
	for _, part := range parts {
		seg, err := parseSegment(part)
		if err != nil {
			return nil, fmt.Errorf("%q %w", clip(s), err)
		}
		if seg.param && slices.Contains(a.names(), seg.text) {
			return nil, fmt.Errorf("%q has {%s} twice", clip(s), seg.text)
		}
		a = append(a, seg)
	}
	return a, a.checkReserved(s)
}

func (a address) checkReserved(s string) error {
	first := a[0]
	switch {
	case !first.param && slices.Contains(reserved, first.text):
		return fmt.Errorf("%q is under /%s, which is the platform's own", clip(s), first.text)
	case !first.param && first.text == "apiengine" && len(a) < 3:
		return fmt.Errorf("%q is where APIs are called by their key; use another prefix, or a longer address", clip(s))
	}
	return nil
}

// parseSegment accepts what needs no encoding in a path. Everything that could be read
// in two ways is refused: dots, empty segments, percent signs, regular expressions.
func parseSegment(part string) (segment, error) {
	switch {
	case part == "":
		return segment{}, fmt.Errorf("has an empty segment: no '//', and no '/' at the end")
	case part == "." || part == "..":
		return segment{}, fmt.Errorf("must not contain %q as a segment", part)
	case strings.ContainsAny(part, "{}"):
		name, opened := strings.CutPrefix(part, "{")
		name, closed := strings.CutSuffix(name, "}")
		if !opened || !closed || !isParamName(name) {
			return segment{}, fmt.Errorf("has the segment %q: a {name} stands alone between slashes and is a letter followed by letters, digits and '_'", clip(part))
		}
		return segment{text: name, param: true}, nil
	}
	for _, r := range part {
		if !isPathRune(r) {
			return segment{}, fmt.Errorf("has the character %q, which an address cannot have; write other letters as they are, without percent signs", r)
		}
	}
	return segment{text: strings.ToLower(part)}, nil
}

func isParamName(s string) bool {
	for i, r := range s {
		letter := r|0x20 >= 'a' && r|0x20 <= 'z'
		if !letter && (i == 0 || (r != '_' && (r < '0' || r > '9'))) {
			return false
		}
	}
	return s != ""
}

func isPathRune(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	case r < utf8.RuneSelf:
		return strings.ContainsRune("-._~!$&'()+,;=:@", r)
	}
	return isVisible(r)
}

// splitPath cuts a request's escaped path into decoded segments. ok is false for a path
// that no address can mean: an empty or dot segment, bad escapes, the platform's own.
func splitPath(path string) (segments []string, ok bool) {
	if len(path) < 2 || path[0] != '/' || strings.Count(path, "/") > maxSegments {
		return nil, false
	}
	segments = strings.Split(path[1:], "/")
	for i, s := range segments {
		if strings.IndexByte(s, '%') >= 0 {
			plain, err := url.PathUnescape(s)
			if err != nil {
				return nil, false
			}
			s, segments[i] = plain, plain
		}
		if s == "" || s == "." || s == ".." || !utf8.ValidString(s) {
			return nil, false
		}
	}
	return segments, !slices.Contains(reserved, strings.ToLower(segments[0]))
}
