package server

import (
	"net/url"
	"strings"

	"apiengine/fault"
)

// target says which API a path means: a key, an address, or the key in the body.
type target struct {
	key, path string
	run       bool   // POST /api/ApiEngine/Run
	tenant    string // of a --OsClient--<tenant>-- suffix; empty: none
}

const (
	keyPrefix    = "/apiengine/"
	runPath      = "/api/ApiEngine/Run"
	suffixMarker = "--OsClient--"
)

// targetOf reads the escaped path of u. Everything is matched as it was sent: no '..' is
// resolved, no slash merged, and nothing is ever redirected (S45).
func targetOf(u *url.URL) (target, error) {
	path := u.EscapedPath()
	if path == "" || path[0] != '/' {
		return target{}, refuse(fault.BadRequest, "the request target is no path")
	}
	path, tenant, err := cutTenant(path)
	if err != nil {
		return target{}, err
	}
	t := target{path: path, tenant: tenant}
	switch {
	case strings.EqualFold(path, runPath):
		t.path, t.run = "", true
	case hasPrefixFold(path, keyPrefix) && !strings.Contains(path[len(keyPrefix):], "/"):
		key, err := url.PathUnescape(path[len(keyPrefix):])
		if err != nil || key == "" {
			return target{}, refuse(fault.NotFound, "there is no API at %s", path)
		}
		t.path, t.key = "", key
	}
	return t, nil
}

// cutTenant takes a suffix --OsClient--<tenant>-- off path.
func cutTenant(path string) (rest, tenant string, err error) {
	i := indexFold(path, suffixMarker)
	if i < 0 {
		return path, "", nil
	}
	name := path[i+len(suffixMarker):]
	name, ended := strings.CutSuffix(name, "--")
	if !ended || name == "" || strings.Contains(name, "--") || strings.Contains(name, "/") {
		return "", "", refuse(fault.BadRequest, "the tenant suffix of the path must be --OsClient--<tenant>-- at its end")
	}
	if name, err = url.PathUnescape(name); err != nil {
		return "", "", refuse(fault.BadRequest, "the tenant suffix of the path is not well encoded")
	}
	return path[:i], name, nil
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// indexFold finds an ASCII text in any case; it allocates nothing when '--' is absent.
func indexFold(s, text string) int {
	for i := strings.Index(s, "--"); i >= 0 && i+len(text) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(text)], text) {
			return i
		}
	}
	return -1
}
