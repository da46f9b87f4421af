package app

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// settingsFile gives flags that neither the command line nor the environment sets a value:
// the settings file's, or, for a variable that is there but empty, the default.
type settingsFile struct {
	values map[string]any // by flag name; nil: no file
}

// load is kong's ConfigurationLoader: flag names without dashes in front, one a line.
func (f *settingsFile) load(r io.Reader) (kong.Resolver, error) {
	if err := yaml.NewDecoder(r).Decode(&f.values); err != nil && err != io.EOF {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	return f, nil
}

// Validate implements kong.Resolver: a name that is no setting stops every command.
func (f *settingsFile) Validate(app *kong.Application) error {
	known := settingNames(app)
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		if !known[name] {
			return fmt.Errorf("settings file: there is no setting %q", name)
		}
	}
	return nil
}

// settingNames are the flags of serve and what every command that talks to a server takes.
// What changes the meaning of one command, such as --force, has no place in a file.
func settingNames(app *kong.Application) map[string]bool {
	names := map[string]bool{"url": true, "token": true, "tenant": true}
	for _, c := range app.Children {
		if c.Name != "serve" {
			continue
		}
		for _, flag := range c.Flags {
			names[flag.Name] = true
		}
	}
	delete(names, "help")
	return names
}

// Resolve implements kong.Resolver. kong itself would let a file win over the environment.
func (f *settingsFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	env, isSet := envOf(flag)
	if env != "" {
		return nil, nil
	}
	if v, ok := f.values[flag.Name]; ok {
		return settingText(v)
	}
	if isSet && flag.Name != "config" { // compose files write VAR= for what is not given
		return flag.Default, nil
	}
	return nil, nil
}

// envOf returns the name of the variable that gives a flag its value, "" for none;
// isSet tells that one is there, if only empty.
func envOf(flag *kong.Flag) (name string, isSet bool) {
	for _, env := range flag.Envs {
		v, ok := os.LookupEnv(env)
		if v != "" {
			return env, true
		}
		isSet = isSet || ok
	}
	return "", isSet
}

// settingText is a YAML value as one would write it on the command line.
func settingText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool, int64, uint64:
		return fmt.Sprint(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case []any:
		parts := make([]string, len(v))
		for i, p := range v {
			text, err := settingText(p)
			if err != nil {
				return "", err
			}
			parts[i] = text
		}
		return strings.Join(parts, ","), nil
	case nil:
		return "", fmt.Errorf("settings file: it has no value")
	}
	return "", fmt.Errorf("settings file: a value must be a text, a number, true, false or a list of texts")
}
