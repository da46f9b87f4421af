package jsbridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// results are the TypeScript types of what the rows return; a row that is not here
// returns any.
var results = map[string]string{
	"Cache.Get": "string | null", "Cache.GetAndRemove": "string | null", "Cache.HashGet": "string | null",
	"Cache.Increment": "number", "Cache.HashIncrement": "number", "Cache.HashLength": "number",
	"Cache.HashGetAll": "Record<string, string>", "Cache.HashGetAllKeys": "string[]",
	"Db.FromSql": "V8Statement", "Query.AddInParameter": "V8Statement", "Query.ToArray": "any[]", "Query.ExecuteNonQuery": "number",
	"Secret": "string", "Lock.RemainingMs": "number", "Lock.IsHeld": "boolean", "Lock.EnsureHeld": "true",
	"Response.Status": "void", "Response.Header": "void", "Response.Redirect": "void",
	"Method.GetTimestamp": "number", "Method.AddSysLog": "V8Answer", "Method.ParseWhere": "any[]",
	"Method.UpdateBackgroundTask": "boolean",
	"Task.Submit":                 "{ Id: string; Status: string }",
	"Method.GetCurrentToken":      "{ OsClient: string; CurrentUser: any; Token: string } | null",
	"Http.GetResponse":            httpAnswer, "Http.PostResponse": httpAnswer, "Http.PutResponse": httpAnswer, "Http.PatchResponse": httpAnswer, "Http.DeleteResponse": httpAnswer,
	".System.Convert.FromBase64String":        "any",
	".System.Text.Encoding.UTF8.GetBytes":     "Uint8Array",
	".System.Text.Encoding.UTF8.GetByteCount": "number",
}

const httpAnswer = "{ StatusCode: number; Content: string; Headers: Record<string, string>; RawBytes: string; ErrorMessage: string }"

// spaceResults are the results of what is not in results, by namespace.
var spaceResults = map[string]string{"Cache": "boolean", "FormEngine": "V8Answer", "Method": "string", "EncryptHelper": "string", "Base64": "string",
	"Http": "string", "Outbox": "boolean", "Inbox": "boolean", "Task": "any",
	"": "string"}

// propertyTypes are the TypeScript types of V8's properties.
var propertyTypes = map[string]string{
	"Param": "any", "Header": "Record<string, string>", "FilesByteBase64": "Record<string, string>", "OsClient": "string", "ApiEngineKey": "string",
	"InvokeType": `"Client" | "Server"`, "FencingToken": "number",
	"CurrentUser": "{ Id?: string; Account?: string; Name?: string; Roles?: string[]; Level?: number }",
	"Request":     "{ Method: string; Path: string; Ip: string; Id: string }",
	"Lock":        "V8Lock | null",
}

const typesHead = `// Written by "apiengine types": what a script can call, for editors.
// A script is the body of a function: return and await work at its top.

interface V8Answer { Code: number; Data?: any; DataCount?: number; Msg?: string; DataAppend?: any }
`

// Types is what scripts can call, as a TypeScript declaration file, printed from the rows
// that the runtime is made of.
func Types() string {
	w := typesWriter{spaces: map[string][]Func{}}
	for _, f := range allFuncs() {
		if strings.HasPrefix(f.Name, ".") {
			w.spaces["."] = append(w.spaces["."], f)
			continue
		}
		space, _, dotted := strings.Cut(f.Name, ".")
		if !dotted {
			space = "V8"
		}
		w.spaces[space] = append(w.spaces[space], f)
	}
	w.b.WriteString(typesHead)
	w.space("V8Statement", "Query", "")
	w.space("V8Database", "Db", "")
	w.space("V8Lock", "Lock", "  readonly Key: string;\n  readonly FencingToken: number;\n")
	w.v8()
	w.globals()
	return w.b.String()
}

type typesWriter struct {
	b      strings.Builder
	spaces map[string][]Func
}

