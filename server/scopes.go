package server

import (
	"slices"
	"strings"

	"apiengine/fault"
)

// The scopes of a token: what it may do beside calling APIs. An admin has all of them.
const (
	ScopeSubmit = "tasks:submit" // order tasks; see, cancel and retry those that run as the caller
	ScopeManage = "tasks:manage" // see, cancel and retry all tasks of the tenant
)

var knownScopes = []string{ScopeSubmit, ScopeManage}

// can reports whether the identity has a scope.
func (id Identity) can(scope string) bool {
	return id.may(RoleAdmin) || slices.Contains(id.Scopes, scope)
}

// checkScopes refuses scopes that do not exist.
func checkScopes(list []string) error {
	for _, s := range list {
		if !slices.Contains(knownScopes, s) {
			return refuse(fault.BadRequest, "Scopes: there is no scope %q, only %s", s, strings.Join(knownScopes, " and ")).with(map[string]any{"Field": "Scopes"})
		}
	}
	return nil
}
