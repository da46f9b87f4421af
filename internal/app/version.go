package app

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by a release build's -ldflags.
var version = ""

// Version names this build: the release, else the revision it was built from.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "dev-" + s.Value[:12]
			}
		}
	}
	return "dev"
}

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run implements the command.
func (c *versionCmd) Run(io streams) error {
	if c.JSON {
		return json.NewEncoder(io.out).Encode(map[string]string{"Version": Version(), "Go": runtime.Version()})
	}
	_, err := fmt.Fprintf(io.out, "apiengine %s (%s)\n", Version(), runtime.Version())
	return err
}