func (w *typesWriter) space(name, space, more string) {
	fmt.Fprintf(&w.b, "\ninterface %s {\n%s", name, more)
	w.methods("  ", w.spaces[space])
	w.b.WriteString("}\n")
	delete(w.spaces, space)
}

func (w *typesWriter) methods(indent string, rows []Func) {
	for _, f := range rows {
		name := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		params, result := f.args.typescript(), resultOf(f.Name)
		fmt.Fprintf(&w.b, "%s/** %s */\n%s%s(%s): %s;\n", indent, f.Doc, indent, name, params, result)
		fmt.Fprintf(&w.b, "%s%sAsync(%s): Promise<%s>;\n", indent, name, params, result)
	}
}

func (w *typesWriter) v8() {
	w.b.WriteString("\ndeclare const V8: {\n")
	for _, p := range properties() {
		readonly := "readonly "
		if p.set {
			readonly = ""
		}
		fmt.Fprintf(&w.b, "  /** %s */\n  %s%s: %s;\n", p.doc, readonly, p.name, propertyType(p.name))
	}
	w.b.WriteString("  readonly Limits: { RemainingMs: number; Depth: number; MaxStack: number; HostCalls: number; MaxHostCalls: number; MaxResultBytes: number; MaxConsoleBytes: number };\n")
	w.b.WriteString("  readonly Db: V8Database;\n  readonly DbTrans: V8Database;\n  /** V8.Db for what changes nothing: ExecuteNonQuery and statements that write are refused */\n  readonly DbRead: V8Database;\n  /** other databases of the tenant, by name; each has a transaction of its own, which is committed before that of V8.Db */\n  readonly Dbs: Record<string, V8Database>;\n")
	w.methods("  ", w.spaces["V8"])
	for _, space := range slices.Sorted(maps.Keys(w.spaces)) {
		if space == "V8" || space == "." {
			continue
		}
		fmt.Fprintf(&w.b, "  readonly %s: {\n", space)
		w.methods("    ", w.spaces[space])
		w.b.WriteString("  };\n")
	}
	w.b.WriteString("};\n\n")
}

// globals writes the rows on the global object; those with a path go into namespaces. What
// TypeScript's own libraries declare is left to them.
func (w *typesWriter) globals() {
	for _, f := range w.spaces["."] {
		path := f.Name[1:]
		at := strings.LastIndexByte(path, '.')
		decl := fmt.Sprintf("function %s(%s): %s;", path[at+1:], f.args.typescript(), resultOf(f.Name))
		switch {
		case path == "btoa" || path == "atob" || strings.HasPrefix(path, "crypto."):
		case at < 0:
			fmt.Fprintf(&w.b, "/** %s */\ndeclare %s\n", f.Doc, decl)
		default:
			fmt.Fprintf(&w.b, "declare namespace %s {\n  /** %s */\n  %s\n}\n", path[:at], f.Doc, decl)
		}
	}
}

func resultOf(name string) string {
	if t := results[name]; t != "" {
		return t
	}
	space, _, _ := strings.Cut(name, ".")
	if t := spaceResults[space]; t != "" {
		return t
	}
	return "any"
}

func (p argPlan) typescript() string {
	params := make([]string, len(p))
	for i, f := range p {
		optional := ""
		if f.optional {
			optional = "?"
		}
		params[i] = f.name + optional + ": " + f.typescript()
	}
	return strings.Join(params, ", ")
}

func (f argField) typescript() string {
	switch f.typ {
	case typeBytes:
		return "string | Uint8Array | ArrayBuffer"
	case typeDuration:
		return "number | string"
	case typeInDB:
		return "V8Database"
	case typeAny, typeRaw, typeOrDB, typeStored:
		return "any"
	}
	switch wanted(f.typ.Kind()) {
	case "a string":
		return "string"
	case "true or false":
		return "boolean"
	}
	return "number"
}
