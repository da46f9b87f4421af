package jsbridge

import (
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// The declarations are TypeScript, and name every row and every property.
func TestTypes(t *testing.T) {
	text := Types()
	if out := api.Transform(text, api.TransformOptions{Loader: api.LoaderTS, LogLevel: api.LogLevelSilent}); len(out.Errors) > 0 {
		t.Fatalf("%+v", out.Errors[0])
	}
	for _, f := range allFuncs() {
		name := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		own := name == "btoa" || name == "atob" || name == "randomUUID" // TypeScript's own libraries have them
		if !own && !strings.Contains(text, name+"("+f.args.typescript()+"): "+resultOf(f.Name)+";") {
			t.Errorf("%s is not declared", f.Name)
		}
	}
	for _, p := range properties() {
		if !strings.Contains(text, " "+p.name+": ") {
			t.Errorf("V8.%s is not declared", p.name)
		}
	}
	for name := range results {
		if !strings.HasPrefix(name, "Query.") && !strings.Contains(text, name[strings.LastIndexByte(name, '.')+1:]) {
			t.Errorf("a result for %s, which is no row", name)
		}
	}
}
