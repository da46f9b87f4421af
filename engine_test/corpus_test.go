package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// testdata/corpus holds handlers as authors of the original platform write them, each with
// a request and its answer, in the form of testdata/cases. They run on the embedded pair
// and on Redis with PostgreSQL.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, len(backendPairs) - 1} {
		pair := backendPairs[at]
		t.Run(pair.name, func(t *testing.T) {
			h := newHouse(t, pair)
			for _, file := range files {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runCase(t, h, file) })
			}
		})
	}
}

// Every handler of the corpus is called, and there are at least 120.
func TestCorpusIsWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	handlers := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range txtar.Parse(text).Files {
			key, isHandler := strings.CutSuffix(f.Name, ".js")
			if !isHandler {
				if key, isHandler = strings.CutSuffix(f.Name, ".ts"); !isHandler {
					continue
				}
			}
			handlers++
			if !strings.Contains(string(text), "/apiengine/"+key) && !strings.Contains(string(text), "V8.ApiEngine.Run('"+key+"'") {
				t.Errorf("%s: nothing calls %s", file, f.Name)
			}
		}
	}
	if handlers < 120 {
		t.Errorf("only %d handlers", handlers)
	}
}
