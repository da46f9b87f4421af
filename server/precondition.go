package server

import (
	"net/http"
	"strconv"
	"strings"

	"apiengine/fault"
)

// ifVersion is what a writing request demands of the live version: nil nothing, 0 that
// there is none, n that it is n.
func ifVersion(h http.Header) (*int, error) {
	match, none := h.Get("If-Match"), h.Get("If-None-Match")
	switch {
	case match == "" && none == "":
		return nil, nil
	case match != "" && none != "":
		return nil, refuse(fault.BadRequest, "If-Match and If-None-Match cannot both be sent")
	case none == "*":
		zero := 0
		return &zero, nil
	case none != "":
		return nil, refuse(fault.BadRequest, `a change takes If-None-Match: * only, which means "it must be new"`)
	}
	text, ok := strings.CutPrefix(match, `"`)
	text, ended := strings.CutSuffix(text, `"`)
	n, err := strconv.Atoi(text)
	if !ok || !ended || err != nil || n < 1 {
		return nil, refuse(fault.BadRequest, `If-Match must be one version in quotes, like "3", not %s`, match)
	}
	return &n, nil
}
