package app

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"
)

// configCmd prints every setting with its origin, and then fails on what would stop serve.
type configCmd struct {
	Settings `embed:""`
	JSON     bool `name:"json" help:"Print JSON."`
}

type settingRow struct{ Name, Value, Origin string }

// Run implements the command.
func (c *configCmd) Run(k *kong.Context, file *settingsFile, io streams) error {
	given := map[string]bool{}
	for _, p := range k.Path {
		if p.Flag != nil && !p.Resolved {
			given[p.Flag.Name] = true
		}
	}
	var rows []settingRow
	for _, f := range k.Selected().Flags {
		if f.Name == "json" || f.Name == "help" {
			continue
		}
		rows = append(rows, settingRow{f.Name, shown(f), file.origin(f, given[f.Name])})
	}
	if err := printSettings(io, rows, c.JSON); err != nil {
		return err
	}
	return c.Check()
}

func printSettings(io streams, rows []settingRow, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(io.out)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	}
	w := tabwriter.NewWriter(io.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tORIGIN")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Name, r.Value, r.Origin)
	}
	return w.Flush()
}

// origin tells where a flag's value comes from.
func (f *settingsFile) origin(flag *kong.Flag, given bool) string {
	if given {
		return "flag"
	}
	if env, _ := envOf(flag); env != "" {
		return "environment " + env
	}
	if _, ok := f.values[flag.Name]; ok {
		return "file"
	}
	return "default"
}

// shown is a value for people's eyes: secrets are masked, passwords in addresses too.
func shown(f *kong.Flag) string {
	text := fmt.Sprint(f.Target.Interface())
	if f.Target.Kind() == reflect.Slice {
		text = strings.Join(f.Target.Interface().([]string), ",")
	}
	switch secret := f.Tag.Get("secret"); {
	case text == "" || secret == "":
		return text
	case secret == "url":
		return maskURL(text)
	}
	return masked
}
