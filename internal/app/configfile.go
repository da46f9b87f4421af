package app

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// yamlResolver reads the settings file: flag names without dashes in front, one a line.
// A name that no flag has stops the start.
func yamlResolver(r io.Reader) (kong.Resolver, error) {
	values := map[string]any{}
	if err := yaml.NewDecoder(r).Decode(&values); err != nil && err != io.EOF {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	return fileSettings(values), nil
}

type fileSettings map[string]any

// Validate implements kong.Resolver.
func (f fileSettings) Validate(app *kong.Application) error {
	known := map[string]bool{}
	for _, name := range flagNames(app.Node) {
		known[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !known[name] {
			return fmt.Errorf("settings file: there is no setting %q", name)
		}
	}
	return nil
}

func flagNames(n *kong.Node) []string {
	var names []string
	for _, f := range n.Flags {
		names = append(names, f.Name)
	}
	for _, c := range n.Children {
		names = append(names, flagNames(c)...)
	}
	return names
}

// Resolve implements kong.Resolver.
func (f fileSettings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	v, ok := f[flag.Name]
	if !ok {
		return nil, nil
	}
	if list, ok := v.([]any); ok {
		parts := make([]string, len(list))
		for i, p := range list {
			parts[i] = fmt.Sprint(p)
		}
		return strings.Join(parts, ","), nil
	}
	return fmt.Sprint(v), nil
}
