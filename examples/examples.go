// Package examples holds the handlers that `apiengine serve --examples` loads. README.md
// beside them says what to try.
package examples

import "embed"

// FS holds the definition files and, in schema, the tables they use.
//
//go:embed *.js schema/*.sql
var FS embed.FS
