package app

import (
	"fmt"

	"apiengine/jsbridge"
)

type typesCmd struct{}

// Run implements the command.
func (*typesCmd) Run(io streams) error {
	_, err := fmt.Fprint(io.out, jsbridge.Types())
	return err
}
