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

// The data for tools has every row once, with the types of the declarations.
func TestDescribe(t *testing.T) {
	s := Describe()
	if len(s.Functions) != len(allFuncs()) || len(s.Properties) != len(properties()) || len(s.NotOffered) != len(notOffered) || s.Declarations != Types() {
		t.Fatalf("%d functions, %d properties, %d hints", len(s.Functions), len(s.Properties), len(s.NotOffered))
	}
	seen := map[string]SurfaceFunction{}
	for _, f := range s.Functions {
		if _, twice := seen[f.Name]; twice || f.Doc == "" || f.Result == "" {
			t.Errorf("%+v", f)
		}
		seen[f.Name] = f
	}
	set := seen["V8.Cache.Set"]
	if len(set.Parameters) != 3 || set.Parameters[2] != (SurfaceParameter{"ttl", "number | string", true}) || set.Result != "boolean" {
		t.Errorf("%+v", set)
	}
	if _, ok := seen["V8.Db.FromSql(sql).ToArray"]; !ok {
		t.Error("no statement")
	}
}
