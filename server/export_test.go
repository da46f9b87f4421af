package server

import "slices"

// AdminRoutes are the method and path of each admin route, sorted.
func AdminRoutes(s *Server) []string {
	var out []string
	for _, r := range s.adminRoutes() {
		out = append(out, r.method+" "+AdminPrefix+r.path)
	}
	slices.Sort(out)
	return out
}
