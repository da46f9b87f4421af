package app

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"
)

// configCmd prints every setting with its origin.
type configCmd struct {
	Settings `embed:""`
	JSON     bool `name:"json" help:"Print JSON."`
}

type settingRow struct{ Name, Value, Origin string }

// Run implements the command.
func (c *configCmd) Run(k *kong.Context, io streams) error {
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
		rows = append(rows, settingRow{f.Name, shown(f), origin(k, f, given[f.Name])})
	}
	if c.JSON {
		return json.NewEncoder(io.out).Encode(rows)
	}
	w := tabwriter.NewWriter(io.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tORIGIN")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Name, r.Value, r.Origin)
	}
	return w.Flush()
}

// origin tells where a flag's value comes from.
func origin(k *kong.Context, f *kong.Flag, given bool) string {
	if given {
		return "flag"
	}
	for _, env := range f.Envs {
		if _, set := os.LookupEnv(env); set {
			return "environment " + env
		}
	}
	if k.FlagValue(f) != nil && f.Set && !f.Target.IsZero() && fmt.Sprint(f.Target.Interface()) != defaultText(f) {
		return "file"
	}
	return "default"
}

func defaultText(f *kong.Flag) string { return f.Default }

// shown is a value for people's eyes: secrets are masked, passwords in addresses too.
func shown(f *kong.Flag) string {
	text := strings.Trim(fmt.Sprint(f.Target.Interface()), "[]")
	switch secret := f.Tag.Get("secret"); {
	case text == "" || secret == "":
		return text
	case secret == "url":
		return maskURL(text)
	}
	return "********"
}
