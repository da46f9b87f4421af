package engine_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// arrows is the import graph of docs/decisions.md: who may import whom of our own
// packages. A package that is not listed may not exist.
var arrows = map[string][]string{
	"fault":      {},
	"budget":     {"fault"},
	"migrations": {},
	"nearest":    {},
	"digits":     {},

	"lockwrap":                        {"budget", "fault"},
	"lockwrap/embedded":               {"lockwrap", "budget", "fault"},
	"lockwrap/redis":                  {"lockwrap", "budget", "fault"},
	"lockwrap/postgres":               {"lockwrap", "budget", "fault"},
	"lockwrap/etcd":                   {"lockwrap", "budget", "fault"},
	"lockwrap/locktest":               {"lockwrap", "budget", "fault"},
	"apis":                            {"budget", "fault", "nearest"},
	"store":                           {"fault", "migrations"},
	"store/storetest":                 {"store", "fault"},
	"store/tenantdb":                  {"fault", "migrations", "nearest", "digits", "store/tenantdb/internal/litedb", "store/tenantdb/internal/sqltext"},
	"store/tenantdb/internal/litedb":  {},
	"store/tenantdb/internal/sqltext": {"fault"},
	"cache":                           {"fault"},
	"egress":                          {"fault"},

	"jsbridge": {"fault", "nearest", "digits"},
	"lint":     {"jsbridge", "nearest"},

	"engine": {"apis", "budget", "fault", "jsbridge", "lockwrap", "nearest"},

	"tasks":           {"engine", "apis", "budget", "fault", "jsbridge", "lockwrap", "nearest", "store/tenantdb"},
	"outbox":          {"engine", "fault"},
	"server":          {"engine", "apis", "fault"},
	"internal/client": {"apis", "fault"},
	"examples":        {},

	"internal/app": {"fault", "budget", "migrations", "lockwrap", "lockwrap/embedded", "lockwrap/redis", "lockwrap/postgres", "lockwrap/etcd", "apis", "store",
		"store/tenantdb", "cache", "jsbridge", "engine", "tasks", "outbox", "egress", "server", "internal/client", "lint", "examples", "nearest"},
	"cmd/apiengine": {"internal/app"},

	"internal/testserver": {},
	"internal/faultproxy": {},
}

func TestImportGraph(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,GoFiles", "apiengine/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
			GoFiles    []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) == 0 {
			continue // tests only
		}
		seen++
		name := strings.TrimPrefix(p.ImportPath, "apiengine/")
		allowed, known := arrows[name]
		if !known {
			t.Errorf("package %s is not in the table: say what it is for, and what it may import", name)
			continue
		}
		for _, i := range p.Imports {
			ours, ok := strings.CutPrefix(i, "apiengine/")
			if ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, which the table does not allow", name, ours)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d packages were looked at", seen)
	}
}
