package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"apiengine/apis"
	"apiengine/fault"
)

// folder is what a directory of definition files holds.
type folder struct {
	dir      string
	files    []localFile // in the order of their names
	schemas  []schemaOf
	problems []Problem
}

type localFile struct {
	name   string // in dir
	key    string // in lower case; of a broken file the best guess
	src    []byte
	def    apis.Definition
	broken bool
}

// lineOf is the line of the settings that sets field; 1 when it is not set.
func (l localFile) lineOf(field string) int {
	for i, line := range bytes.Split(l.src, []byte("\n")) {
		if bytes.HasPrefix(line, []byte(field+":")) {
			return i + 1
		}
	}
	return 1
}

// cutSettings parts a file into its settings and its script.
func cutSettings(src []byte) (header, script []byte, ok bool) {
	return bytes.Cut(src, []byte("\n---*/"))
}

// SchemaFile is one file of schema/, in goose's format.
type SchemaFile struct{ Name, SQL string }

// schemaOf is the files of one database: of schema/ itself or of a folder in it.
type schemaOf struct {
	database string // of V8.Dbs; empty: the tenant's own
	files    []SchemaFile
}

// readFolder reads every definition file of dir, its folders not included, and its
// schema. What is wrong with a file is a problem, not an error.
func readFolder(dir string) (*folder, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.New(fault.BadRequest, "the folder cannot be read: %v", err)
	}
	f := &folder{dir: dir}
	for _, e := range entries {
		if e.IsDir() || !apis.IsFile(e.Name()) {
			continue
		}
		// A link leads to a file or not; a pipe would never end.
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && !info.Mode().IsRegular() {
			f.problems = append(f.problems, Problem{File: f.path(e.Name()), Line: 1, Column: 1, Msg: "is no regular file"})
			continue
		}
		if err := f.read(e.Name()); err != nil {
			return nil, err
		}
	}
	return f, f.readSchema()
}

func (f *folder) read(name string) error {
	src, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		return err
	}
	d, err := apis.ParseFile(f.path(name), src)
	f.problems = append(f.problems, problemsOf(err, f.path(name))...)
	l := localFile{name: name, key: strings.ToLower(d.ApiEngineKey), src: src, def: d, broken: err != nil}
	if l.key == "" {
		l.key = strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name)))
	}
	if other, ok := f.find(l.key); ok {
		f.problems = append(f.problems, Problem{File: f.path(name), Line: l.lineOf("ApiEngineKey"), Column: 1, Field: "ApiEngineKey", Kind: fault.BadRequest,
			Msg: fmt.Sprintf("is %s, as in %s", d.ApiEngineKey, f.path(other.name))})
		return nil
	}
	f.files = append(f.files, l)
	return nil
}

func (f *folder) find(key string) (localFile, bool) {
	i := slices.IndexFunc(f.files, func(l localFile) bool { return l.key == key })
	if i < 0 {
		return localFile{}, false
	}
	return f.files[i], true
}

// path is a file's path with slashes, for messages and for what reads its name.
func (f *folder) path(name string) string { return filepath.ToSlash(filepath.Join(f.dir, name)) }

var (
	schemaName = regexp.MustCompile(`^([0-9]+)_.*\.sql$`)
	schemaUp   = regexp.MustCompile(`(?m)^-- ?\+goose Up`)
)

// readSchema reads the files of schema/ and of the folders in it, which are named after
// databases.
func (f *folder) readSchema() error {
	if err := f.readTables("schema", ""); err != nil {
		return err
	}
	dirs, err := os.ReadDir(filepath.Join(f.dir, "schema"))
	if err != nil {
		return nil // there need not be one
	}
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		if err := f.readTables("schema/"+d.Name(), d.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) readTables(dir, database string) error {
	names, err := filepath.Glob(filepath.Join(f.dir, filepath.FromSlash(dir), "*.sql"))
	if err != nil || len(names) == 0 {
		return err
	}
	numbers := map[string]string{}
	of := schemaOf{database: database}
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.Base(path)
		if msg := schemaProblem(name, text, numbers); msg != "" {
			f.problems = append(f.problems, Problem{File: f.path(dir + "/" + name), Line: 1, Column: 1, Kind: fault.BadRequest, Msg: msg})
		}
		of.files = append(of.files, SchemaFile{name, string(text)})
	}
	f.schemas = append(f.schemas, of)
	return nil
}

// schemaProblem is what keeps goose from taking a file, so far as can be seen here.
func schemaProblem(name string, text []byte, numbers map[string]string) string {
	m := schemaName.FindStringSubmatch(name)
	if m == nil {
		return "the name must be a number, '_' and a word, like 0001_orders.sql"
	}
	n := strings.TrimLeft(m[1], "0")
	if other := numbers[n]; other != "" {
		return "has the same number as " + other
	}
	numbers[n] = name
	if !schemaUp.Match(text) {
		return "has no line -- +goose Up"
	}
	return ""
}

// digest stands for the text of a definition, wherever its script begins in a file.
func digest(d apis.Definition) string {
	d.FirstLine = 0
	text, err := apis.EncodeJSON(d)
	if err != nil { // a validated definition always can be
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// writeFile replaces a file in one step, so that no half of it is ever seen.
func writeFile(path string, text []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".apiengine-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if _, err = temp.Write(text); err == nil {
		err = temp.Chmod(0o644)
	}
	if closing := temp.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
