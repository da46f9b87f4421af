package app

import (
	"encoding/json"
	"fmt"

	"apiengine/jsbridge"
)

type typesCmd struct {
	JSON bool `name:"json" help:"Print names, parameters, types and what they do as JSON."`
}

// Run implements the command.
func (c *typesCmd) Run(io streams) error {
	if !c.JSON {
		_, err := fmt.Fprint(io.out, jsbridge.Types())
		return err
	}
	enc := json.NewEncoder(io.out)
	enc.SetEscapeHTML(false) // types have < and >
	enc.SetIndent("", "  ")
	return enc.Encode(jsbridge.Describe())
}
