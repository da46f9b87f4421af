package app

import (
	"apiengine/apis"
	"apiengine/internal/client"
	"apiengine/jsbridge"
	"apiengine/lint"
)

type checkCmd struct {
	Dir    string `arg:"" help:"Folder of definition files."`
	Strict bool   `help:"Fail (exit code 1) on warnings too."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run implements the command.
func (c *checkCmd) Run(io streams) error {
	found, err := client.Check(c.Dir, client.CheckOptions{Compile: compiles, Lint: discover, Strict: c.Strict})
	return show(io, c.JSON, found, err)
}

// sourceOf is the script of a definition.
func sourceOf(d apis.Definition) jsbridge.Source {
	return jsbridge.Source{Name: d.FileName(), Code: d.ApiV8Code, Language: d.Language, FirstLine: d.FirstLine}
}

// discover finds what the scripts of a folder should do in another way.
func discover(defs []apis.Definition) []client.Discovery {
	scripts := make([]lint.Script, len(defs))
	for i, d := range defs {
		scripts[i] = lint.Script{Key: d.ApiEngineKey, Library: d.Library, Source: sourceOf(d)}
	}
	var out []client.Discovery
	for _, w := range lint.Folder(scripts) {
		out = append(out, client.Discovery{Definition: w.Script, Line: w.Line, Column: w.Column, Msg: w.Msg})
	}
	return out
}
