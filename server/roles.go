package server

import "slices"

// Role is what a route of the admin API asks for. The order is that of their rights.
type Role int

// The roles: a viewer reads definitions, an author writes and tests them, an admin does
// everything else too. Only an admin of every tenant may touch the list of tenants.
const (
	RoleViewer Role = iota + 1
	RoleAuthor
	RoleAdmin
)

var roleNames = map[string]Role{"viewer": RoleViewer, "author": RoleAuthor, "admin": RoleAdmin}

// may reports whether the identity has role, or a higher one, on the admin API.
func (id Identity) may(role Role) bool {
	return !id.NoAdmin && slices.ContainsFunc(id.Roles, func(name string) bool { return roleNames[name] >= role })
}

func (r Role) String() string {
	for name, n := range roleNames {
		if n == r {
			return name
		}
	}
	return "nobody"
}
