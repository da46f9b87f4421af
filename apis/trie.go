package apis

import (
	"fmt"
	"strings"
)

// node is one place in a tenant's tree of addresses. Addresses are the tenants' data, not
// code, and that is why a router library does not fit: chi panics on a bad pattern and
// lets a second pattern of the same shape replace the first, net/http's mux panics on a
// conflict and minds case, neither forgets a route, and both would take the server's own
// prefixes into the same table. Here a literal is compared in any case, a conflict is an
// error that names both, and matching only reads.
type node struct {
	literals map[string]*node // by text in lower case
	param    *node
	key      string   // of the API that ends here, in lower case; empty: none
	names    []string // of the {name} segments on the way to that API
}

// shapeError says that another API has an address of the same shape.
type shapeError struct{ key string }

func (e *shapeError) Error() string {
	return fmt.Sprintf("has the same shape as the address of the API %q", e.key)
}

// add puts an address into a tree that nobody reads yet.
func (n *node) add(a address, key string) error {
	for _, s := range a {
		n = n.step(s)
	}
	if n.key != "" {
		return &shapeError{n.key}
	}
	n.key, n.names = key, a.names()
	return nil
}

// step is the node below n for s, made when it is missing.
func (n *node) step(s segment) *node {
	if s.param {
		if n.param == nil {
			n.param = &node{}
		}
		return n.param
	}
	next := n.literals[s.text]
	if next == nil {
		next = &node{}
		if n.literals == nil {
			n.literals = map[string]*node{}
		}
		n.literals[s.text] = next
	}
	return next
}

// find returns the node that the segments lead to, nil for none, and the values of its
// {name} segments. A literal goes before a {name} where both lead to an API. Each node is
// looked at once at most, as only one way leads to it.
func (n *node) find(segments, values []string) (*node, []string) {
	if len(segments) == 0 {
		if n.key == "" {
			return nil, nil
		}
		return n, values
	}
	if next := n.literals[strings.ToLower(segments[0])]; next != nil {
		if end, v := next.find(segments[1:], values); end != nil {
			return end, v
		}
	}
	if n.param == nil {
		return nil, nil
	}
	return n.param.find(segments[1:], append(values, segments[0]))
}
