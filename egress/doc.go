// Package egress is the way out: the HTTP client for addresses that scripts name, which
// must not reach what stands behind the server's own firewall.
//
// Every connection is judged when it is made, by the address that the name has resolved to
// and that is connected to: a name that changes its mind in between, a redirect, a number
// in an odd notation and an address inside another (mapped, NAT64, 6to4, Teredo) all come
// down to that one check. Public addresses are reached, all others only where the
// administrator allows them; the server's own listener never.
package egress
