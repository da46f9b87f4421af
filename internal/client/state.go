package client

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"apiengine/apis"
	"apiengine/fault"
)

// stateDir holds, in a folder of definitions, what was last in step with which server.
const stateDir = ".apiengine"

// state is kept for each server and tenant, so that one folder can serve several.
type state struct {
	path    string
	all     map[string]map[string]record // by server and tenant, then by key in lower case
	records map[string]record            // of the client's server and tenant
}

// record is what a definition was when the folder and the server last agreed on it.
type record struct {
	Version int
	Digest  string
}

func (c *Client) loadState(dir string) (*state, error) {
	s := &state{path: filepath.Join(dir, stateDir, "state.json"), all: map[string]map[string]record{}}
	text, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(text, &s.all); err != nil {
			return nil, fault.Wrap(fault.BadRequest, err, "%s cannot be read; remove it and pull again", s.path)
		}
	}
	target := strings.ToLower(c.url()) + " " + strings.ToLower(c.Tenant)
	if s.records = s.all[target]; s.records == nil {
		s.records = map[string]record{}
		s.all[target] = s.records
	}
	return s, nil
}

func (s *state) set(key string, version int, d apis.Definition) {
	s.records[key] = record{version, digest(d)}
}

// save writes the state, which belongs to this copy of the folder and to no repository.
func (s *state) save() error {
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, ".gitignore"), []byte("*\n")); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s.all, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(s.path, append(text, '\n'))
}
