package server

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"apiengine/fault"
)

// defaultTenant is meant when nothing names one.
const defaultTenant = "default"

// tenantField is the query parameter and the header that name a tenant, in any case.
const tenantField = "OsClient"

// resolveTenant is the one place where a tenant is decided (contract 4.1): the path
// suffix, else the query, else the header, else the token's, else default. Names are
// compared in lower case, as they are stored. Two that differ are refused, and so is a
// token of another tenant. The name it returns beside an error is the best guess, good
// for CORS only.
func resolveTenant(suffix string, query url.Values, h http.Header, id Identity) (string, error) {
	named, err := namedTenant(suffix, query, h)
	switch own := strings.ToLower(id.Tenant); {
	case err != nil:
		return named, err
	case named == "":
		return cmp.Or(own, defaultTenant), nil
	case own == "" || own == named:
		return named, nil
	default:
		e := refuse(fault.Forbidden, "the token belongs to another tenant than %q", named)
		e.code = codeWrongTenant
		return named, e
	}
}

// namedTenant is what the request itself names; empty when it names none.
func namedTenant(suffix string, query url.Values, h http.Header) (string, error) {
	named := strings.ToLower(suffix)
	if named != "" && !saneTenant(named) {
		return defaultTenant, refuse(fault.BadRequest, "%q is no name of a tenant", suffix)
	}
	join := func(values []string) error {
		for _, v := range values {
			switch v = strings.ToLower(v); {
			case v == "":
			case !saneTenant(v):
				return refuse(fault.BadRequest, "%q is no name of a tenant", v)
			case named != "" && named != v:
				return refuse(fault.BadRequest, "the request names two tenants, %q and %q", named, v)
			default:
				named = v
			}
		}
		return nil
	}
	for name, values := range query {
		if strings.EqualFold(name, tenantField) {
			if err := join(values); err != nil {
				return defaultTenant, err
			}
		}
	}
	if err := join(h["Osclient"]); err != nil {
		return defaultTenant, err
	}
	return named, nil
}

func saneTenant(s string) bool {
	if len(s) == 0 || len(s) > 40 {
		return false
	}
	for _, c := range []byte(s) {
		if !isAlnum(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
