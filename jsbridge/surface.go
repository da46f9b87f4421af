package jsbridge

import (
	"maps"
	"slices"
	"strings"
)

// Surface is what scripts can call, as data for tools.
type Surface struct {
	Declarations string // what Types returns
	Properties   []SurfaceProperty
	Functions    []SurfaceFunction
	NotOffered   []SurfaceHint
}

// SurfaceProperty is one value of the V8 object.
type SurfaceProperty struct {
	Name, Type, Doc string
	Writable        bool
}

// SurfaceFunction is one native function. Each of V8 has a twin Name + "Async".
type SurfaceFunction struct {
	Name, Doc  string // "V8.Cache.Get"; a function of a statement begins with "V8.Db.FromSql(sql)."
	Parameters []SurfaceParameter
	Result     string // its TypeScript type
}

// SurfaceParameter is one positional argument.
type SurfaceParameter struct {
	Name, Type string // the TypeScript type
	Optional   bool
}

// SurfaceHint names what the original platform has and this one has not.
type SurfaceHint struct{ Name, Instead string }

// Describe returns the Surface, made from the rows that the runtime is made of.
func Describe() Surface {
	s := Surface{Declarations: Types()}
	for _, p := range properties() {
		s.Properties = append(s.Properties, SurfaceProperty{Name: "V8." + p.name, Type: propertyType(p.name), Doc: p.doc, Writable: p.set})
	}
	for _, f := range allFuncs() {
		s.Functions = append(s.Functions, SurfaceFunction{Name: fullName(f.Name), Doc: f.Doc, Parameters: f.args.surface(), Result: resultOf(f.Name)})
	}
	for _, name := range slices.Sorted(maps.Keys(notOffered)) {
		s.NotOffered = append(s.NotOffered, SurfaceHint{name, notOffered[name]})
	}
	return s
}

func (p argPlan) surface() []SurfaceParameter {
	out := make([]SurfaceParameter, len(p))
	for i, f := range p {
		out[i] = SurfaceParameter{Name: f.name, Type: f.typescript(), Optional: f.optional}
	}
	return out
}

// fullName is how a script reaches the function of a row.
func fullName(row string) string {
	if method, ok := strings.CutPrefix(row, "Query."); ok {
		return "V8.Db.FromSql(sql)." + method
	}
	return shownName(row)
}

func propertyType(name string) string {
	if t := propertyTypes[name]; t != "" {
		return t
	}
	return "any"
}
