package egress

import (
	"net/http"
	"slices"
	"strings"
)

// harmless headers follow a redirect to another host; so do ours.
var harmless = []string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}

// ours begins the headers by which servers of this kind know one another.
const ours = "X-Apiengine-"

// refusedHeaders belong to the connection or to the platform. Proxy-*, Sec-* and ours join them.
var refusedHeaders = []string{"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Via", "X-Fencing-Token"}

const defaultAgent = "apiengine"

// setHeader fills h with the author's headers and ours.
func setHeader(h http.Header, r Request) error {
	for name, value := range r.Header {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			return &RefusedError{What: "the header " + printable(name), Why: "the name has other characters than a header's"}
		case strings.ContainsFunc(value, isControl):
			return &RefusedError{What: "the header " + name, Why: "the value has control characters"}
		case slices.Contains(refusedHeaders, canonical), strings.HasPrefix(canonical, "Proxy-"), strings.HasPrefix(canonical, "Sec-"),
			strings.HasPrefix(canonical, ours):
			return &RefusedError{What: "the header " + name, Why: "it belongs to the connection or to the platform"}
		}
		h.Set(canonical, value)
	}
	for name, value := range r.Platform {
		h.Set(name, value)
	}
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", defaultAgent)
	}
	// net/http asks for gzip itself and unpacks it within the cap; any other coding would
	// come through packed.
	h.Del("Accept-Encoding")
	return nil
}

// isToken reports a header name of RFC 9110.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) || r == '\t' {
			return '?'
		}
		return r
	}, s[:min(len(s), 60)])
}
