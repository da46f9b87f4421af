package engine_test

import "testing"

// The declarations come without a server.
func TestTypesCommand(t *testing.T) {
	cli("types").want(t, 0, "declare const V8: {")
	cli("types", "surplus").want(t, 2, "surplus")
	cli("types", "--json").want(t, 0, `"Name": "V8.Cache.Get"`)
}
