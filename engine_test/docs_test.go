package engine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"

	"apiengine/apis"
	"apiengine/jsbridge"
)

// The reference in docs/scripts.md is printed from the code; `make reference` writes it.
func TestDocsHaveTheReference(t *testing.T) {
	const path, from, to = "../docs/scripts.md", "<!-- reference: written by make reference -->\n", "<!-- end of the reference -->"
	page := readPage(t, path)
	before, rest, ok := strings.Cut(page, from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the reference", path)
	}
	want := before + from + "\n" + jsbridge.Reference() + "\n" + to + after
	if want == page {
		return
	}
	if os.Getenv("APIENGINE_TEST_WRITE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the reference is stale; `make reference` writes it\n%s", udiff.Unified(path, "now", page, want))
}

// docs/http.md names every kind that there is, in a row of its table.
func TestDocsNameEveryKind(t *testing.T) {
	page := readPage(t, "../docs/http.md")
	kinds := regexp.MustCompile(`Kind = "(\w+)"`).FindAllStringSubmatch(readPage(t, "../fault/fault.go"), -1)
	if len(kinds) < 30 {
		t.Fatalf("only %d kinds found", len(kinds))
	}
	for _, k := range kinds {
		if !strings.Contains(page, "| `"+k[1]+"` |") {
			t.Errorf("docs/http.md has no row for %s", k[1])
		}
	}
}

// README.md names every setting by its flag and its variable.
func TestReadmeNamesEverySetting(t *testing.T) {
	page := readPage(t, "../README.md")
	for name := range settingsOf(t) {
		if !strings.Contains(page, "`--"+name+"`") {
			t.Errorf("README.md does not name --%s", name)
		}
	}
}

// Every test that docs/guarantees.md names exists.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	page := readPage(t, "../docs/guarantees.md")
	known := testNames(t)
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(page, -1)
	if len(named) == 0 {
		t.Fatal("docs/guarantees.md names no test")
	}
	for _, m := range named {
		if !known[m[1]] {
			t.Errorf("docs/guarantees.md names %s, which is no test", m[1])
		}
	}
}

// testNames are the tests of the whole module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(readPage(t, path), -1) {
			names[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every script in the pages compiles.
func TestScriptsInThePagesCompile(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range append(pages, "../README.md") {
		for _, m := range regexp.MustCompile("(?ms)^ *```(js|ts)\n(.*?)^ *```").FindAllStringSubmatch(readPage(t, page), -1) {
			n++
			name := filepath.Base(page) + "." + m[1]
			code := regexp.MustCompile(`(?m)^   `).ReplaceAllString(m[2], "")
			def, err := apis.ParseFile("example."+m[1], []byte(code))
			if err == nil {
				_, err = jsbridge.Compile(jsbridge.Source{Name: name, Code: def.ApiV8Code, Language: def.Language})
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, code)
			}
		}
	}
	if n < 5 {
		t.Fatalf("only %d scripts found", n)
	}
}
