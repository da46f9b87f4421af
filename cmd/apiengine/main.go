// Command apiengine serves HTTP endpoints that administrators write in JavaScript, each
// inside its own distributed lock. See README.md.
package main

import (
	"os"

	"apiengine/internal/app"
)

func main() { os.Exit(app.Main(os.Args[1:], os.Stdout, os.Stderr)) }
